//go:build linux

package backend

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"slipway/backend/api"
	"slipway/backend/engine/enginetest"
	"slipway/backend/session"
)

// buildsHere launches a session of a project on the server, whose image the laptop builds, with the program's command.
func (l *laptop) buildsHere(ctx context.Context, t *testing.T, near string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "paper")
	enginetest.WriteFiles(t, dir, "Dockerfile", "FROM "+enginetest.ImageMinimal+"\nCOPY said /opt/said\n"+
		"RUN echo built >>/opt/said\n", "said", "one\n")
	up := func() string {
		return l.do("up", "--on", "lab", "--build", "here", "--cpu", "1", "--mem", "256m", dir, "cat", "/opt/said")
	}
	if got := up(); got != "one\nbuilt\n" {
		t.Fatalf("the file of the image is %q", got)
	}
	var there session.Project
	l.call("POST", "/api/v1/folders/paper/project?agent=lab", "{}", &there)
	t.Cleanup(func() { forget(t, []string{near, l.dockerHost}, there.Image) })
	if here := imageID(t, near, there.Image); !there.Present || imageID(t, l.dockerHost, there.Image) != here {
		t.Errorf("here it is %s, and there %+v", here, there)
	}
	var begun, ended api.Operation
	l.call("POST", "/api/v1/folders/paper/project/build?agent=lab", `{"where": "here"}`, &begun)
	eventually(ctx, t, "the image is built once more", func() bool {
		l.call("GET", "/api/v1/operations/"+begun.ID, "", &ended)
		return ended.EndedAt != nil
	})
	sent := slices.IndexFunc(ended.Steps, func(s api.OpStep) bool { return s.Name == "send" })
	if ended.State != "done" || sent < 0 || ended.Steps[sent].Detail != "0 B sent" {
		t.Errorf("once more it ended as %+v: %v", ended, ended.Error)
	}
	l.do("stop", "--force", "--wait", "--wait-timeout", "60s", "paper")
}
