package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"slipway/backend/api"
	"slipway/backend/session"
)

// upgradesAgents makes f answer upgrades; those of failing fail. It returns the agents that were asked for, in order.
func (f *plane) upgradesAgents(failing ...string) *[]string {
	f.serveAgents()
	asked := &[]string{}
	f.handle("POST /api/v1/agents/{agent}/upgrade", func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.PathValue("agent"))
		reply(w, http.StatusAccepted, api.Operation{ID: r.PathValue("agent"), Subject: r.PathValue("agent"),
			State: "running"})
	})
	f.handle("GET /api/v1/operations/{id}", func(w http.ResponseWriter, r *http.Request) {
		o := api.Operation{ID: r.PathValue("id"), State: "done", EndedAt: &noon, Revision: 1,
			Steps: []api.OpStep{{Name: "copy", Title: "Copy the program", State: "ok"}}}
		if slices.Contains(failing, o.ID) {
			o.State, o.Steps[0].State = "failed", "failed"
			o.Error = &session.Error{Code: session.CodeUnreachable, Message: o.ID + " does not answer.",
				Hint: "Switch it on."}
		}
		reply(w, http.StatusOK, o)
	})
	return asked
}

func TestAllAgentsAreUpgraded(t *testing.T) {
	f := newPlane(t)
	asked := f.upgradesAgents("cellar")
	got := f.run(t, "agent", "upgrade", "--all")
	if want := []string{"lab", "cellar", "attic"}; !slices.Equal(*asked, want) {
		t.Errorf("upgraded %v, want %v", *asked, want)
	}
	if got.code != ExitFailure || got.stdout != "2 upgraded, 1 failed.\n" {
		t.Errorf("%+v", got)
	}
	for _, want := range []string{"lab runs this version.\n", "attic runs this version.\n",
		"✗ failed   Copy the program", "cellar does not answer.\n  Switch it on.\n  (agent_connect_unavailable)\n"} {
		if !strings.Contains(got.stderr, want) {
			t.Errorf("%q is missing in\n%s", want, got.stderr)
		}
	}
	t.Run("as JSON", func(t *testing.T) {
		var ended []api.Operation
		got := f.run(t, "agent", "upgrade", "--all", "-o", "json")
		if err := json.Unmarshal([]byte(got.stdout), &ended); err != nil || len(ended) != 3 || got.code != ExitFailure {
			t.Errorf("%v: %+v", err, got)
		}
	})
}

func TestAgentsOfThisVersionAreLeftAlone(t *testing.T) {
	f := newPlane(t)
	asked := f.upgradesAgents()
	current := sampleAgents()[:2]
	current[1].Version, current[1].Upgrade = "1.2.3", ""
	f.handle("GET /api/v1/agents", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, current) })
	got := f.run(t, "agent", "upgrade", "--all")
	if got.code != ExitOK || len(*asked) > 0 || got.stdout != "0 upgraded, 0 failed.\n" ||
		got.stderr != "lab runs 1.2.3 already.\n" {
		t.Errorf("%v, %+v", *asked, got)
	}
}

func TestAnInterruptEndsTheUpgradeOfAll(t *testing.T) {
	f := newPlane(t)
	asked := f.upgradesAgents()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	ended := api.Operation{ID: "lab", State: "cancelled", EndedAt: &noon, Revision: 2}
	f.handle("GET /api/v1/operations/{id}", func(w http.ResponseWriter, _ *http.Request) {
		interrupt()
		reply(w, http.StatusOK, ended)
	})
	f.handle("POST /api/v1/operations/{id}/cancel", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, ended)
	})
	var stdout, stderr bytes.Buffer
	code := Main(ctx, testConfig(f.home, nil, &stdout, &stderr, []string{"agent", "upgrade", "--all"}))
	if code != ExitInterrupted || !slices.Equal(*asked, []string{"lab"}) {
		t.Errorf("exit %d after %v: %s", code, *asked, stderr.String())
	}
}

func TestUpgradeNeedsOneAgentOrAll(t *testing.T) {
	f := newPlane(t)
	for _, args := range [][]string{{"agent", "upgrade"}, {"agent", "upgrade", "lab", "--all"}} {
		if got := f.run(t, args...); got.code != ExitUsage {
			t.Errorf("%v: %+v", args, got)
		}
	}
}
