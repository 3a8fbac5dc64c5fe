package server

import (
	"strings"
	"testing"

	"slipway/backend/session"
)

func TestNothingSecretLeavesTheServer(t *testing.T) {
	answers := map[string]any{
		"an image": imageOut(session.Image{Owners: []string{"hush"}, UsedBy: []session.ImageUser{{Owner: "hush"}}}),
		"a folder": folderOut(session.Folder{UsedBy: []session.FolderUser{{Owner: "hush"}}}),
	}
	for name, answer := range answers {
		text, err := encode(answer)
		if err != nil || strings.Contains(string(text), "hush") {
			t.Errorf("%s tells a secret: %s, %v", name, text, err)
		}
	}
}
