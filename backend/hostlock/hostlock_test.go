//go:build unix

package hostlock

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test program try the lock as another user.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "try" {
		release, err := Lock{Path: os.Args[2], Patience: time.Second}.Acquire(context.Background())
		if err != nil {
			os.Stderr.WriteString(err.Error())
			os.Exit(1)
		}
		release()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestOneAtATime(t *testing.T) {
	l := Lock{Path: filepath.Join(t.TempDir(), "lock"), Patience: time.Minute}
	inside, most := 0, 0
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				release, err := l.Acquire(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				inside++
				most = max(most, inside)
				mu.Unlock()
				mu.Lock()
				inside--
				mu.Unlock()
				release()
			}
		})
	}
	all.Wait()
	if most != 1 {
		t.Errorf("%d were in at once", most)
	}
}

func TestHogsAreNotWaitedForForEver(t *testing.T) {
	l := Lock{Path: filepath.Join(t.TempDir(), "lock"), Patience: 50 * time.Millisecond}
	release, err := l.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if _, err := l.Acquire(t.Context()); !errors.Is(err, ErrHeld) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (Lock{Path: l.Path, Patience: time.Minute}).Acquire(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestWhatIsNoLockIsNotTaken(t *testing.T) {
	for name, make := range map[string]func(path string) error{
		"a link":   func(path string) error { return os.Symlink("/etc/passwd", path) },
		"a pipe":   func(path string) error { return syscall.Mkfifo(path, 0o666) },
		"a folder": func(path string) error { return os.Mkdir(path, 0o777) },
	} {
		path := filepath.Join(t.TempDir(), "lock")
		if err := make(path); err != nil {
			t.Fatal(err)
		}
		if release, err := (Lock{Path: path, Patience: time.Second}).Acquire(t.Context()); err == nil {
			release()
			t.Errorf("%s was taken for a lock", name)
		}
	}
}

// TestUsersShareIt needs root to be several users, as in CI.
func TestUsersShareIt(t *testing.T) {
	if os.Getuid() != 0 {
		t.Log("only root can be another user")
		return
	}
	dir, err := os.MkdirTemp("/tmp", "hostlock-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "program")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, data, 0o755); err != nil {
		t.Fatal(err)
	}
	as := func(user uint32) error {
		cmd := exec.Command(program, "try", filepath.Join(dir, "lock"))
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
		out, err := cmd.CombinedOutput()
		if err != nil {
			return errors.New(string(out))
		}
		return nil
	}
	for _, user := range []uint32{40001, 40002, 0} { // the first makes it
		if err := as(user); err != nil {
			t.Errorf("user %d: %v", user, err)
		}
	}
	release, err := Lock{Path: filepath.Join(dir, "lock")}.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := as(40001); err == nil {
		t.Error("another user took what is taken")
	}
	release()
}

func TestEveryUserLooksAtOnePlace(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	if path := Of("slipway-test.lock").Path; !filepath.IsAbs(path) || filepath.Base(path) != "slipway-test.lock" {
		t.Errorf("%s", path)
	}
	if info, err := os.Stat("/tmp"); err == nil && info.Mode()&os.ModeSticky != 0 &&
		filepath.Dir(Of("x").Path) == os.Getenv("TMPDIR") {
		t.Error("it depends on whose environment it is")
	}
}
