package cli

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"slipway/backend/api"
	"slipway/backend/hub"
)

func TestMoveAlsoCopies(t *testing.T) {
	f := newPlane(t)
	f.sessions = sampleSessions()
	now := noon
	ended := api.Operation{ID: "o1", Kind: hub.SessionCopy, State: hub.OperationDone, EndedAt: &now}
	f.handle("GET /api/v1/sessions/{id}/relocation", func(w http.ResponseWriter, r *http.Request) {
		plan := hub.RelocationPlan{Agent: r.FormValue("agent"), Files: 3}
		if r.FormValue("copy") == "1" {
			plan.Name = "train-a-copy"
			if name := r.FormValue("name"); name != "" {
				plan.Name = name
			}
		}
		reply(w, http.StatusOK, plan)
	})
	var asked api.Relocating
	f.handle("POST /api/v1/sessions/{id}/relocation", func(w http.ResponseWriter, r *http.Request) {
		asked = api.Relocating{}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		reply(w, http.StatusAccepted, ended)
	})
	f.handle("GET /api/v1/operations/{id}", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, ended)
	})
	for line, want := range map[string]struct {
		asks  api.Relocating
		print string
	}{
		"move --yes train-a lab": {api.Relocating{Agent: "lab"}, "train-a runs on lab now.\n"},
		"move --copy --yes train-a lab": {api.Relocating{Agent: "lab", Copy: true, Name: "train-a-copy"},
			"train-a-copy runs on lab now.\n"},
		"move --copy --name twin --yes train-a lab": {api.Relocating{Agent: "lab", Copy: true, Name: "twin"},
			"twin runs on lab now.\n"},
	} {
		got := f.run(t, strings.Fields(line)...)
		if got.code != ExitOK || asked != want.asks || !strings.Contains(got.stdout, want.print) {
			t.Errorf("%s asks for %+v\n%+v", line, asked, got)
		}
	}
	for plan, want := range map[hub.RelocationPlan]string{
		{Agent: "lab", Files: 1}: "Its programs end. 1 file of its home and folders go with it (0 B), and what it " +
			"installed. Move a to lab?",
		{Agent: "lab", Files: 3, Name: "twin"}: "It keeps running; its processes and their memory are not copied. " +
			"3 files of its home and folders go with it (0 B), and what it installed. Copy a to lab as twin?",
	} {
		if got := moveQuestion("a", plan); got != want {
			t.Errorf("it asks %q", got)
		}
	}
}
