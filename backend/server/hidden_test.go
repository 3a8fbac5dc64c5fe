package server

import (
	"encoding/json"
	"strings"
	"testing"

	"slipway/backend/hub"
	"slipway/backend/session"
)

func TestNothingSecretLeavesTheServer(t *testing.T) {
	spec := session.Spec{Env: []session.EnvVar{{Name: "HF_TOKEN", Value: "hush"}}}
	answers := map[string]any{
		"a session":  sessionOut(session.Session{Spec: spec}, nil, nil),
		"a recent":   recentOut(hub.Recent{Spec: spec}),
		"an image":   imageOut(session.Image{Owners: []string{"hush"}, UsedBy: []session.ImageUser{{Owner: "hush"}}}),
		"a folder":   folderOut(session.Folder{UsedBy: []session.FolderUser{{Owner: "hush"}}}),
		"a snapshot": snapshotOut(hub.Snapshot{Sessions: []session.Session{{Spec: spec}}}),
	}
	for name, answer := range answers {
		text, err := json.Marshal(complete(answer))
		if err != nil || strings.Contains(string(text), "hush") {
			t.Errorf("%s tells a secret: %s, %v", name, text, err)
		}
	}
	if spec.Env[0].Value != "hush" {
		t.Error("what the hub knows was changed")
	}
}
