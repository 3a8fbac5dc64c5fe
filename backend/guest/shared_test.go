//go:build linux

package guest_test

import (
	"errors"
	"net"
	"path/filepath"
	"slices"
	"testing"

	"slipway/backend/guest"
	"slipway/backend/guest/link"
	"slipway/backend/session"
)

func TestServicesListenOnSocketsInASharedNetwork(t *testing.T) {
	dir := t.TempDir()
	p := &paper{}
	p.dial = func(int) (net.Conn, error) {
		if len(p.all()) == 0 {
			return nil, errors.New("refused")
		}
		near, _ := net.Pipe()
		return near, nil
	}
	g := guest.New(guest.Config{Processes: p, Sockets: dir})
	g.Ready()
	client := join(t, g)
	_, err := client.StartService(t.Context(), link.ServiceRequest{ID: "open", Argv: []string{"/bin/open"}, Port: 7433})
	want := "open listens on a port, which other users of the node could reach in a session over several nodes."
	if cause := session.AsError(err, ""); cause.Code != session.CodeAppUnavailable || len(p.all()) > 0 ||
		cause.Message != want {
		t.Errorf("a program that only has a port: %v", err)
	}
	got, err := client.StartService(t.Context(), link.ServiceRequest{ID: "web", Argv: []string{"web", "--port=7431"},
		Private: []string{"web", "--sock=" + link.Socket}, Port: 7431})
	if err != nil || got.State != link.ServiceReady || got.Port != 7431 {
		t.Fatalf("got %+v, %v", got, err)
	}
	if want := []string{"web", "--sock=" + filepath.Join(dir, "7431")}; !slices.Equal(p.argv, want) {
		t.Errorf("it was started as %q", p.argv)
	}
	p.all()[0].end()
}
