package docker

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// dialVariable holds the socket that a process of a test connects to: see TestMain.
const dialVariable = "SLIPWAY_TEST_DIAL"

// Processes of the session's person reach the socket that the guest dials.
func TestOnlyTheGuestIsTrusted(t *testing.T) {
	if os.Getuid() != 0 {
		if testing.Short() {
			t.Skip("takes other users' places, which needs root")
		}
		t.Fatal("this test takes other users' places and needs root; use -short to leave it out")
	}
	for _, c := range []struct {
		name  string
		as    *syscall.SysProcAttr
		ended bool
		want  bool
		by    []string // the command that starts it
	}{
		{"root of the container, with its capabilities", &syscall.SysProcAttr{}, false, true, nil},
		{"an administrator, who is root without one of them", &syscall.SysProcAttr{}, false, false,
			[]string{"setpriv", "--inh-caps=-setpcap", "--bounding-set=-setpcap"}},
		{"a person", &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1234, Gid: 1234}}, false, false, nil},
		{"a person who got the capability", &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1234,
			Gid: 1234}, AmbientCaps: []uintptr{unix.CAP_SETPCAP}}, false, false, nil},
		{"a person in a user namespace of their own", &syscall.SysProcAttr{
			Cloneflags: unix.CLONE_NEWUSER, Credential: &syscall.Credential{Uid: 0, Gid: 0, NoSetGroups: true},
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: 1234,
				Size: 1}}, GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: 1234, Size: 1}},
		}, false, false, nil},
		{"one whose number is root's, in a user namespace", &syscall.SysProcAttr{
			Cloneflags: unix.CLONE_NEWUSER, UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0,
				Size: 1}}, GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}},
		}, false, false, nil},
		{"one that has ended", &syscall.SysProcAttr{}, true, false, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join("/tmp", fmt.Sprintf("slipway-link-%d.sock", os.Getpid()))
			listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close() //nolint:errcheck // only for the test
			if err := os.Chmod(path, 0o777); err != nil {
				t.Fatal(err)
			}
			by := append(c.by, readable(t))
			dialer := exec.Command(by[0], by[1:]...) //nolint:gosec // of the table above
			dialer.Env = append(os.Environ(), dialVariable+"="+path)
			dialer.SysProcAttr = c.as
			in, err := dialer.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := dialer.Start(); err != nil {
				t.Fatal(err)
			}
			conn, err := listener.AcceptUnix()
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close() //nolint:errcheck // only for the test
			if c.ended {
				in.Close() //nolint:errcheck // it ends
				for !isZombie(dialer.Process.Pid) {
					runtime.Gosched()
				}
			}
			if got := trusted(conn); got != c.want {
				t.Errorf("trusted: %t", got)
			}
			in.Close() //nolint:errcheck // it ends
			if err := dialer.Wait(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// readable copies this program to where every user may run it.
func readable(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "slipway-link")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) }) //nolint:errcheck // a leftover harms nobody
	data, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "dial"), data, 0o755)
	}
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "dial")
}

func isZombie(pid int) bool {
	var info unix.Siginfo
	return unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil) == nil && info.Signo != 0
}
