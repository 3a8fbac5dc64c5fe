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

// prying is the id of an account that nobody has on the machine.
const prying = 43210

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
	p := &strangeHome{t: t, dir: dir, uid: prying, home: place.Home{Dir: filepath.Join(dir, "home", ".local", "share", "slipway")}}
	program := (&farWorld{t: t}).build("1.0.1")
	err = errors.Join(os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(program), 0o755), os.Chmod(program, 0o755),
		os.MkdirAll(p.home.Dir, 0o700), os.Mkdir(filepath.Join(dir, "run"), 0o700), os.Mkdir(filepath.Join(dir, "home", "data"), 0o755))
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
	agent.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, "home"), "USER=prying", "DOCKER_HOST=" + docker, "XDG_RUNTIME_DIR=" + filepath.Join(dir, "run"),
		"SLIPWAY_TEST_DOCKER=" + docker}
	agent.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(p.uid), Gid: uint32(p.uid), Groups: []uint32{group.Sys().(*syscall.Stat_t).Gid}}}
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
	return reach(p.t, dialFunc(func(ctx context.Context) (net.Conn, error) { return daemon.Dial(ctx, p.home) }))
}

// run launches a batch session and returns what it printed.
func (p *strangeHome) run(agent session.Agent, mounts []session.Mount, command string) string {
	p.t.Helper()
	ctx := context.WithoutCancel(p.t.Context())
	launched, err := agent.Launch(ctx, session.LaunchRequest{Spec: session.Spec{
		Image: enginetest.ImageMinimal, Type: session.Batch, Command: command, Mounts: mounts, Resources: session.Resources{CPU: 1, Memory: 256 * gpu.MiB},
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

func TestASessionWithTheHomeMountedRulesNothing(t *testing.T) {
	p := liveAt(t, enginetest.RequireDocker(t))
	agent := p.agent()
	whole := filepath.Join(p.dir, "home")
	for name, mounts := range map[string][]session.Mount{
		"to be read":    {{Source: whole, Target: "/mine", ReadOnly: true}},
		"to be written": {{Source: whole, Target: "/mine"}},
		"its parent":    {{Source: p.dir, Target: "/mine"}},
	} {
		t.Run(name, func(t *testing.T) {
			said := p.run(agent, mounts, pryingCommand("/mine"))
			for _, line := range strings.Split(said, "\n") {
				if strings.HasPrefix(line, "ADMIN") || strings.HasPrefix(line, "READ") || strings.HasPrefix(line, "CONNECTED") {
					t.Error(line)
				}
			}
			if !strings.Contains(said, "looked at") {
				t.Errorf("it did not look: %s", said)
			}
		})
	}
}
