package agent

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"slipway/backend/engine/enginetest"
	"slipway/backend/session"
)

func TestFilesAreReachedAsTheUserOfTheSession(t *testing.T) {
	r := newReal(t, t.TempDir())
	s := r.launch(session.Spec{Image: enginetest.ImageMinimal})
	r.awaitRunning(s.ID)
	place := session.Place{Session: s.ID}
	up := session.Upload{Path: "mine", Key: "k"}
	for range 2 { // the second time with a new helper
		if _, err := r.agent.WriteUpload(t.Context(), place, up, strings.NewReader("content")); err != nil {
			t.Fatal(err)
		}
		if _, err := r.agent.FinishUpload(t.Context(), place,
			session.FinishRequest{Upload: up,
				Finish: session.Finish{Size: 7, Conflict: session.ConflictReplace}}); err != nil {
			t.Fatal(err)
		}
		if out, code := r.exec(s.ID, "sh", "-c", `test "$(stat -c %U mine)" = work && cat mine`); code != 0 ||
			out != "content" {
			t.Errorf("inside it is %q, %d", out, code)
		}
		// What a program without capabilities may not see, its files do not show.
		for _, path := range []session.FilePath{"/proc/1/environ", "/proc/1/root/etc/hostname"} {
			from, err := r.agent.ReadFile(t.Context(), place, session.ReadRequest{Path: path})
			if err == nil {
				var got bytes.Buffer
				_, err = io.Copy(&got, from)
				from.Close()
				t.Errorf("%s was read: %q, %v", path, got.String(), err)
			} else if session.CodeOf(err) != "file_use_forbidden" {
				t.Errorf("%s: %v", path, err)
			}
		}
		out, _ := r.exec(s.ID, "sh", "-c",
			`for p in /proc/[0-9]*; do tr '\0' ' ' <$p/cmdline | grep -q 'exe file[s]' && kill -9 ${p#/proc/} && `+
				`echo killed; done; true`)
		if !strings.Contains(out, "killed") {
			t.Errorf("there was no helper: %q", out)
		}
	}
	err := r.agent.RemoveFile(t.Context(), place, "/.slipway/config.json", false)
	if err == nil {
		t.Error("the guest's own settings were removed")
	}
}
