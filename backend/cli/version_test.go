package cli

import (
	"net/http"
	"strings"
	"testing"

	"slipway/backend/session"
	"slipway/backend/updates"
)

func TestVersionChecksForANewerOne(t *testing.T) {
	f := newPlane(t)
	offer := updates.Offer{Address: "https://host.example/latest.json", Asked: &noon,
		Advice: []session.Phrase{session.Say("upgradeRPM", session.Fill("files", "https://host.example/files/"))}}
	f.handle("POST /api/v1/updates", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, offer) })
	const own = "Slipway  1.2.3 (abc, go1.26, linux/amd64)\n"
	if got := f.run(t, "version", "--check"); got.code != ExitOK || got.stdout != own+"Newer    none\n" {
		t.Errorf("%+v", got)
	}
	offer.Newer = &updates.Release{Version: "1.3.0", Date: "2026-11-27", Notes: "### New\n- Flight.\n"}
	if got := f.run(t, "version", "--check"); got.code != ExitOK || got.stdout != own+
		"Newer    1.3.0 of 2026-11-27\nUpgrade  This copy is from an .rpm package: sudo dnf upgrade slipway, or "+
		"install the .rpm from https://host.example/files/.\n\n### New\n- Flight.\n" {
		t.Errorf("%+v", got)
	}
	said := session.Say("updateNoAddress")
	offer = updates.Offer{Advice: offer.Advice, Problem: &session.Error{Code: session.CodeSettingsInvalid,
		Message: said.English(), Hint: "Set it.", Said: []session.Phrase{said}}}
	if got := f.run(t, "version", "--check"); got.code == ExitOK || got.stdout != "" ||
		got.stderr != "slipway: "+said.English()+"\n  Set it.\n  (settings_update_invalid)\n" {
		t.Errorf("%+v", got)
	}
}

func TestVersionShowsTheLicencesOfOthers(t *testing.T) {
	got := newPlane(t).run(t, "version", "--licenses")
	for _, want := range []string{"github.com/wailsapp/wails/v2", "github.com/docker/docker", "react", "Pyodide",
		"Mozilla Public License Version 2.0", "SIL OPEN FONT LICENSE", "PYTHON SOFTWARE FOUNDATION LICENSE"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if got.code != ExitOK || got.stderr != "" {
		t.Errorf("exit %d, %q", got.code, got.stderr)
	}
}
