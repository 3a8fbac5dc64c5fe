package cli

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"slipway/backend/api"
)

func sampleSettings() api.SettingsFile {
	return api.SettingsFile{
		Path: "/home/ada/.local/share/slipway/settings.json",
		Settings: []api.Setting{
			{Name: "theme", Kind: "text", Choices: []string{"system", "light", "dark"}, Text: "Light or dark.",
				Default: "system", Value: "dark", Variable: "SLIPWAY_THEME", Override: "dark"},
			{Name: "gpu.quantum", Kind: "number", Text: "The smallest share.", Default: "0.1", Value: "0.25", Set: true,
				Variable: "SLIPWAY_GPU_QUANTUM", Restart: true},
			{Name: "idle.lifetime", Kind: "text", Text: "The longest life.", Variable: "SLIPWAY_IDLE_LIFETIME",
				Restart: true},
		},
		Problems: []api.SettingProblem{{Line: 3, Name: "gpu.guard", Message: `"kill" is not a choice.`},
			{Name: "SLIPWAY_IDLE_CPU", Message: `"x" is not a number.`}},
	}
}

func TestSettings(t *testing.T) {
	f := newPlane(t)
	var sent []string
	f.handle("GET /api/v1/settings/file",
		func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, sampleSettings()) })
	f.handle("PATCH /api/v1/settings/file/{name}", func(w http.ResponseWriter, r *http.Request) {
		var update api.SettingUpdate
		if err := json.NewDecoder(r.Body).Decode(&update); err != nil {
			t.Error(err)
		}
		value := "-"
		if update.Value != nil {
			value = *update.Value
		}
		sent = append(sent, r.PathValue("name")+"="+value)
		reply(w, http.StatusOK, sampleSettings())
	})
	t.Run("the list says where each stands, and what is wrong by exiting with 1", func(t *testing.T) {
		got := f.run(t, "settings", "ls")
		if got.code != ExitFailure {
			t.Errorf("exit code %d", got.code)
		}
		golden(t, "settings", got.stdout)
	})
	t.Run("a change says when it takes effect", func(t *testing.T) {
		got := f.run(t, "settings", "set", "gpu.quantum", "0.25")
		if got.code != ExitOK || got.stdout != "gpu.quantum is 0.25.\n" ||
			!strings.Contains(got.stderr, "starts next") {
			t.Errorf("%+v", got)
		}
		if got := f.run(t, "settings", "unset", "theme"); got.code != ExitOK ||
			!strings.Contains(got.stderr, "SLIPWAY_THEME overrides") {
			t.Errorf("%+v", got)
		}
		if strings.Join(sent, " ") != "gpu.quantum=0.25 theme=-" {
			t.Errorf("sent %v", sent)
		}
	})
	t.Run("the shell is offered names, then choices", func(t *testing.T) {
		if got := f.run(t, "__complete", "settings", "set", "g"); !strings.Contains(got.stdout, "gpu.quantum\n") {
			t.Errorf("%+v", got)
		}
		if got := f.run(t, "__complete", "settings", "set", "theme", ""); !strings.HasPrefix(got.stdout,
			"system\nlight\ndark\n") {
			t.Errorf("%+v", got)
		}
	})
}
