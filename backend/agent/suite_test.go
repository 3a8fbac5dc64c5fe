package agent

import (
	"testing"

	"slipway/backend/engine/enginetest"
	"slipway/backend/session"
	"slipway/backend/session/agenttest"
)

// TestAgentKeepsItsPromises runs on Docker; package simulated runs the same suite
// on a simulated engine.
func TestAgentKeepsItsPromises(t *testing.T) {
	t.Parallel()
	open := func(t *testing.T) session.Agent { return newReal(t, t.TempDir()).agent.Agent() }
	agenttest.Run(t, open, agenttest.Options{
		Image: enginetest.ImageMinimal, Server: "python3 -m http.server 8123 --bind 127.0.0.1",
	})
}
