package provision

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"slipway/backend/session"
)

func options(r *told) Options {
	return Options{Programs: thisProgram{}, Version: "2.0 beta/1", Report: r, Anyway: true}
}

func TestInstallBringsAndStartsOnce(t *testing.T) {
	a, r := newAccount(t), &told{}
	opts := options(r)
	opts.DockerHost = "unix:///run/other docker.sock"
	done, err := Install(t.Context(), a, opts)
	if err != nil || !done.Changed || done.Status.Version != "2" {
		t.Fatalf("%+v, %v", done, err)
	}
	dir := filepath.Join(a.home, ".local/share/slipway")
	if done.Findings.Dir != dir || !strings.HasPrefix(filepath.Base(done.Program), "slipway-2.0-beta-1-") {
		t.Errorf("it is at %s", done.Program)
	}
	if info, err := os.Stat(done.Program); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	if left, _ := filepath.Glob(dir + "/bin/.*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	asked, err := os.ReadFile(dir + "/asked")
	if err != nil || !strings.HasSuffix(string(asked), " switch --env DOCKER_HOST=unix:///run/other docker.sock") {
		t.Errorf("it was asked to %s, %v", asked, err)
	}
	if r.total == 0 || r.done != r.total || r.steps["upload"].Result != session.CheckOK ||
		r.steps["start"].Result != session.CheckOK {
		t.Errorf("told %d of %d, %+v", r.done, r.total, r.steps)
	}
	t.Run("again, nothing goes over", func(t *testing.T) {
		r.total = 0
		again, err := Install(t.Context(), a, opts)
		if err != nil || r.total != 0 || r.steps["upload"].Result != stepSkipped || again.Findings.Running == nil ||
			again.Findings.Installed.Version != "2" {
			t.Errorf("%+v, %v; told %+v", again, err, r.steps)
		}
	})
	t.Run("a failure there is told as it was there", func(t *testing.T) {
		a.env = append(a.env, "FAKE_FAILS=1")
		_, err := Install(t.Context(), a, opts)
		if session.CodeOf(err) != "agent_install_failed" || r.steps["start"].Result != session.CheckFailed ||
			r.steps["start"].Remedy != "Look." {
			t.Errorf("%v; told %+v", err, r.steps["start"])
		}
	})
	t.Run("removed, nothing is left", func(t *testing.T) {
		if err := Remove(t.Context(), a, opts); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s is there: %v", dir, err)
		}
		if err := Remove(t.Context(), a, opts); err != nil ||
			r.steps["remove"].Result != stepSkipped {
			t.Errorf("where nothing is: %v; told %+v", err, r.steps["remove"])
		}
	})
}

func TestCutUploadLeavesNothingHalf(t *testing.T) {
	a, r := newAccount(t), &told{}
	a.cut = 1000
	_, err := Install(t.Context(), a, options(r))
	if session.CodeOf(err) != "agent_connect_lost" || r.steps["upload"].Result != session.CheckFailed {
		t.Fatalf("%v; told %+v", err, r.steps)
	}
	if there, _ := filepath.Glob(a.home + "/.local/share/slipway/bin/slipway*"); len(there) > 0 {
		t.Errorf("there is %v", there)
	}
	a.cut = 0
	if done, err := Install(t.Context(), a, options(r)); err != nil || !done.Changed {
		t.Errorf("tried again: %+v, %v", done, err)
	}
}

func TestUploadThatStandsStillIsGivenUp(t *testing.T) {
	a, r := newAccount(t), &told{}
	a.hang = true
	var found Findings
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		w := work{remote: a, opts: options(r)}
		began := time.Now()
		err := w.bring(t.Context(), found, program{here: self, there: a.home + "/program", name: "slipway-1"})
		if session.CodeOf(err) != "agent_install_failed" || r.steps["upload"].Result != session.CheckFailed ||
			time.Since(began) != stallTime {
			t.Errorf("%v after %s; told %+v", err, time.Since(began), r.steps)
		}
	})
}

func TestProbeIsOneRoundTripAndChangesNothing(t *testing.T) {
	a := newAccount(t)
	found, err := Probe(t.Context(), a, Options{DockerHost: "unix:///none.sock"})
	if err != nil || a.runs != 1 {
		t.Fatalf("%d runs, %v", a.runs, err)
	}
	if found.OS != "linux" || found.Home != a.home || found.Folder != FolderOK || found.DiskTotal == 0 ||
		found.Installed != nil || found.DockerHost != "unix:///none.sock" {
		t.Errorf("%+v", found)
	}
	if found.Clock.Abs() > mostSkew || found.UID != os.Getuid() {
		t.Errorf("%+v", found)
	}
	if left, _ := os.ReadDir(a.home); len(left) > 0 {
		t.Errorf("it left %v", left)
	}
	t.Run("without Docker it says how to get it", func(t *testing.T) {
		err := found.Err()
		if code := session.CodeOf(err); code != "agent_install_failed" ||
			session.AsError(err, "").Hint == "" {
			t.Errorf("%v", err)
		}
		if _, err := Install(t.Context(), a, Options{DockerHost: "unix:///none.sock"}); session.CodeOf(
			err) != session.CodeOf(found.Err()) {
			t.Errorf("install: %v", err)
		}
	})
	t.Run("a shell that talks is told of", func(t *testing.T) {
		a.noise = "Welcome!\n"
		if _, err := Probe(t.Context(), a, Options{}); session.CodeOf(err) != "agent_install_failed" {
			t.Errorf("%v", err)
		}
	})
	t.Run("a folder of one's own", func(t *testing.T) {
		a.noise = ""
		found, err := Probe(t.Context(), a, Options{Dir: a.home + "/with space"})
		if err != nil || found.Dir != a.home+"/with space" {
			t.Errorf("%+v, %v", found, err)
		}
	})
	t.Run("whoever gives up gets that back", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := Probe(ctx, cancelled{}, Options{}); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}

func TestProgramMustFitTheMachine(t *testing.T) {
	if _, err := (Beside{Dir: t.TempDir()}).Program("linux", "arm64"); session.CodeOf(
		err) != "agent_install_failed" || session.AsError(err, "").Hint == "" {
		t.Errorf("%v", err)
	}
	dir := t.TempDir()
	for name, machine := range map[string]byte{"slipway-linux-arm64": 183, "slipway-linux-amd64": 62} {
		if err := os.WriteFile(filepath.Join(dir, name), header(machine), 0o600); err != nil {
			t.Fatal(err)
		}
		arch := strings.TrimPrefix(name, "slipway-linux-")
		if path, err := (Beside{Dir: dir}).Program("linux", arch); err != nil || filepath.Base(path) != name {
			t.Errorf("%s: %s, %v", arch, path, err)
		}
	}
	packaged := t.TempDir()
	kept := filepath.Join(packaged, "lib", "slipway", "slipway-linux-arm64")
	if err := errors.Join(os.MkdirAll(filepath.Dir(kept), 0o700), os.WriteFile(kept, header(183), 0o600)); err != nil {
		t.Fatal(err)
	}
	if path, err := (Beside{Dir: filepath.Join(packaged, "bin")}).Program("linux", "arm64"); err != nil ||
		path != kept {
		t.Errorf("as a package keeps it: %s, %v", path, err)
	}
	self := filepath.Join(t.TempDir(), "other-build")
	if err := os.WriteFile(self, header(183), 0o600); err != nil {
		t.Fatal(err)
	}
	if path, err := (Beside{Dir: dir, Self: self}).Program("linux", "arm64"); err != nil || path != self {
		t.Errorf("what runs goes before what lies beside it, which may be of another build: %s, %v", path, err)
	}
	if err := os.Rename(filepath.Join(dir, "slipway-linux-amd64"),
		filepath.Join(dir, "slipway-linux-arm64")); err != nil {
		t.Fatal(err)
	}
	if _, err := (Beside{Dir: dir}).Program("linux", "arm64"); session.CodeOf(err) != "agent_install_failed" {
		t.Errorf("another machine's under that name: %v", err)
	}
}

// header is the smallest program for a machine that can be looked at.
func header(machine byte) []byte {
	h := make([]byte, 64)
	copy(h, "\x7fELF\x02\x01\x01")
	h[16], h[18], h[20], h[52], h[54], h[58] = 2, machine, 1, 64, 56, 64
	return h
}
