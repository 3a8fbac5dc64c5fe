package server_test

import (
	"net/http"
	"os"
	"runtime"
	"testing"

	"slipway/backend/session"
)

func TestOtherUsersOfTheComputerAreTurnedAway(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // no other operating system tells whose a connection is
	}
	t.Run("whoever is named gets in", func(t *testing.T) {
		w := startFor(t, os.Getuid()+1, os.Getuid())
		if status := w.call(t, "GET", "/api/v1/version", "", nil); status != 200 {
			t.Errorf("answers %d", status)
		}
	})
	t.Run("another one does not, even with the token", func(t *testing.T) {
		w := startFor(t, os.Getuid()+1)
		var p session.Error
		if status := w.call(t, "GET", "/api/v1/version", "", &p); status != 403 ||
			p.Code != "request_origin_forbidden" {
			t.Errorf("%d %+v", status, p)
		}
		for _, host := range []string{"", notebook + ":" + w.port} {
			r := w.request(t, "GET", "/", "")
			r.Host = host
			if response, _ := do(t, http.DefaultClient, r); response.StatusCode != 403 {
				t.Errorf("%q answers %d", host, response.StatusCode)
			}
		}
	})
}
