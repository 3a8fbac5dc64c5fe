package daemon

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway/backend/place"
	"slipway/backend/session"
)

// opened serves a folder whose sockets everybody may reach as far as modes tell,
// and returns a program that others can run.
func opened(t *testing.T) (home place.Home, program string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "open-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	newHome(t)
	t.Setenv("XDG_RUNTIME_DIR", dir)
	home = place.Home{Dir: filepath.Join(dir, "home")}
	sockets, err := Listen(home, nil, discard())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, sockets.Control, asDaemon(&fake{home: home}), discard()) }()
	go echo(sockets.Tunnel)
	t.Cleanup(func() { cancel(); <-served; _ = sockets.Close() })
	for _, name := range []string{tunnelSocket, controlSocket} {
		real := evaluated(home.Join(name))
		if info, err := os.Stat(real); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
		if info, err := os.Stat(filepath.Dir(real)); err != nil || info.Mode().Perm() != 0o700 ||
			filepath.Dir(real) == home.Dir {
			t.Errorf("the directory of %s: %v, %v", real, info, err)
		}
	}
	for _, name := range []string{tunnelSocket, controlSocket} {
		real := evaluated(home.Join(name))
		for _, path := range []string{dir, home.Dir, filepath.Dir(real), real} {
			if err := os.Chmod(path, 0o777); err != nil {
				t.Fatal(err)
			}
		}
	}
	program = filepath.Join(dir, "stranger")
	if err := errors.Join(copyFile(evaluatedSelf(t), program), os.Chmod(program, 0o755)); err != nil {
		t.Fatal(err)
	}
	return home, program
}

func TestStrangersAreTurnedAway(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs root")
	}
	if os.Getuid() != 0 {
		t.Fatal("to be another user and in other namespaces it needs root, as in CI")
	}
	home, program := opened(t)
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}}
	for name, c := range map[string]struct {
		as   syscall.SysProcAttr
		code session.Code // as Slipway's own client tells it; empty: whatever
	}{
		"another user": {as: syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534,
			Gid: 65534}}},
		"another mount namespace": {syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS},
			"agent_connect_forbidden"},
		"another process namespace": {as: syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}},
		"another user namespace": {as: syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: ids,
			GidMappings: ids}},
		"all of them, as a container has": {as: syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER |
			syscall.CLONE_NEWNS | syscall.CLONE_NEWPID, UidMappings: ids, GidMappings: ids}},
	} {
		t.Run(name, func(t *testing.T) {
			stranger := exec.Command(program, "stranger", home.Dir)
			stranger.Dir = "/"
			stranger.SysProcAttr = &c.as
			out, err := stranger.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "refused "+string(c.code)) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	t.Run("its owner is let in", func(t *testing.T) {
		if _, err := Connect(t.Context(), home); err != nil {
			t.Error(err)
		}
	})
}

// A runtime directory goes with its person's last login, and temporary files go
// with their age, while the agent runs on.
func TestSocketsThatWereRemovedAreMadeAgain(t *testing.T) {
	home, _ := opened(t)
	for name, remove := range map[string]func() error{
		"the runtime directory": func() error {
			at := filepath.Dir(evaluated(home.Join(controlSocket)))
			t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
			return os.RemoveAll(at)
		},
		"the link in the home": func() error { return os.Remove(home.Join(controlSocket)) },
	} {
		if err := remove(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
			_, err := Connect(t.Context(), home)
			if err == nil {
				break
			}
			if !errors.Is(err, ErrNotRunning) || time.Now().After(deadline) {
				t.Fatalf("%s: %v", name, err)
			}
		}
		conn, err := Dial(t.Context(), home)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
}

// An agent of a version that had its sockets in the home itself is found, and
// its programs find a newer one, so that either can replace the other.
func TestVersionsWithTheirSocketsInTheHomeAreFoundAndFind(t *testing.T) {
	home := newHome(t)
	if err := home.Make(); err != nil {
		t.Fatal(err)
	}
	listener, err := listenUnix(home.Join(controlSocket))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, listener, asDaemon(&fake{home: home, role: RoleAgent}), discard()) }()
	if _, err := Connect(t.Context(), home); err != nil {
		t.Errorf("the old one is not found: %v", err)
	}
	cancel()
	<-served
	sockets, err := Listen(home, nil, discard())
	if err != nil {
		t.Fatalf("what the old one left is in the way: %v", err)
	}
	defer sockets.Close() //nolint:errcheck // the test ends
	for _, name := range []string{tunnelSocket, controlSocket} {
		conn, err := dialOld(home.Join(name))
		if err != nil {
			t.Errorf("an old program does not find %s: %v", name, err)
			continue
		}
		_ = conn.Close()
	}
	if err := sockets.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(home.Join("*.sock*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if left, _ := filepath.Glob(filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
