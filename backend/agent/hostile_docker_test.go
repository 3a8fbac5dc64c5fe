package agent

import (
	"archive/tar"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"slipway/backend/engine/enginetest"
	"slipway/backend/session"
)

// An image with a link at /home would lead the guest into a mounted folder. The
// session does not run, and says why.
func TestASessionOfAHostileImageFailsOnDocker(t *testing.T) {
	host := enginetest.RequireDocker(t)
	const ref, stranger = "slipway-test/hostile-home:1", 4321
	docker := func(in []byte, args ...string) {
		t.Helper()
		run := exec.Command("docker", append([]string{"-H", host}, args...)...)
		run.Stdin = bytes.NewReader(in)
		if out, err := run.CombinedOutput(); err != nil {
			t.Fatalf("docker %v: %v: %s", args, err, out)
		}
	}
	var content bytes.Buffer
	w := tar.NewWriter(&content)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "home", Linkname: "x"}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	docker(content.Bytes(), "import", "-", ref)
	t.Cleanup(func() { docker(nil, "image", "rm", "--force", ref) })
	folder := t.TempDir()
	theirs := filepath.Join(folder, "theirs")
	if err := os.WriteFile(theirs, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(theirs, stranger, stranger); err != nil {
		t.Fatal(err)
	}
	r := newReal(t, t.TempDir())
	s := r.launch(session.Spec{Image: ref, Mounts: []session.Mount{{Source: folder, Target: "data"}}})
	s = r.await(s.ID, "ended", func(s session.Session) bool { return s.Status.Terminal() })
	if s.Status != session.Failed || s.Error == nil || s.Error.Code != "engine_guest_unsafe-image" ||
		!strings.Contains(s.Error.Message, "/home is a link") || s.Error.Hint == "" {
		t.Errorf("it ended as %s, %+v", s.Status, s.Error)
	}
	var stat syscall.Stat_t
	if err := syscall.Lstat(theirs, &stat); err != nil || stat.Uid != stranger || stat.Mode&0o777 != 0o600 {
		t.Errorf("the stranger's file is %d's with mode %o, %v", stat.Uid, stat.Mode, err)
	}
}
