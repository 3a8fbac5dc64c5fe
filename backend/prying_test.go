//go:build linux

package backend

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"slipway/backend/daemon"
	"slipway/backend/engine/enginetest"
	"slipway/backend/place"
	"slipway/backend/session"
	"slipway/gpu"
)

// pry is what a hostile session runs: it tries every socket that it can see, as
// what Slipway's programs do with it, and reads what must stay secret.
const pry = `
import os, socket, stat, sys

def status(path):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(5)
    s.connect(path)
    s.sendall(b"GET /status HTTP/1.1\r\nHost: agent\r\n\r\n")
    answer = s.recv(4096)
    return answer

seen = 0
for top in sys.argv[1:]:
    for at, dirs, names in os.walk(top):
        for name in names + dirs:
            path = os.path.join(at, name)
            seen += 1
            try:
                mode = os.stat(path).st_mode
            except OSError:
                continue
            if stat.S_ISSOCK(mode):
                try:
                    answer = status(path)
                    print("CONNECTED", path, answer[:60] if answer else "and was turned away", flush=True)
                    if b"200 OK" in answer:
                        print("ADMIN", path, flush=True)
                except OSError as e:
                    print("failed", path, e, flush=True)
            if stat.S_ISREG(mode) and name in ("agent.db", "audit.jsonl", "agent.json", "token", "config.json"):
                try:
                    print("READ", path, len(open(path, "rb").read()), flush=True)
                except OSError as e:
                    print("failed", path, e, flush=True)
print("looked at", seen, flush=True)
`

// strangeHome is a person of this machine, an ordinary user, whose agent runs.
type strangeHome struct {
	t       *testing.T
	dir     string // all that is theirs
	uid     int
	home    place.Home
	control *daemon.Client
}

// prying is the id of an account that nobody has on the machine, so that its
// name is what the environment says.
const (
	prying     = 43210
	pryingName = "prying"
)

// liveAt starts the agent of an ordinary user, who has a home and a directory
// for sockets, on the real Docker.
func liveAt(t *testing.T, docker string) *strangeHome {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("to be another user it needs root, as in CI")
	}
	dir, err := os.MkdirTemp("/tmp", "slipway-prying-")
	if err != nil {
		t.Fatal(err)
	}
	p := &strangeHome{t: t, dir: dir, uid: prying,
		home: place.Home{Dir: filepath.Join(dir, "home", ".local", "share", "slipway")}}
	program := (&farWorld{t: t}).build("1.0.1")
	err = errors.Join(os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(program), 0o755), os.Chmod(program, 0o755),
		os.MkdirAll(p.home.Dir, 0o700), os.Mkdir(filepath.Join(dir, "run"), 0o700),
		os.MkdirAll(filepath.Join(dir, "home", "data", "deep"), 0o755))
	err = errors.Join(err, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, p.uid, p.uid))
	}))
	if err != nil {
		t.Fatal(err)
	}
	group, err := os.Stat(strings.TrimPrefix(docker, "unix://"))
	if err != nil {
		t.Fatal(err)
	}
	agent := exec.Command(program, "agent", "--quiet")
	agent.Dir = dir
	agent.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, "home"), "USER=" + pryingName,
		"DOCKER_HOST=" + docker, "XDG_RUNTIME_DIR=" + filepath.Join(dir, "run"),
		"SLIPWAY_TEST_DOCKER=" + docker}
	agent.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(p.uid), Gid: uint32(p.uid),
		Groups: []uint32{group.Sys().(*syscall.Stat_t).Gid}}}
	said := &bytes.Buffer{}
	agent.Stdout, agent.Stderr = said, said
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = agent.Process.Signal(unix.SIGTERM)
		_ = agent.Wait()
		if t.Failed() {
			log, _ := os.ReadFile(daemon.LogFile(p.home))
			t.Logf("the agent: %s%s", said, log)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	eventually(t.Context(), t, "the agent answers", func() bool {
		p.control, err = daemon.Connect(t.Context(), p.home)
		return err == nil
	})
	return p
}

// agent is the agent as its person has it.
func (p *strangeHome) agent() session.Agent {
	return reach(p.t, dialFunc(func(ctx context.Context) (net.Conn, error) { return daemon.Dial(ctx, p.home) })).Agent()
}

// run launches a batch session and returns what it printed.
func (p *strangeHome) run(agent session.Agent, mounts []session.Mount, command string) string {
	p.t.Helper()
	ctx := context.WithoutCancel(p.t.Context())
	launched, err := agent.Launch(ctx, session.LaunchRequest{Spec: session.Spec{
		Image: enginetest.ImageMinimal, Type: session.Batch, Command: command, Mounts: mounts,
		Resources: session.Resources{CPU: 1, Memory: 256 * gpu.MiB},
	}})
	if err != nil {
		p.t.Fatalf("launch: %v, %+v", err, session.AsError(err, "").Fields)
	}
	p.t.Cleanup(func() { _, _ = agent.Terminate(ctx, launched.ID, true) })
	var now session.Session
	eventually(ctx, p.t, "the session ends", func() bool {
		now, err = agent.Get(ctx, launched.ID)
		return err == nil && now.Status.Terminal()
	})
	log, err := agent.Logs(ctx, launched.ID, session.LogOptions{})
	if err != nil {
		p.t.Fatalf("%v; the session is %s: %s", err, now.Status, now.Reason)
	}
	defer log.Close()
	said, err := io.ReadAll(log)
	if err != nil || now.Result != session.ResultSuccess {
		p.t.Errorf("%s, %s, %v: %s", now.Status, now.Reason, err, said)
	}
	return string(said)
}

func pryingCommand(paths ...string) string {
	return "cat > /tmp/pry.py <<'END'\n" + pry + "\nEND\npython3 /tmp/pry.py " + strings.Join(paths, " ")
}

// undo is what else a hostile session does to see what is hidden at a path: it
// takes the cover off, in namespaces of its own too, and goes round it.
const undo = `
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
for hidden in sys.argv[1:]:
    for flags in (0, 0x10000000 | 0x20000):  # a user and a mount namespace
        child = os.fork()
        if child == 0:
            if flags and libc.unshare(flags) != 0:
                print("cannot unshare", flush=True)
                os._exit(0)
            for how in (0, 2, 4, 8):
                if libc.umount2(hidden.encode(), how) == 0:
                    print("UNCOVERED", hidden, flush=True)
            if libc.mount(b"none", hidden.encode(), None, 32 | 4096, None) == 0:
                print("REMOUNTED", hidden, flush=True)
            os._exit(0)
        os.waitpid(child, 0)
    beside = os.path.dirname(os.path.dirname(hidden)) + "/way"
    try:
        os.symlink(hidden, beside)
    except OSError as e:
        print("no link", e, flush=True)
    for path in (hidden, beside, "/proc/self/root" + hidden, "/proc/1/root" + hidden,
                 hidden + "/../" + os.path.basename(hidden)):
        try:
            print("SEEN" if os.listdir(path) else "empty", path, flush=True)
        except OSError as e:
            print("closed", path, e, flush=True)
    try:
        open(hidden + "/planted", "w")
        print("PLANTED", hidden, flush=True)
    except OSError as e:
        print("cannot plant", e, flush=True)
`

// harmless fails for every line that says that something was reached.
func harmless(t *testing.T, said string) {
	t.Helper()
	for line := range strings.Lines(said) {
		word, _, _ := strings.Cut(line, " ")
		switch word {
		case "ADMIN", "READ", "CONNECTED", "UNCOVERED", "REMOUNTED", "SEEN", "PLANTED":
			t.Error(strings.TrimSpace(line))
		}
	}
	if !strings.Contains(said, "looked at") {
		t.Errorf("it did not look: %s", said)
	}
}

func TestASessionWithTheHomeMountedRulesNothing(t *testing.T) {
	p := liveAt(t, enginetest.RequireDocker(t))
	agent := p.agent()
	whole := filepath.Join(p.dir, "home")
	linked, err := agent.CreateFolder(t.Context(), session.FolderRequest{Name: "all-of-it", Path: whole,
		Owner: pryingName})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		mounts []session.Mount
		hidden string
	}{
		"to be read": {[]session.Mount{{Source: whole, Target: "/mine", ReadOnly: true}},
			"/mine/.local/share/slipway"},
		"to be written": {[]session.Mount{{Source: whole, Target: "/mine"}}, "/mine/.local/share/slipway"},
		"its parent": {[]session.Mount{{Source: p.dir, Target: "/mine"}},
			"/mine/home/.local/share/slipway /mine/run/*"},
		"twice, a part of it too": {[]session.Mount{{Source: whole, Target: "/mine/a"},
			{Source: filepath.Join(whole, ".local", "share"), Target: "/mine/b"}},
			"/mine/a/.local/share/slipway /mine/b/slipway"},
		"as a linked folder": {[]session.Mount{{Folder: linked.Name, Target: "/mine"}},
			"/mine/.local/share/slipway"},
		"a part of that folder": {[]session.Mount{{Folder: linked.Name, Path: ".local/share", Target: "/mine"}},
			"/mine/slipway"},
	} {
		t.Run(name, func(t *testing.T) {
			said := p.run(agent, c.mounts,
				pryingCommand("/mine")+"\ncat > /tmp/undo.py <<'END'\n"+undo+"\nEND\npython3 /tmp/undo.py "+c.hidden)
			harmless(t, said)
			if n := strings.Count(said, "empty ") + strings.Count(said, "closed "); n < 4 {
				t.Errorf("what is hidden was looked at %d times: %s", n, said)
			}
		})
	}
	t.Run("and works in it", func(t *testing.T) {
		p.run(agent, []session.Mount{{Source: whole, Target: "/mine"}},
			"echo work > /mine/data/file && mkdir -p /mine/.local/share/other && touch /mine/.local/share/other/file")
		for _, path := range []string{"data/file", ".local/share/other/file"} {
			if info, err := os.Stat(filepath.Join(whole, path)); err != nil ||
				info.Sys().(*syscall.Stat_t).Uid != uint32(p.uid) {
				t.Errorf("%s: %+v, %v", path, info, err)
			}
		}
	})
	p.refuses(agent, whole)
}

// TestASessionDoesNotReachTheLoopbackOfTheMachine listens where a control plane
// does. A spec has no word for a network, and the engine takes none but ours.
func TestASessionDoesNotReachTheLoopbackOfTheMachine(t *testing.T) {
	p := liveAt(t, enginetest.RequireDocker(t))
	plane, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer plane.Close() //nolint:errcheck // the test ends
	reached := make(chan net.Addr, 100)
	go func() {
		for {
			conn, err := plane.Accept()
			if err != nil {
				return
			}
			reached <- conn.RemoteAddr()
			_ = conn.Close()
		}
	}()
	_, port, _ := net.SplitHostPort(plane.Addr().String())
	said := p.run(p.agent(), nil, "cat > /tmp/dial.py <<'END'\n"+dial+"\nEND\npython3 /tmp/dial.py "+port)
	if !strings.Contains(said, "looked at") || strings.Contains(said, "CONNECTED") || len(reached) > 0 {
		t.Errorf("reached %d times: %s", len(reached), said)
	}
}

// dial tries a port of every address that may be the machine's.
const dial = `
import socket, struct, sys
hosts = ["127.0.0.1", "::1", "0.0.0.0", "host.docker.internal", "localhost"]
for line in open("/proc/net/route").read().splitlines()[1:]:
    gateway = int(line.split()[2], 16)
    if gateway:
        hosts.append(socket.inet_ntoa(struct.pack("<L", gateway)))
for host in hosts:
    try:
        socket.create_connection((host, int(sys.argv[1])), 3)
        print("CONNECTED", host, flush=True)
    except OSError as e:
        print("failed", host, e, flush=True)
print("looked at", hosts, flush=True)
`

// refuses tries to mount what holds nothing but Slipway's own or the machine's, and
// to give other people what holds it.
func (p *strangeHome) refuses(agent session.Agent, whole string) {
	ctx := p.t.Context()
	socket := filepath.Dir(strings.TrimPrefix(os.Getenv(enginetest.DockerVariable), "unix://"))
	for _, source := range []string{p.home.Dir, p.home.Join("folders"), "/", "/proc", "/proc/1/root", "/sys", "/dev",
		"/run/user", socket, filepath.Dir(evaluate(p.t, p.home.Join("control.sock")))} {
		if err := os.MkdirAll(p.home.Join("folders"), 0o700); err != nil {
			p.t.Fatal(err)
		}
		spec := session.Spec{Image: enginetest.ImageMinimal, Mounts: []session.Mount{{Source: source, Target: "/mine"}},
			Resources: session.Resources{CPU: 1, Memory: 256 * gpu.MiB}}
		_, err := agent.Launch(ctx, session.LaunchRequest{Spec: spec})
		fields := session.AsError(errors.Join(err, errors.New("none")), "").Fields
		if len(fields) != 1 || fields[0].Kind != session.KindForbidden &&
			fields[0].Kind != session.KindInvalid || fields[0].Hint == "" && fields[0].Said == nil {
			p.t.Errorf("a mount of %s: %v, %+v", source, err, fields)
		}
	}
	for _, path := range []string{whole, p.dir, filepath.Dir(p.dir), p.home.Dir, "/", "/run", "/proc", socket} {
		if err := p.control.SetLimit(ctx, "bob", &session.Allowance{Folders: []string{path}}); session.CodeOf(
			err) != "agent_call_forbidden" && session.CodeOf(err) != "agent_call_invalid" {
			p.t.Errorf("%s is opened to others: %v", path, err)
		}
		if _, err := agent.CreateFolder(ctx, session.FolderRequest{Name: "of-bob", Path: path,
			Owner: "bob"}); session.CodeOf(err) != "file_use_invalid" {
			p.t.Errorf("%s is linked for others: %v", path, err)
		}
	}
	if err := p.control.SetLimit(ctx, "bob",
		&session.Allowance{Folders: []string{filepath.Join(whole, "data")}}); err != nil {
		p.t.Errorf("data cannot be opened to others: %v", err)
	}
	if _, err := agent.CreateFolder(ctx,
		session.FolderRequest{Name: "around-bob", Path: filepath.Join(whole, "data", "deep"),
			Owner: "ann"}); session.CodeOf(err) != "file_use_invalid" {
		p.t.Errorf("a directory in another person's is linked: %v", err)
	}
}

func evaluate(t *testing.T, path string) string {
	t.Helper()
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	return real
}
