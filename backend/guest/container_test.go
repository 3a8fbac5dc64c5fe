//go:build linux

package guest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"slipway/backend/engine"
	"slipway/backend/guest/link"
	"slipway/backend/session"
	"slipway/backend/terminal"
)

// containerRoot is set in the process that becomes a test's container.
const containerRoot = "SLIPWAY_TEST_CONTAINER_ROOT"

// built holds the programs that the tests put into containers.
var built struct{ guest, hello string }

func TestMain(m *testing.M) {
	if root := os.Getenv(containerRoot); root != "" {
		fmt.Fprintln(os.Stderr, "enter container:", enter(root))
		os.Exit(1)
	}
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "slipway-guest-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	for _, program := range []struct {
		name, source string
	}{{"guest", "./slipway-guest"}, {"hello", "./testdata/hello"}} {
		build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(dir, program.name),
			program.source)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build %s: %v\n%s", program.name, err, out)
			return 1
		}
	}
	built.guest, built.hello = filepath.Join(dir, "guest"), filepath.Join(dir, "hello")
	return m.Run()
}

// kept are the capabilities that the Docker engine leaves to the guest, FSETID in administrator sessions.
var kept = map[uintptr]bool{
	unix.CAP_CHOWN: true, unix.CAP_DAC_OVERRIDE: true, unix.CAP_FOWNER: true, unix.CAP_FSETID: true,
	unix.CAP_KILL: true, unix.CAP_SETGID: true, unix.CAP_SETPCAP: true, unix.CAP_SETUID: true,
}

// enter makes this process, the first of its namespaces, process 1 of a
// container in root. It returns only if it failed.
func enter(root string) error {
	runtime.LockOSThread()
	if _, err := io.ReadAll(os.NewFile(3, "go")); err != nil { // until the test lets it
		return err
	}
	mount := func(source, target, kind string, flags uintptr, data string) error {
		target = filepath.Join(root, target)
		if err := os.MkdirAll(target, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(source, target, kind, flags, data); err != nil {
			return fmt.Errorf("mount %s: %w", target, err)
		}
		return nil
	}
	err := errors.Join(
		unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""),
		mount("proc", "proc", "proc", 0, ""),
		mount("tmpfs", "dev", "tmpfs", 0, "mode=755"),
		mount("devpts", "dev/pts", "devpts", 0, "newinstance,ptmxmode=0666,mode=0620"),
		os.Symlink("pts/ptmx", filepath.Join(root, "dev/ptmx")),
		os.Symlink("/proc/self/fd/1", filepath.Join(root, "dev/stdout")),
		unix.Mknod(filepath.Join(root, "dev/null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))),
		os.Chmod(filepath.Join(root, "dev/null"), 0o666),
		loopbackUp(),
	)
	for _, pair := range strings.Fields(os.Getenv("SLIPWAY_TEST_BINDS")) {
		from, to, _ := strings.Cut(pair, ":")
		err = errors.Join(err, mount(from, to, "", unix.MS_BIND|unix.MS_REC, ""))
	}
	err = errors.Join(err, unix.Chroot(root), unix.Chdir("/"))
	for capability := uintptr(0); capability <= unix.CAP_LAST_CAP; capability++ {
		if !kept[capability] {
			err = errors.Join(err, unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0))
		}
	}
	if err != nil {
		return err
	}
	env := []string{"PATH=/opt/tools/bin:/usr/bin:/bin", "IMAGE=yes", "HOME=/root"}
	return syscall.Exec("/.slipway/guest", []string{"guest", "init"}, env)
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}

// box is one container.
type box struct {
	t        testing.TB
	root     string
	settings engine.GuestConfig
	host     bool // the host's programs are in it
	binds    []string
	before   func(pid int)
	moved    string // what of the guest's folder the image has as a link

	listener *net.UnixListener
	cmd      *exec.Cmd
	output   lockedBuffer
	started  time.Time
	exited   chan struct{}
}

type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// requireRoot skips only short runs of somebody who is not root.
func requireRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() == 0 {
		return
	}
	if testing.Short() {
		t.Skip("containers need root")
	}
	t.Fatal("this test makes containers and needs root; run it as root, or with -short to leave it out")
}

// newBox prepares a container that holds the static program hello and, with
// host, the programs of this machine.
func newBox(t testing.TB, host bool) *box {
	t.Helper()
	requireRoot(t)
	b := &box{t: t, root: t.TempDir(), host: host, exited: make(chan struct{})}
	b.settings = engine.GuestConfig{
		Session: "abcdefghij12", Kernel: "main1", UID: 1234, GID: 1234,
		Env: []session.EnvVar{{Name: "SLIPWAY_SESSION", Value: "abcdefghij12"}, {Name: "GREETING", Value: "good day"}},
	}
	for _, dir := range []string{".slipway/link", ".slipway/spool", "tmp"} {
		must(t, os.MkdirAll(filepath.Join(b.root, dir), 0o755))
	}
	must(t, os.Chmod(filepath.Join(b.root, "tmp"), 0o777|os.ModeSticky))
	copyFile(t, built.guest, filepath.Join(b.root, ".slipway/guest"))
	copyFile(t, built.hello, filepath.Join(b.root, "hello"))
	if host {
		b.binds = []string{"/usr:/usr"}
		for _, dir := range []string{"bin", "sbin", "lib", "lib64"} {
			must(t, os.Symlink("usr/"+dir, filepath.Join(b.root, dir)))
		}
	}
	return b
}

func copyFile(t testing.TB, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	must(t, err)
	must(t, os.WriteFile(to, data, 0o755))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// write puts a file into the container before its start.
func (b *box) write(path, content string) {
	b.t.Helper()
	path = filepath.Join(b.root, path)
	must(b.t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(b.t, os.WriteFile(path, []byte(content), 0o644))
}

// start starts the container and listens for its guest.
func (b *box) start() *box {
	b.t.Helper()
	config, err := json.Marshal(b.settings)
	must(b.t, err)
	must(b.t, os.WriteFile(filepath.Join(b.root, ".slipway/config.json"), config, 0o600))
	b.listen()
	if b.moved != "" {
		at := filepath.Join(b.root, b.moved)
		must(b.t, os.Rename(at, at+"-elsewhere"))
		must(b.t, os.Symlink(filepath.Base(at)+"-elsewhere", at))
	}
	self, err := os.Executable()
	must(b.t, err)
	b.cmd = exec.Command(self)
	b.cmd.Env = append(os.Environ(), containerRoot+"="+b.root, "SLIPWAY_TEST_BINDS="+strings.Join(b.binds, " "))
	b.cmd.Stdout, b.cmd.Stderr = &b.output, &b.output
	b.cmd.WaitDelay = patience // its end ends whatever holds its output
	b.cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWNET,
		Pdeathsig:  syscall.SIGKILL,
	}
	wait, release, err := os.Pipe()
	must(b.t, err)
	b.cmd.ExtraFiles = []*os.File{wait}
	must(b.t, b.cmd.Start())
	must(b.t, wait.Close())
	if b.before != nil {
		b.before(b.cmd.Process.Pid)
	}
	b.started = time.Now()
	must(b.t, release.Close())
	go func() {
		_ = b.cmd.Wait()
		close(b.exited)
	}()
	b.t.Cleanup(func() {
		_ = b.cmd.Process.Kill()
		<-b.exited
		_ = b.listener.Close()
	})
	return b
}

// listen makes the agent's socket. Its path is taken through a short link,
// since socket paths are limited to 108 bytes.
func (b *box) listen() {
	b.t.Helper()
	dir, err := os.Open(filepath.Join(b.root, ".slipway/link"))
	must(b.t, err)
	defer dir.Close()
	path := fmt.Sprintf("/proc/self/fd/%d/agent.sock", dir.Fd())
	_ = os.Remove(path)
	listener, err := net.Listen("unix", path)
	must(b.t, err)
	b.listener = listener.(*net.UnixListener)
	b.listener.SetUnlinkOnClose(false)
}

// connect waits for the guest and greets it.
func (b *box) connect() *link.Client {
	b.t.Helper()
	must(b.t, b.listener.SetDeadline(time.Now().Add(patience)))
	conn, err := b.listener.Accept()
	if err != nil {
		b.t.Fatalf("the guest did not connect: %v; output: %s", err, b.output.String())
	}
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	client, err := link.Connect(ctx, conn)
	must(b.t, err)
	b.t.Cleanup(func() { _ = client.Close() })
	return client
}

// exit waits for the container's end and returns its code.
func (b *box) exit() int {
	b.t.Helper()
	select {
	case <-b.exited:
	case <-time.After(patience):
		b.t.Fatalf("the container did not end; output: %s", b.output.String())
	}
	return b.cmd.ProcessState.ExitCode()
}

// result is what a command did.
type result struct {
	out, err string
	code     int
}

// run runs a command to its end.
func run(t testing.TB, client *link.Client, argv ...string) result {
	t.Helper()
	got, err := tryRun(t, client, session.ExecRequest{Command: argv}, "")
	if err != nil {
		t.Fatalf("exec %q: %v", argv, err)
	}
	return got
}

func tryRun(t testing.TB, client *link.Client, req session.ExecRequest, stdin string) (result, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req.Stdin = stdin != ""
	stream, err := client.Exec(ctx, req)
	if err != nil {
		return result{}, err
	}
	var out, errs bytes.Buffer
	code, err := terminal.RunExec(ctx, terminal.NewConn(stream), terminal.ExecIO{Stdin: strings.NewReader(stdin),
		Stdout: &out, Stderr: &errs})
	return result{out.String(), errs.String(), code}, err
}

// screen is a viewer of a terminal whose output can be waited for.
type screen struct {
	*terminal.Viewer
	t      testing.TB
	client *link.Client
	id     string
	stop   context.CancelFunc
	done   chan error
	code   int

	mu      sync.Mutex
	shown   strings.Builder
	changed chan struct{}
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown.Write(p)
	close(s.changed)
	s.changed = make(chan struct{})
	return len(p), nil
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown.String()
}

// open opens a terminal and looks at it.
func open(t testing.TB, client *link.Client, req session.TerminalRequest) *screen {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	opened, err := client.OpenTerminal(ctx, req)
	must(t, err)
	s := &screen{t: t, id: opened.ID, changed: make(chan struct{})}
	s.Viewer = terminal.NewViewer(terminal.ViewerConfig{Client: "test", Output: s})
	s.attach(client)
	return s
}

// attach connects the viewer, again if need be.
func (s *screen) attach(client *link.Client) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	stream, err := client.AttachTerminal(ctx, session.AttachRequest{Terminal: s.id, Offset: s.Offset(), Client: "test"})
	must(s.t, err)
	s.done, s.stop, s.client = make(chan error, 1), cancel, client
	go func() {
		code, err := s.Run(ctx, terminal.NewConn(stream))
		s.code = code
		s.done <- err
	}()
}

func (s *screen) typeLine(line string) {
	s.t.Helper()
	_, err := s.Viewer.Write([]byte(line + "\n"))
	must(s.t, err)
}

// expect waits until text was shown.
func (s *screen) expect(text string) {
	s.t.Helper()
	deadline := time.After(patience)
	for {
		s.mu.Lock()
		seen, changed := strings.Contains(s.shown.String(), text), s.changed
		s.mu.Unlock()
		if seen {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			s.t.Fatalf("%q was not shown; what was: %q", text, s.text())
		}
	}
}

// ended waits for the shell's end and returns its code.
func (s *screen) ended() int {
	s.t.Helper()
	select {
	case err := <-s.done:
		must(s.t, err)
	case <-time.After(patience):
		s.t.Fatalf("the shell did not end; shown: %q", s.text())
	}
	return s.code
}

// watch collects events until the link ends.
func watch(t testing.TB, client *link.Client) <-chan link.Event {
	events := make(chan link.Event, 100)
	go func() {
		defer close(events)
		_ = client.Events(t.Context(), func(event link.Event) error {
			events <- event
			return nil
		})
	}()
	return events
}

// await waits for an event that fits.
func await(t testing.TB, events <-chan link.Event, what string, fits func(link.Event) bool) link.Event {
	t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case event, ok := <-events:
			if !ok {
				t.Fatalf("the events ended before %s", what)
			}
			if fits(event) {
				return event
			}
		case <-deadline:
			t.Fatalf("%s did not come", what)
		}
	}
}
