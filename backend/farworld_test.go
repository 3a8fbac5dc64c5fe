//go:build linux

package backend

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"slipway/backend/demo/run"
	"slipway/backend/engine/enginetest"
	"slipway/gpu/nvml"
	"slipway/tunnel/askpass"
	"slipway/tunnel/sshstdio"
)

// farWorld is a laptop and a lab server: two network namespaces that a cable
// joins, with a real sshd in the second. The server's files and its Docker are
// this machine's.
type farWorld struct {
	t          *testing.T
	dir        string
	near, far  string // names of the namespaces
	address    string // of the server
	cable      string // name of the laptop's end
	plug       string // name of the server's end
	client     string // of ssh: its configuration
	ssh        string // ssh in the laptop's namespace
	dockerHost string
	home       string // of Slipway's files on the server
}

// workshop makes programs of versions, each once for all tests of this process.
type workshop struct {
	mu   sync.Mutex // guards the following; held while one is made
	dir  string     // of what was made; empty: nothing was
	made map[string]string
}

var farPrograms workshop

func TestMain(m *testing.M) {
	if exit, handled := askpass.Main(os.Args[1:], os.Getenv, os.Stdout, os.Stderr); handled { // git asks
		os.Exit(exit)
	}
	if len(os.Args) > 1 && os.Args[1] == run.StarterCommand {
		os.Exit(run.StarterMain(nil, nil, os.Stdin, os.Stdout, os.Stderr))
	}
	if len(os.Args) > 1 && os.Args[1] == nvml.ChildCommand { // an agent of a test reads devices
		os.Exit(Main(os.Args[1:], Pages{}))
	}
	code := m.Run()
	if farPrograms.dir != "" {
		_ = os.RemoveAll(farPrograms.dir)
	}
	os.Exit(code)
}

// build makes the program of a version.
func (w *farWorld) build(version string) string {
	w.t.Helper()
	shop := &farPrograms
	shop.mu.Lock()
	defer shop.mu.Unlock()
	if path := shop.made[version]; path != "" {
		return path
	}
	if shop.dir == "" {
		dir, err := os.MkdirTemp("", "slipway-far-test-")
		if err != nil {
			w.t.Fatal(err)
		}
		shop.dir, shop.made = dir, map[string]string{}
	}
	path := filepath.Join(shop.dir, "slipway-"+version)
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -X slipway/backend/place.Version="+version,
		"-o", path, "slipway")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		w.t.Fatalf("%v: %s", err, out)
	}
	shop.made[version] = path
	return path
}

// oneProgram is what is installed, whatever the machine.
type oneProgram string

func (p oneProgram) Program(string, string) (string, error) { return string(p), nil }

func newFarWorld(t *testing.T) *farWorld {
	t.Helper()
	docker := enginetest.RequireDocker(t)
	return newFarWorldWith(t, func(*farWorld) string { return docker })
}

// newFarWorldWith is newFarWorld with another Docker of the server.
func newFarWorldWith(t *testing.T, docker func(*farWorld) (host string)) *farWorld {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("network namespaces and sshd need root, as in CI")
	}
	w := &farWorld{t: t, dir: t.TempDir()}
	w.home = filepath.Join(w.dir, "server", "slipway")
	t.Cleanup(w.clear)
	w.wire()
	w.dockerHost = docker(w)
	w.listen()
	return w
}

// must runs a program that succeeds.
func (w *farWorld) must(name string, args ...string) {
	w.t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		w.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// wire makes the namespaces and the cable. Their names are this world's own.
func (w *farWorld) wire() {
	w.t.Helper()
	key := fmt.Sprintf("%x", sha256.Sum256([]byte(w.dir)))[:7]
	w.near, w.far, w.cable = "slw-n-"+key, "slw-f-"+key, "slwn"+key
	w.plug = "slwf" + key
	w.address = "10.213.7.2"
	w.t.Cleanup(func() {
		for _, name := range []string{w.near, w.far} {
			w.empty(name)
			_ = exec.Command("ip", "netns", "delete", name).Run() // it may never have been
		}
	})
	w.must("ip", "netns", "add", w.near)
	w.must("ip", "netns", "add", w.far)
	w.must("ip", "link", "add", w.cable, "netns", w.near, "type", "veth", "peer", "name", w.plug, "netns", w.far)
	w.must("ip", "-n", w.near, "address", "add", "10.213.7.1/24", "dev", w.cable)
	w.must("ip", "-n", w.far, "address", "add", w.address+"/24", "dev", w.plug)
	for _, end := range [][]string{{w.near, w.cable}, {w.near, "lo"}, {w.far, w.plug}, {w.far, "lo"}} {
		w.must("ip", "-n", end[0], "link", "set", end[1], "up")
	}
}

// empty ends what is left in a namespace: sshd has a process for each connection,
// which does not end with it, and waits long for the end of a cable that is out.
func (w *farWorld) empty(name string) {
	left, _ := exec.Command("ip", "netns", "pids", name).Output() // it may never have been
	for _, field := range strings.Fields(string(left)) {
		if pid, err := strconv.Atoi(field); err == nil {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

// cut takes the cable out or puts it back. Nothing tells the connections.
func (w *farWorld) cut(out bool) {
	w.t.Helper()
	state := "up"
	if out {
		state = "down"
	}
	w.must("ip", "-n", w.near, "link", "set", w.cable, state)
}

// slow makes the cable carry 300 Mbit/s each way, where the kernel knows how, so
// that what is large takes seconds on any machine.
func (w *farWorld) slow() {
	for end, space := range map[string]string{w.cable: w.near, w.plug: w.far} {
		shape := exec.Command("ip", "netns", "exec", space, "tc", "qdisc", "add", "dev", end, "root", "tbf", "rate",
			"300mbit", "burst", "256kb", "latency", "50ms")
		if out, err := shape.CombinedOutput(); err != nil {
			w.t.Logf("the cable stays as quick as it is: %v: %s", err, out)
		}
	}
}

// listen runs sshd on the server and makes its key known to the laptop.
func (w *farWorld) listen() {
	w.t.Helper()
	at := func(name string) string { return filepath.Join(w.dir, name) }
	for _, name := range []string{"host", "id"} {
		w.must("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", at(name))
	}
	w.write("authorized", w.read("id.pub"))
	w.write("known", w.address+" "+w.read("host.pub"))
	w.write("sshd_config", strings.Join([]string{
		"ListenAddress " + w.address, "Port 22", "HostKey " + at("host"), "PidFile none", "UsePAM no", "StrictModes no",
		"PasswordAuthentication no", "KbdInteractiveAuthentication no", "AuthorizedKeysFile " + at("authorized"),
		"PermitRootLogin yes",
		"PrintMotd no", "SetEnv SHLVL=2 DOCKER_HOST=" + w.dockerHost + " SLIPWAY_HOME=" + w.home, // as in sshstdio
	}, "\n")+"\n")
	w.client = at("ssh_config")
	w.write("ssh_config", fmt.Sprintf("Host lab attic\n  HostName %s\nHost *\n  User root\n  UserKnownHostsFile %s\n  "+
		"GlobalKnownHostsFile none\n  IdentityFile %s\n  IdentitiesOnly yes\n  UpdateHostKeys no\n", w.address,
		at("known"), at("id")))
	w.ssh = at("ssh")
	w.write("ssh", "#!/bin/sh\nexec nsenter --net=/run/netns/"+w.near+" ssh \"$@\"\n")
	// sshd insists on the folder
	if err := errors.Join(os.Chmod(w.ssh, 0o700), os.MkdirAll("/run/sshd", 0o755)); err != nil {
		w.t.Fatal(err)
	}
	ready, err := exec.LookPath("/usr/sbin/sshd")
	if err != nil {
		w.t.Fatal(err)
	}
	server := exec.Command("nsenter", "--net=/run/netns/"+w.far, ready, "-D", "-e", "-f", at("sshd_config"))
	log := &bytes.Buffer{}
	server.Stderr = log
	if err := server.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
		if w.t.Failed() {
			w.t.Logf("sshd: %s", log)
		}
	})
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		probe := exec.Command("nsenter", "--net=/run/netns/"+w.near, "ssh-keyscan", "-T", "20", w.address)
		if out, err := probe.Output(); err == nil && len(out) > 0 {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("sshd does not answer: %s", log)
		}
	}
}

func (w *farWorld) write(name, text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *farWorld) read(name string) string {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

// remote is the server as ssh reaches it; command is what a carrier starts.
func (w *farWorld) remote(command []string) *sshstdio.Remote {
	w.t.Helper()
	host, err := sshstdio.ParseHost("ssh://lab")
	if err != nil {
		w.t.Fatal(err)
	}
	r, err := sshstdio.Open(sshstdio.Config{Host: host, Command: command, SSH: w.ssh, ConfigFile: w.client})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = r.Close() })
	return r
}

// processes are those of the server that run a program of its folder.
func (w *farWorld) processes() []string {
	var found []string
	paths, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, path := range paths {
		if program, err := os.Readlink(path); err == nil && strings.HasPrefix(program, w.home) {
			found = append(found, path+" is "+program)
		}
	}
	return found
}

// clear ends what a test that failed has left on the server.
func (w *farWorld) clear() {
	for _, one := range w.processes() {
		var pid int
		if _, err := fmt.Sscanf(one, "/proc/%d/", &pid); err == nil {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

// runs reports whether a program of the server's folder runs with arguments.
func (w *farWorld) runs(args string) bool {
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		line, _ := os.ReadFile(path) // the process may have ended
		if strings.HasPrefix(string(line), w.home) && strings.Contains(string(line), args) {
			return true
		}
	}
	return false
}

// patience is how long a test waits for what must happen. No test says how soon
// that is: a machine with other work may take its time.
const patience = 3 * time.Minute

// eventually waits until ok.
func eventually(ctx context.Context, t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) || ctx.Err() != nil {
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}
