package peer

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMain makes the test program one that connects to a socket and waits for
// its end, or ends at once.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && (os.Args[1] == "stay" || os.Args[1] == "leave") {
		conn, err := net.Dial("unix", os.Args[2])
		if err != nil {
			os.Exit(1)
		}
		if os.Args[1] == "stay" {
			_, _ = conn.Read(make([]byte, 1)) // until the other end has seen enough
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// met starts this program as told and returns what is found out about it.
func met(t *testing.T, how string, as *syscall.SysProcAttr) (*Process, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	child := exec.Command(os.Args[0], how, path)
	child.SysProcAttr = as
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	conn, err := listener.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(); _ = child.Wait() })
	if how == "leave" {
		_ = child.Wait() // its number is free from here on
	}
	p, err := Of(conn)
	if err == nil {
		t.Cleanup(func() { _ = p.Close() })
		if p.PID != child.Process.Pid || p.UID != os.Getuid() {
			t.Errorf("it is process %d of user %d", p.PID, p.UID)
		}
	}
	return p, err
}

func TestAProcessBesideThisOneIsKnown(t *testing.T) {
	p, err := met(t, "stay", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Beside(); err != nil {
		t.Error(err)
	}
	if got := p.Capable(unix.CAP_SETUID); got != (os.Getuid() == 0) {
		t.Errorf("it may change its user: %v", got)
	}
}

func TestAProcessThatHasEndedIsNotTakenForAnother(t *testing.T) {
	if _, err := met(t, "leave", nil); !errors.Is(err, ErrUnknown) {
		t.Errorf("%v", err)
	}
}

func TestAProcessInAContainerIsElsewhere(t *testing.T) {
	uid := []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	gid := []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	for name, flags := range map[string]uintptr{
		"a user namespace": syscall.CLONE_NEWUSER, "a mount namespace": syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		"a process namespace": syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID,
	} {
		t.Run(name, func(t *testing.T) {
			p, err := met(t, "stay", &syscall.SysProcAttr{Cloneflags: flags, UidMappings: uid, GidMappings: gid})
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Beside(); !errors.Is(err, ErrElsewhere) {
				t.Errorf("%v", err)
			}
		})
	}
}
