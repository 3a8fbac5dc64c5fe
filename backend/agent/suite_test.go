package agent

import (
	"context"
	"os"
	"testing"

	"slipway/backend/engine/enginetest"
	"slipway/backend/engine/sim"
	"slipway/backend/session"
	"slipway/backend/session/agenttest"
	"slipway/backend/store"
)

// openSimulated opens an agent on a simulated engine and runs it.
func openSimulated(t *testing.T) *Agent {
	t.Helper()
	dir := t.TempDir()
	books, err := store.Open(store.Config{Path: dir + "/agent.db"})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := sim.Open(sim.Config{Dir: dir + "/engine", Instance: books.Instance(), Speed: 200})
	if err != nil {
		t.Fatal(err)
	}
	a, err := Open(t.Context(), Config{Name: "local", Dir: dir, Engine: engine, Store: books, Owner: "ada",
		UID: os.Getuid(), GID: os.Getgid(), Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.Run(ctx) //nolint:errcheck // ends with ctx
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		for _, part := range []interface{ Close() error }{a, engine, books} {
			if err := part.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return a
}

func TestAgentKeepsItsPromises(t *testing.T) {
	t.Parallel()
	t.Run("on a simulated engine", func(t *testing.T) {
		agenttest.Run(t, func(t *testing.T) session.Agent { return openSimulated(t) },
			agenttest.Options{Image: "python:3.12", Server: "httpd -p 8123"})
	})
	t.Run("on Docker", func(t *testing.T) {
		agenttest.Run(t, func(t *testing.T) session.Agent { return newReal(t, t.TempDir()).agent }, agenttest.Options{
			Image: enginetest.ImageMinimal, Server: "python3 -m http.server 8123 --bind 127.0.0.1",
		})
	})
}
