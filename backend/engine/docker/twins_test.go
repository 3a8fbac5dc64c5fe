//go:build linux

package docker_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/versions"

	"slipway/backend/engine"
	"slipway/backend/engine/docker"
)

// TestOneOfTwoNetworksOfANameIsLeft: Docker 20.10 makes a second one if a call is repeated before it has ended.
func TestOneOfTwoNetworksOfANameIsLeft(t *testing.T) {
	t.Parallel()
	instance := instanceOf(t)
	e, raw := open(t, docker.Config{Instance: instance}), api(t)
	n := engine.Network{Name: "slipway-twins-" + strings.ToLower(t.Name()[:8]), Apart: true,
		Labels: map[string]string{engine.LabelInstance: instance, engine.LabelOwner: "ada"}}
	raw.NegotiateAPIVersion(t.Context())
	if versions.GreaterThanOrEqualTo(raw.ClientVersion(), "1.44") {
		return // this Docker makes none
	}
	body, err := json.Marshal(map[string]any{"Name": n.Name, "Driver": "bridge", "Labels": n.Labels})
	if err != nil {
		t.Fatal(err)
	}
	dial := raw.Dialer()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dial(ctx)
	}}
	defer transport.CloseIdleConnections()
	for range 2 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
			"http://docker/v"+raw.ClientVersion()+"/networks/create", strings.NewReader(string(body)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		answer, err := (&http.Client{Transport: transport}).Do(r)
		if err != nil || answer.StatusCode != http.StatusCreated {
			t.Fatalf("it answers %+v, %v", answer, err)
		}
		answer.Body.Close() //nolint:errcheck // it has nothing more to say
	}
	if err := e.CreateNetwork(t.Context(), n); err != nil {
		t.Error(err)
	}
	left, err := raw.NetworkList(t.Context(), network.ListOptions{Filters: filters.NewArgs(
		filters.Arg("label", engine.LabelInstance+"="+instance))})
	if err != nil || len(left) != 1 {
		t.Errorf("left are %+v, %v", left, err)
	}
	if err := e.RemoveNetwork(t.Context(), n.Name); err != nil {
		t.Error(err)
	}
}
