//go:build linux

package docker_test

import (
	"encoding/json"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/backend/engine"
	"slipway/backend/engine/docker"
	"slipway/backend/session"
)

// bridgeless is a daemon on a machine whose kernel does not filter bridges. It
// remembers the options of the networks that it made.
func bridgeless(t *testing.T) (host string, made func() []map[string]string) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "d.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	networks := make(chan map[string]string, 16)
	answer := func(w http.ResponseWriter, status int, value any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(value) //nolint:errcheck // the caller may have gone
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Api-Version", "1.41")
			switch {
			case strings.HasSuffix(r.URL.Path, "/_ping"):
			case strings.HasSuffix(r.URL.Path, "/version"):
				answer(w, http.StatusOK, map[string]any{})
			case strings.HasSuffix(r.URL.Path, "/info"):
				answer(w, http.StatusOK, map[string]any{"OSType": "linux", "MemoryLimit": true, "CpuSet": true})
			case strings.HasSuffix(r.URL.Path, "/networks/create"):
				var asked struct{ Options map[string]string }
				if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
					t.Error(err)
				}
				if len(asked.Options) > 0 {
					answer(w, http.StatusInternalServerError, map[string]string{"message": "cannot restrict " +
						"inter-container communication: please ensure that br_netfilter kernel module is loaded"})
					return
				}
				networks <- asked.Options
				answer(w, http.StatusCreated, map[string]string{"Id": "1"})
			default:
				answer(w, http.StatusNotFound, map[string]string{"message": "no such network"})
			}
		})}
	go server.Serve(listener)            //nolint:errcheck // ends with the test
	t.Cleanup(func() { server.Close() }) //nolint:errcheck // nothing to lose
	return "unix://" + socket, func() (all []map[string]string) {
		for len(networks) > 0 {
			all = append(all, <-networks)
		}
		return all
	}
}

func TestWhatCannotBeKeptApartIsSaid(t *testing.T) {
	host, made := bridgeless(t)
	e := open(t, docker.Config{Host: host, Instance: "one"})
	warned := func() bool {
		t.Helper()
		info, err := e.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(info.Warnings,
			func(w session.Warning) bool { return w.Code == "engine_info_not-apart" })
	}
	labels := map[string]string{engine.LabelInstance: "one"}
	for _, n := range []engine.Network{{Name: "cluster", Labels: labels},
		{Name: "person", Labels: labels, Apart: true}} {
		if err := e.CreateNetwork(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		if warned() != n.Apart {
			t.Errorf("after the network %s it warns: %t", n.Name, !n.Apart)
		}
	}
	if got := made(); len(got) != 2 {
		t.Errorf("the networks %v were made", got)
	}
}
