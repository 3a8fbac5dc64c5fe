//go:build linux

package docker_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway/backend/engine"
	"slipway/backend/engine/docker"
	"slipway/backend/engine/enginetest"
	"slipway/backend/session"
)

// smallDaemon starts a daemon of the test's own whose disk is easily full, and
// returns its address and the directory of its data.
func smallDaemon(t *testing.T) (host, data string) {
	t.Helper()
	enginetest.RequireDocker(t)
	state := t.TempDir()
	script := func(args ...string) string {
		cmd := exec.Command("../../../build/ci/"+args[0], args[1:]...)
		cmd.Env = append(os.Environ(), "SLIPWAY_DOCKERD="+state, "SLIPWAY_DOCKERD_SIZE=40m", "DOCKER_HOST="+host)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	t.Cleanup(func() { script("dockerd.sh", "stop") })
	_, host, _ = strings.Cut(script("dockerd.sh", "start"), "=")
	script("images.sh", "static")
	return host, ofDaemon(host, filepath.Join("state", "data"))
}

// ofDaemon is the path of something that dockerd.sh keeps beside the socket of a daemon.
func ofDaemon(host, name string) string {
	return filepath.Join(filepath.Dir(strings.TrimPrefix(host, "unix://")), name)
}

// asRoot is a command as the user that the daemon runs as.
func asRoot(name string, args ...string) *exec.Cmd {
	if os.Getuid() != 0 {
		name, args = "sudo", append([]string{name}, args...)
	}
	return exec.Command(name, args...)
}

// fill uses up the small disk that a directory is on.
func fill(t *testing.T, dir string) {
	t.Helper()
	asRoot("dd", "if=/dev/zero", "of="+filepath.Join(dir, "ballast"), "bs=64k", "count=1000").
		Run() //nolint:errcheck // it ends when the disk is full
}

func TestFullDisk(t *testing.T) {
	host, data := smallDaemon(t)
	e := open(t, docker.Config{Host: host, Instance: instanceOf(t)})
	r := newRegistry(t, 1, 3_000_000)
	c := newContainer(instanceOf(t), "")
	c.Image = enginetest.ImageStatic
	fill(t, data)

	t.Run("create says so and leaves nothing", func(t *testing.T) {
		_, err := e.Create(t.Context(), c)
		wantCode(t, err, "disk_write_no-space")
	})
	t.Run("pull says so", func(t *testing.T) {
		_, err := e.Pull(t.Context(), r.ref, engine.Login{Stored: true}, func(session.Pull) {})
		wantCode(t, err, "disk_write_no-space")
	})
	t.Run("once there is room again everything goes on", func(t *testing.T) {
		if out, err := asRoot("rm", filepath.Join(data, "ballast")).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		id, err := e.Create(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Start(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		conn, err := e.Guest(t.Context(), id)
		echo(t, conn, err)
	})
	t.Run("a daemon that is stopped ends what waits for it", func(t *testing.T) {
		id, err := e.Create(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		watch := make(chan error, 1)
		go func() { watch <- e.Watch(context.Background(), func(engine.State) {}) }()
		stopDaemon(t, host)
		select {
		case err := <-watch:
			wantCode(t, err, "engine_connect_unavailable")
		case <-time.After(2 * time.Minute):
			t.Error("the watch goes on without its daemon")
		}
		wantCode(t, e.Start(t.Context(), id), "engine_connect_unavailable")
	})
}

// stopDaemon ends a daemon by the process that listens on its socket.
func stopDaemon(t *testing.T, host string) {
	t.Helper()
	pid, err := os.ReadFile(ofDaemon(host, "docker.pid"))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := asRoot("kill", "-9", strings.TrimSpace(string(pid))).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
