package access_test

import (
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"slipway/backend/access"
	"slipway/backend/agent"
	"slipway/backend/agent/simulated"
	"slipway/backend/session"
	"slipway/backend/session/agenttest"
	"slipway/gpu/clock"
	gpusim "slipway/gpu/sim"
)

// ruler is the agent's own person.
const ruler = "ada"

// newGate runs an agent on a simulated machine with two devices and puts a gate
// before it.
func newGate(t *testing.T) (*access.Gate, *agent.Agent) {
	t.Helper()
	machine := gpusim.Open(gpusim.Config{Seed: 1, Cards: []gpusim.Card{gpusim.Workstation, gpusim.Workstation},
		Clock: clock.Now})
	audit, err := access.OpenAudit(filepath.Join(t.TempDir(), "audit.jsonl"), time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(machine.Close(), audit.Close()); err != nil {
			t.Error(err)
		}
	})
	a := simulated.Open(t, func(c *agent.Config) {
		c.Owner, c.Devices.Source, c.Host.Moment = ruler, machine, clock.Now
	})
	served := a.Agent()
	served.Admin = admin{}
	return access.New(served, a, audit), a
}

func TestAgentKeepsItsPromisesToAnAdmin(t *testing.T) {
	agenttest.Run(t, func(t *testing.T) session.Agent {
		gate, _ := newGate(t)
		return gate.As(access.Identity{Owner: "grace", Role: session.RoleAdmin, Client: "key", From: "10.0.0.7"})
	}, agenttest.Options{Image: "python:3.12", Server: "httpd -p 8123"})
}
