//go:build linux

package backend

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"slipway/backend/engine/enginetest"
	"slipway/backend/session"
	"slipway/gpu"
)

// An image whose links lead into a mounted folder would have the guest, which is
// root in the container, own or copy what is somebody else's there. The agent is
// an ordinary user's, as on a lab server.
func TestAHostileImageLeadsThePersonsAgentNowhere(t *testing.T) {
	docker := enginetest.RequireDocker(t)
	p := liveAt(t, docker)
	const stranger = 43211
	for name, c := range map[string]struct {
		link, target string
		refused      string // what the message names; empty: the session runs
	}{
		"the home's parent": {"home", "data", "/home is a link"},
		"the home":          {"home/work", "/data", "/home/work is a link"},
		"Slipway's folder":  {".slipway", "/data", "/.slipway is a link"},
		"the skeleton":      {"etc/skel", "/data", ""},
		"the users' file":   {"etc/passwd", "/data/passwd", ""},
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(p.dir, "home", "data", strings.ReplaceAll(c.link, "/", "-"))
			if err := errors.Join(os.Mkdir(folder, 0o755), os.Chown(folder, p.uid, p.uid)); err != nil {
				t.Fatal(err)
			}
			files := []string{filepath.Join(folder, ".bashrc"), filepath.Join(folder, "passwd")}
			for _, file := range files {
				if err := errors.Join(os.WriteFile(file, []byte("secret"), 0o600),
					os.Chown(file, stranger, stranger)); err != nil {
					t.Fatal(err)
				}
			}
			ended := p.visit(t, linkImage(t, docker, c.link, c.target), session.Mount{Source: folder, Target: "/data"})
			if c.refused != "" && (ended.Error == nil || ended.Error.Code != "engine_create_unsupported" ||
				!strings.Contains(ended.Error.Message, c.refused) || ended.Error.Hint == "") {
				t.Errorf("it ended as %s, %+v", ended.Status, ended.Error)
			}
			if c.refused == "" && ended.StartedAt == nil {
				t.Errorf("it did not run: %s, %+v", ended.Status, ended.Error)
			}
			for _, file := range files {
				var stat syscall.Stat_t
				if err := syscall.Lstat(file, &stat); err != nil || stat.Uid != stranger || stat.Mode&0o777 != 0o600 {
					t.Errorf("%s is %d's with mode %o, %v", file, stat.Uid, stat.Mode, err)
				}
				if data, err := os.ReadFile(file); err != nil || string(data) != "secret" {
					t.Errorf("%s holds %q, %v", file, data, err)
				}
			}
		})
	}
}

// visit launches a session, looks for the secret in its home once it runs, ends
// it, and returns it as it is then.
func (p *strangeHome) visit(t *testing.T, image string, mount session.Mount) (now session.Session) {
	t.Helper()
	agent, ctx := p.agent(), context.WithoutCancel(t.Context())
	launched, err := agent.Launch(ctx, session.LaunchRequest{Spec: session.Spec{
		Image: image, Mounts: []session.Mount{mount}, Resources: session.Resources{CPU: 1, Memory: 256 * gpu.MiB},
	}})
	if err != nil {
		t.Fatal(err)
	}
	look := func() { now, err = agent.Get(ctx, launched.ID) }
	eventually(ctx, t, "the session runs or has ended", func() bool {
		look()
		return err == nil && (now.Status == session.Running || now.Status.Terminal())
	})
	if now.Status == session.Running {
		place := session.Place{Session: launched.ID}
		if file, err := agent.ReadFile(ctx, place, session.ReadRequest{Path: "/home/work/.bashrc"}); err == nil {
			if data, _ := io.ReadAll(file); bytes.Contains(data, []byte("secret")) {
				t.Error("the home has a copy of the stranger's file")
			}
			_ = file.Close()
		}
	}
	if _, err := agent.Terminate(ctx, launched.ID, true); err != nil && !now.Status.Terminal() {
		t.Error(err)
	}
	eventually(ctx, t, "the session has ended", func() bool {
		look()
		return err == nil && now.Status.Terminal()
	})
	return now
}

// linkImage makes an image that holds one link and no program.
func linkImage(t *testing.T, docker, link, target string) string {
	t.Helper()
	var content bytes.Buffer
	w := tar.NewWriter(&content)
	err := errors.Join(w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: link, Linkname: target}), w.Close())
	if err != nil {
		t.Fatal(err)
	}
	ref := "slipway-test/hostile-" + strings.Trim(strings.ReplaceAll(link, "/", "-"), ".") + ":1"
	run := func(in io.Reader, args ...string) {
		command := exec.Command("docker", append([]string{"-H", docker}, args...)...)
		command.Stdin = in
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("docker %v: %v: %s", args, err, out)
		}
	}
	run(&content, "import", "-", ref)
	t.Cleanup(func() { run(nil, "image", "rm", "--force", ref) })
	return ref
}
