package server_test

import (
	"net/http"
	"testing"

	"slipway/backend/api"
	"slipway/backend/session"
)

func TestSettingsFile(t *testing.T) {
	w := start(t)
	find := func(file api.SettingsFile, name string) api.Setting {
		for _, s := range file.Settings {
			if s.Name == name {
				return s
			}
		}
		t.Fatalf("there is no setting %s", name)
		return api.Setting{}
	}
	want := func(want, got int) {
		t.Helper()
		if got != want {
			t.Fatalf("status %d, want %d", got, want)
		}
	}
	var file api.SettingsFile
	want(http.StatusOK, w.call(t, http.MethodPatch, "/api/v1/settings/file/gpu.quantum", `{"value":"0.25"}`, &file))
	if s := find(file, "gpu.quantum"); s.Value != "0.25" || !s.Set || !s.Restart {
		t.Errorf("after the change %+v", s)
	}
	want(http.StatusOK, w.call(t, http.MethodPatch, "/api/v1/settings/file/gpu.quantum", `{"value":null}`, &file))
	if s := find(file, "gpu.quantum"); s.Value != "0.1" || s.Set {
		t.Errorf("after it was taken out %+v", s)
	}
	var problem session.Error
	want(http.StatusUnprocessableEntity, w.call(t, http.MethodPatch, "/api/v1/settings/file/gpu.quantum",
		`{"value":"7"}`, &problem))
	if problem.Code != "settings_update_invalid" || len(problem.Fields) != 1 {
		t.Errorf("problem %+v", problem)
	}
	want(http.StatusUnprocessableEntity, w.call(t, http.MethodPatch, "/api/v1/settings/file/colour", `{"value":"7"}`,
		&problem))
}
