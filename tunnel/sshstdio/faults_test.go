//go:build unix

package sshstdio

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway/tunnel"
	"slipway/tunnel/askpass"
)

func TestJumpHostsAreTheConfigurations(t *testing.T) {
	p := newPlace(t)
	jump, lab := startServer(t, p), startServer(t, p)
	jumpKey, err := os.ReadFile(jump.hostKey + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	labKey, err := os.ReadFile(lab.hostKey + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	write(t, p.known, fmt.Sprintf("[127.0.0.1]:%d %s[127.0.0.1]:%d %s", jump.port, jumpKey, lab.port, labKey))
	p.configure(t, fmt.Sprintf("Host lab\n  HostName 127.0.0.1\n  Port %d\n  ProxyJump jump\nHost jump\n  HostName "+
		"127.0.0.1\n  Port %d\n  LocalForward 127.0.0.1:1 127.0.0.1:2\n", lab.port, jump.port))
	conn, err := p.remote(t, "lab", nil).Dial(soon(t), true)
	if err != nil {
		t.Fatal(err)
	}
	echo(t, conn)
	_ = conn.Close()
	jump.logins(t, 1)
	lab.logins(t, 1)
	t.Run("a jump host that does not let us pass", func(t *testing.T) {
		closed := startServer(t, p, "AllowTcpForwarding no")
		closedKey, err := os.ReadFile(closed.hostKey + ".pub")
		if err != nil {
			t.Fatal(err)
		}
		write(t, p.known, fmt.Sprintf("[127.0.0.1]:%d %s[127.0.0.1]:%d %s", closed.port, closedKey, lab.port, labKey))
		p.configure(t, fmt.Sprintf("Host lab\n  HostName 127.0.0.1\n  Port %d\n  ProxyJump jump\nHost jump\n  "+
			"HostName 127.0.0.1\n  Port %d\n", lab.port, closed.port))
		_, err = p.remote(t, "lab", nil).Dial(soon(t), true)
		wantCode(t, err, "agent_connect_unavailable")
	})
	t.Run("a jump host that is not known asks", func(t *testing.T) {
		write(t, p.known, fmt.Sprintf("[127.0.0.1]:%d %s", lab.port, labKey))
		p.configure(t, fmt.Sprintf("Host lab\n  HostName 127.0.0.1\n  Port %d\n  ProxyJump jump\nHost jump\n  "+
			"HostName 127.0.0.1\n  Port %d\n", lab.port, jump.port))
		person := &asker{answers: map[askpass.Kind][]string{askpass.KindHostKey: {"yes"}}}
		conn, err := p.remote(t, "lab", person).Dial(soon(t), false)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		echo(t, conn)
		if person.kinds() != "host-key" {
			t.Errorf("asked %s", person.kinds())
		}
	})
}

func TestForwardsAndCommandsOfTheConfigurationDoNotDisturb(t *testing.T) {
	p := newPlace(t)
	s := startServer(t, p)
	p.trust(t, s)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	p.configure(t, fmt.Sprintf("LocalForward %s 127.0.0.1:9\nExitOnForwardFailure yes\nRemoteCommand "+
		"tmux\nRequestTTY force\nCompression yes\nServerAliveInterval 1\nLogLevel QUIET\n",
		taken.Addr()))
	conn, err := p.remote(t, s.address(), nil).Dial(soon(t), true)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	echo(t, conn)
}

// sshOf is the process of a carrier's ssh.
func sshOf(conn net.Conn) *os.Process { return conn.(tunnel.Carrier).Conn.(*carrier).child.cmd.Process }

func TestAKilledSSHEndsItsCarrier(t *testing.T) {
	p := newPlace(t)
	s := startServer(t, p)
	p.trust(t, s)
	conn, err := p.remote(t, s.address(), nil).Dial(soon(t), true)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	echo(t, conn)
	if err := sshOf(conn).Kill(); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("reading ends with %v", err)
	}
}

func TestAStalledSSHHoldsNobody(t *testing.T) {
	p := newPlace(t)
	s := startServer(t, p)
	p.trust(t, s)
	conn, err := p.remote(t, s.address(), nil).Dial(soon(t), true)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := sshOf(conn).Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("reading ends with %v", err)
	}
	if _, err := conn.Write(make([]byte, 16<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("writing ends with %v", err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	select {
	case <-conn.(tunnel.Carrier).Conn.(*carrier).child.done: // by force, since it cannot hear
	case <-time.After(time.Minute):
		t.Error("ssh is still there")
	}
}

func TestAKilledSlipwayLeavesNoSSHBehind(t *testing.T) {
	p := newPlace(t)
	s := startServer(t, p)
	p.trust(t, s)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "SSHSTDIO_TEST_HOLD="+s.address(), "SSHSTDIO_TEST_CONFIG="+p.config,
		"TMPDIR="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var carrier, master int
	if _, err := fmt.Fscan(out, &carrier, &master); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(syscall.Kill(carrier, 0), syscall.Kill(master, 0)); err != nil {
		t.Fatalf("they are not there: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for _, pid := range []int{carrier, master} {
		waitFor(t, fmt.Sprintf("ssh %d is gone", pid), func() bool { return !running(pid) })
	}
}

// running reports whether a process is there and has not ended; one that has
// ended may wait for an init that does not look after orphans.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z")
}

func TestAClosedCarrierLeavesNothingBehind(t *testing.T) {
	p := newPlace(t)
	s := startServer(t, p)
	p.trust(t, s)
	pid := filepath.Join(t.TempDir(), "pid")
	r := p.remote(t, s.address(), nil, "sh", "-c", `echo $$ >"$0"; exec cat`, pid)
	conn, err := r.Dial(soon(t), true)
	if err != nil {
		t.Fatal(err)
	}
	echo(t, conn)
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	<-conn.(tunnel.Carrier).Conn.(*carrier).child.done
	number, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the far command is gone", func() bool {
		return exec.Command("kill", "-0", strings.TrimSpace(string(number))).Run() != nil
	})
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) && !errors.Is(err, io.EOF) {
		t.Errorf("reading after the end gives %v", err)
	}
	folder := r.folder
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its folder is still there: %v", err)
	}
	if _, err := r.Run(soon(t), []string{"true"}, nil); err == nil {
		t.Error("a command ran after the end")
	}
}

func TestAControlMasterOfThePersonIsUsedAndLeftAlone(t *testing.T) {
	p := newPlace(t)
	s := startServer(t, p)
	p.trust(t, s)
	socket := filepath.Join(t.TempDir(), "cm")
	p.configure(t, fmt.Sprintf("ControlPath %s\nControlMaster auto\nControlPersist yes\n", socket))
	r := p.remote(t, s.address(), nil)
	conn, err := r.Dial(soon(t), false)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if _, err := os.Stat(socket); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("we became the person's master: %v", err)
	}
	master := exec.Command("ssh", "-F", p.config, "-o", "BatchMode=yes", "-o", "ControlPersist=no", "-M", "-N", "-p",
		fmt.Sprint(s.port), "127.0.0.1")
	if err := master.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = master.Process.Kill()
		_ = master.Wait()
	}()
	waitFor(t, "the master is up", func() bool {
		_, err := os.Stat(socket)
		return err == nil
	})
	s.logins(t, 2)                               // our carrier's and the master's
	for _, silent := range []bool{false, true} { // where nothing is asked, a carrier has a connection of its own
		conn, err := r.Dial(soon(t), silent)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		echo(t, conn)
	}
	if _, err := r.Run(soon(t), []string{"true"}, nil); err != nil {
		t.Fatal(err)
	}
	s.logins(t, 4)             // two carriers' and none for the command
	write(t, s.authorized, "") // from now on a login would take a password
	conn, err = r.Dial(soon(t), false)
	if err != nil {
		t.Fatal(err)
	}
	echo(t, conn)
	if _, err := r.Dial(soon(t), true); !errors.Is(err, tunnel.ErrWouldAsk) {
		t.Errorf("a second carrier of its own gives %v", err)
	}
	_ = conn.Close()
	_ = r.Close()
	if err := exec.Command("ssh", "-F", p.config, "-O", "check", "-p", fmt.Sprint(s.port), "127.0.0.1").
		Run(); err != nil {
		t.Errorf("the person's master is gone: %v", err)
	}
}
