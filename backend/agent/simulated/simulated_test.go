package simulated

import (
	"testing"

	"slipway/backend/session"
	"slipway/backend/session/agenttest"
)

func TestAgentKeepsItsPromises(t *testing.T) {
	agenttest.Run(t, func(t *testing.T) session.Agent { return Open(t, nil).Agent() },
		agenttest.Options{Image: "python:3.12", Server: "httpd -p 8123"})
}
