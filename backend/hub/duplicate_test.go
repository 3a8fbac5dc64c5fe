package hub_test

import (
	"strings"
	"testing"

	"slipway/backend/hub"
	"slipway/backend/hub/hubtest"
	"slipway/backend/session"
)

func TestOneAgentIsNotAddedAtTwoAddresses(t *testing.T) {
	const other = "ssh://ada@lab-by-vpn"
	for name, c := range map[string]struct {
		instance string // of the agent at the other address
		found    string // before anything is changed there
		says     string
	}{
		"found before anything is done": {instance: "1111", found: "1111",
			says: "That machine is already known: its agent is lab, at " + labAddress + "."},
		"found when it is reached": {instance: "1111", says: "its agent is lab, at " + labAddress + "."},
		"this computer":            {instance: "0000", says: "That is the agent of this computer."},
		"another agent":            {instance: "2222"},
		"one that does not tell":   {},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			f.local.Instance, f.lab.Instance = "0000", "1111"
			f.restart(t)
			f.add(t)
			again := hubtest.New("itself")
			again.Instance = c.instance
			f.connector.Machine(other, again)
			f.connector.Found = c.found
			begun, err := f.AddAgent(hub.AgentRequest{Address: other, Name: "twin"})
			op := f.ended(t, begun, err)
			if c.says == "" {
				if op.State != hub.OperationDone || op.Agent != "twin" || len(f.Agents()) != 3 {
					t.Fatalf("%+v", op)
				}
				return
			}
			if session.CodeOf(op.Error) != "agent_call_conflict" || !strings.Contains(op.Error.Error(), c.says) ||
				op.Agent != "" {
				t.Errorf("%+v", op)
			}
			if agents := f.Agents(); len(agents) != 2 {
				t.Errorf("%+v", agents)
			}
			if c.found != "" && f.connector.Remote(other) != nil {
				t.Error("it was opened all the same")
			}
		})
	}
}
