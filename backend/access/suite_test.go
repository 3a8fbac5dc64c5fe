package access_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"slipway/backend/access"
	"slipway/backend/agent"
	"slipway/backend/engine/sim"
	"slipway/backend/session"
	"slipway/backend/session/agenttest"
	"slipway/backend/store"
	"slipway/gpu/clock"
	gpusim "slipway/gpu/sim"
)

// ruler is the agent's own person.
const ruler = "ada"

// newGate runs an agent on a simulated machine with two devices and puts a gate
// before it.
func newGate(t *testing.T) (*access.Gate, *agent.Agent) {
	t.Helper()
	dir := t.TempDir()
	books, err := store.Open(store.Config{Path: filepath.Join(dir, "agent.db")})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := sim.Open(sim.Config{Dir: filepath.Join(dir, "engine"), Instance: books.Instance(), Speed: 200})
	if err != nil {
		t.Fatal(err)
	}
	machine := gpusim.Open(gpusim.Config{Seed: 1, Cards: []gpusim.Card{gpusim.Workstation, gpusim.Workstation},
		Clock: clock.Now})
	a, err := agent.Open(t.Context(), agent.Config{Name: "lab", Dir: dir, Engine: engine, Store: books, Owner: ruler,
		UID: os.Getuid(), GID: os.Getgid(), Version: "test", Devices: agent.DeviceConfig{Source: machine},
		Host: agent.HostConfig{Moment: clock.Now}})
	if err != nil {
		t.Fatal(err)
	}
	audit, err := access.OpenAudit(filepath.Join(dir, "audit.jsonl"), time.Now, slog.New(slog.DiscardHandler))
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
		for _, part := range []interface{ Close() error }{a, engine, machine, books, audit} {
			if err := part.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return access.New(a, audit, admin{}), a
}

func TestAgentKeepsItsPromisesToAnAdmin(t *testing.T) {
	agenttest.Run(t, func(t *testing.T) session.Agent {
		gate, _ := newGate(t)
		return gate.As(access.Identity{Owner: "grace", Role: session.RoleAdmin, Device: "key", From: "10.0.0.7"})
	}, agenttest.Options{Image: "python:3.12", Server: "httpd -p 8123"})
}
