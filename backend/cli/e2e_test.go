//go:build linux && !race

// The tests of the files e2e_* drive a program that is built without the race detector, which finds nothing in them.

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/client"
	"slipway/backend/engine/enginetest"
	"slipway/backend/place"
	"slipway/backend/session"
)

// patience is how long a test waits for what must happen. No test says how soon
// that is: a machine with other work may take its time.
const patience = 3 * time.Minute

// built is the folder of the program that buildProgram has built, if it has.
var built string

// buildProgram builds the program once for all tests of this process.
var buildProgram = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "slipway-cli-test-")
	if err != nil {
		return "", err
	}
	built = dir
	path := filepath.Join(dir, "slipway")
	out, err := exec.Command("go", "build", "-o", path, "slipway").CombinedOutput()
	if err != nil {
		return "", errors.New(string(out))
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if built != "" {
		_ = os.RemoveAll(built)
	}
	os.Exit(code)
}

// installed is the real program with a folder of its own.
type installed struct {
	t     *testing.T
	path  string
	home  place.Home
	env   []string
	image string
}

// install makes a program on an engine, whose control plane it stops, and whose
// sessions it ends, when the test ends.
func install(t *testing.T, engine string) *installed {
	t.Helper()
	if engine == "docker" {
		return installOn(t, engine, enginetest.RequireDocker(t))
	}
	return installOn(t, engine, "")
}

// installOn is install with the Docker daemon at an address.
func installOn(t *testing.T, engine, host string) *installed {
	t.Helper()
	path, err := buildProgram()
	if err != nil {
		t.Fatal(err)
	}
	p := &installed{t: t, path: path, home: place.Home{Dir: t.TempDir()}, image: "python:3.12"}
	p.env = append(os.Environ(), "SLIPWAY_HOME="+p.home.Dir, "SLIPWAY_ENGINE="+engine, "TERM=xterm-256color")
	if host != "" {
		p.image = enginetest.ImageMinimal
		p.env = append(p.env, "DOCKER_HOST="+host)
	}
	t.Cleanup(func() {
		if t.Failed() {
			p.tell()
		}
		live := p.do("ps", "-q")
		if ids := strings.Fields(live.stdout); len(ids) > 0 {
			p.do(append([]string{"stop", "--force", "--wait", "--wait-timeout", "180s"}, ids...)...)
		}
		if got := p.do("shutdown"); got.code != ExitOK {
			t.Errorf("shutdown: %+v", got)
		}
	})
	return p
}

func (p *installed) command(args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), 6*time.Minute)
	p.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, p.path, args...)
	cmd.Env = p.env
	return cmd
}

// do runs one command to its end.
func (p *installed) do(args ...string) result { return p.with("", args...) }

func (p *installed) with(stdin string, args ...string) result {
	p.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := p.command(args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	err := cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		p.t.Errorf("slipway %q: %v", args, err)
	}
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// must runs a command that succeeds and returns what it printed.
func (p *installed) must(args ...string) string {
	p.t.Helper()
	got := p.do(args...)
	if got.code != ExitOK {
		p.t.Fatalf("slipway %q: exit code %d\n%s%s", args, got.code, got.stdout, got.stderr)
	}
	return got.stdout
}

func (p *installed) session(args ...string) api.Session {
	p.t.Helper()
	var s api.Session
	if text := p.must(append(args, "-o", "json")...); json.Unmarshal([]byte(text), &s) != nil {
		p.t.Fatalf("slipway %q printed no session: %s", args, text)
	}
	return s
}

// launch runs an interactive session and waits until it runs.
func (p *installed) launch(name string, flags ...string) api.Session {
	p.t.Helper()
	args := append([]string{"run", "--image", p.image, "--name", name, "--wait", "--wait-timeout", "180s", "-o",
		"json"}, flags...)
	var s api.Session
	text := p.must(args...)
	if err := json.Unmarshal([]byte(text), &s); err != nil || s.Status != session.Running {
		p.t.Fatalf("run printed %s: %v; want a running session", text, err)
	}
	return s
}

func (p *installed) sessions(args ...string) []api.Session {
	p.t.Helper()
	var sessions []api.Session
	if err := json.Unmarshal([]byte(p.must(append(args, "-o", "json")...)), &sessions); err != nil {
		p.t.Fatal(err)
	}
	return sessions
}

// kill ends the control plane as a crash would.
func (p *installed) kill() {
	p.t.Helper()
	serving, err := p.home.Serving()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := syscall.Kill(serving.PID, syscall.SIGKILL); err != nil {
		p.t.Fatal(err)
	}
}

// leaveOutIfShort leaves out, under -short, what builds and runs the program.
func leaveOutIfShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		enginetest.RequireDocker(t)
	}
}

func TestTheProgram(t *testing.T) {
	leaveOutIfShort(t)
	for _, engine := range []string{"sim", "docker"} {
		t.Run(engine, func(t *testing.T) {
			if engine == "docker" {
				enginetest.RequireDocker(t)
			}
			p := install(t, engine)
			first := p.do("ps", "-o", "json")
			if strings.TrimSpace(first.stdout) != "[]" ||
				!strings.Contains(first.stderr, "starting one in the background") {
				t.Fatalf("the first command: %+v", first)
			}
			s := p.launch("e2e-one", "--mem", "256m", "--shm", "32m", "-e", "COLOUR=blue")
			t.Run("shows what was asked for", func(t *testing.T) { p.showsWhatWasAskedFor(t, s) })
			t.Run("runs commands", p.runsCommands)
			t.Run("passes signals on", p.passesSignalsOn)
			t.Run("answers as its document says", func(t *testing.T) { p.answersAsDocumented(t, string(s.ID)) })
			if engine == "docker" { // what the simulated engine runs lives in the control plane
				t.Run("keeps a terminal over a crash", p.keepsATerminal)
				t.Run("follows a batch over a crash", p.followsOverACrash)
			}
			t.Run("renames", func(t *testing.T) {
				if p.must("rename", "e2e-one", "e2e-two"); p.session("show", "e2e-two").ID != s.ID {
					t.Error("the new name is not the session's")
				}
			})
			t.Run("runs batches", p.runsBatches)
			t.Run("opens a terminal of its own", p.opensATerminal)
			t.Run("queues", p.queues)
			if engine == "sim" {
				t.Run("shares devices", p.sharesDevices)
			}
			t.Run("opens projects", p.opensProjects)
			t.Run("refuses bad input", p.refusesBadInput)
			t.Run("stops", func(t *testing.T) {
				p.must("stop", "--wait", "e2e-two")
				if live := p.sessions("ps"); len(live) != 0 {
					t.Errorf("%d sessions are live after the stop", len(live))
				}
				if ended := p.session("show", "e2e-two"); ended.ID != s.ID || ended.Status != "TERMINATED" ||
					ended.Reason != "user-requested" {
					t.Errorf("it ended as %s, %s", ended.Status, ended.Reason)
				}
			})
		})
	}
}

func (p *installed) showsWhatWasAskedFor(t *testing.T, s api.Session) {
	if s.Name != "e2e-one" || s.Type != "interactive" || s.Result != "undefined" || s.Image != p.image ||
		s.Agent != "local" ||
		s.CreatedAt.IsZero() || s.ExitCode != nil || s.Spec.Resources.Memory != 256<<20 ||
		s.Spec.Resources.Shm != 32<<20 || len(s.Grants.CPUs) != 1 {
		t.Errorf("the session is %+v", s)
	}
	live := p.sessions("ps")
	if len(live) != 1 || live[0].ID != s.ID {
		t.Errorf("ps lists %+v", live)
	}
	if table := p.must("ps"); !strings.Contains(table, "256 MiB") || !strings.Contains(table, "RUNNING") {
		t.Errorf("ps prints\n%s", table)
	}
	if table := p.must("history", string(s.ID[:6])); !strings.Contains(table, "schedule") ||
		!strings.Contains(table, "SUCCESS") {
		t.Errorf("history prints\n%s", table)
	}
}

func (p *installed) runsCommands(t *testing.T) {
	if got := p.do("exec", "e2e-one", "--", "sh", "-c", "echo out; echo err >&2; exit "+
		"42"); got != (result{42, "out\n", "err\n"}) {
		t.Errorf("exec: %+v", got)
	}
	if got := p.do("exec", "-e", "SHAPE=round", "-w", "/tmp", "e2e-one", "--", "sh", "-c",
		`echo "$COLOUR $SHAPE $PWD"`); got.stdout != "blue round /tmp\n" {
		t.Errorf("exec with variables: %+v", got)
	}
	text := strings.Repeat("every byte counts\n", 60_000)
	if got := p.with(text, "exec", "-i", "e2e-one", "--", "cat"); got.stdout != text || got.code != 0 {
		t.Errorf("exec -i cat: code %d, %d of %d bytes, %q", got.code, len(got.stdout), len(text), got.stderr)
	}
	if got := p.do("exec", "e2e-one", "--", "no-such-program"); got.code != ExitNoCommand || got.stderr == "" {
		t.Errorf("a program that is not there: %+v", got)
	}
	if p.image == enginetest.ImageMinimal {
		if got := p.must("exec", "e2e-one", "--", "nproc"); got != "1\n" {
			t.Errorf("nproc prints %q", got)
		}
	}
}

func (p *installed) passesSignalsOn(t *testing.T) {
	cmd := p.command("exec", "e2e-one", "--", "sh", "-c", "echo ready; exec sleep 60")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d after SIGINT, want 130", code)
	}
}

// answersAsDocumented holds real answers against the OpenAPI document.
func (p *installed) answersAsDocumented(t *testing.T, id string) {
	d, err := readDocument()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.Connect(t.Context(), p.home)
	if err != nil {
		t.Fatal(err)
	}
	for operation, target := range map[string]string{
		"version": route.Version.Target(), "doctor": route.Doctor.Target(), "machines": route.Machines.Target(),
		"images": route.Images.Target(), "directories": route.Directories.At("local").With("path", "/").Target(),
		"environments": route.Environments.Target(), "presets": route.Presets.Target(),
		"sessions": route.Sessions.With("state", "all").Target(), "session": route.Session.At(id).Target(),
		"history": route.History.At(id).Target(), "usage": route.Usage.At(id).Target(),
		"terminals": route.Terminals.At(id).Target(), "apps": route.Apps.At(id).Target(),
		"recents": route.Recents.Target(), "settings": route.Settings.Target(), "devices": route.Devices.Target(),
		"resources": route.Resources.Target(), "accounts": route.Accounts.With("by", "session").Target(),
		"queue": route.Queue.Target(),
	} {
		var value any
		if err := c.Call(t.Context(), http.MethodGet, target, nil, &value); err != nil {
			t.Errorf("%s: %v", operation, err)
			continue
		}
		for _, wrong := range d.check(operation, value, d.answer(operation)) {
			t.Error(wrong)
		}
	}
}

// keepsATerminal joins a shell, kills the control plane, and goes on.
func (p *installed) keepsATerminal(t *testing.T) {
	cmd := p.command("attach", "e2e-one")
	screen, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 100, Rows: 30})
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	view := watch(screen)
	view.await(t, "work@main1")
	view.enter(t, "echo before-$((40+2))\r")
	view.await(t, "before-42\r\n")
	p.kill()
	view.enter(t, "echo after-$((40+3))\r")
	view.await(t, "after-43\r\n")
	if n := strings.Count(view.text(), "before-42\r\n"); n != 1 {
		t.Errorf("output from before the crash is there %d times, want once:\n%s", n, view.text())
	}
	view.enter(t, "\x10\x11")
	view.await(t, "Return with slipway attach")
	if err := cmd.Wait(); err != nil {
		t.Errorf("attach after Ctrl-P Ctrl-Q: %v", err)
	}
	if live := p.sessions("ps"); len(live) != 1 || live[0].Status != session.Running {
		t.Errorf("after the crash the sessions are %+v", live)
	}
}

// followsOverACrash kills the control plane while run --wait shows a log.
func (p *installed) followsOverACrash(t *testing.T) {
	cmd := p.command("run", "--image", p.image, "--type", "batch", "--mem", "128m", "--wait", "--",
		"for i in 1 2 3 4 5 6 7 8; do echo line $i; sleep 0.4; done; exit 6")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	begin := make([]byte, len("line 1\n"))
	if _, err := io.ReadFull(out, begin); err != nil {
		t.Fatal(err)
	}
	p.kill()
	rest, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	want := ""
	for i := range 8 {
		want += "line " + strconv.Itoa(i+1) + "\n"
	}
	if got := string(begin) + string(rest); got != want || cmd.ProcessState.ExitCode() != 6 {
		t.Errorf("exit code %d, log\n%s", cmd.ProcessState.ExitCode(), got)
	}
}

// opensATerminal runs a session with its first terminal, which is its end.
func (p *installed) opensATerminal(t *testing.T) {
	cmd := p.command("run", "--image", p.image, "--name", "own-terminal", "--mem", "128m", "--rm")
	screen, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 99, Rows: 31})
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	view := watch(screen)
	view.await(t, "work@main1")
	if p.image == enginetest.ImageMinimal { // the simulated shell has no stty
		view.enter(t, "stty size\r")
		view.await(t, "31 99\r\n")
	}
	view.enter(t, "echo sum-$((40+4)); exit 4\r")
	view.await(t, "sum-44\r\n")
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 4 {
		t.Errorf("exit code %d, want the shell's 4:\n%s", code, view.text())
	}
	p.must("stop", "--wait", "own-terminal") // waits only: its end is under way
	if s := p.session("show", "own-terminal"); s.Status != "TERMINATED" {
		t.Errorf("with --rm it is %s after its terminal", s.Status)
	}
}

// view is what was written to a terminal so far.
type view struct {
	screen *os.File
	more   chan string
	seen   strings.Builder
}

func watch(screen *os.File) *view {
	v := &view{screen: screen, more: make(chan string, 1000)}
	go func() {
		defer close(v.more)
		buffer := make([]byte, 64<<10)
		for {
			n, err := screen.Read(buffer)
			if n > 0 {
				v.more <- string(buffer[:n])
			}
			if err != nil {
				return
			}
		}
	}()
	return v
}

func (v *view) text() string { return v.seen.String() }

func (v *view) await(t *testing.T, text string) {
	t.Helper()
	deadline := time.After(patience)
	for !strings.Contains(v.text(), text) {
		select {
		case more, open := <-v.more:
			if !open {
				t.Fatalf("the terminal ended without %q:\n%s", text, v.text())
			}
			v.seen.WriteString(more)
		case <-deadline:
			t.Fatalf("%q did not appear:\n%s", text, v.text())
		}
	}
}

func (v *view) enter(t *testing.T, keys string) {
	t.Helper()
	if _, err := io.WriteString(v.screen, keys); err != nil {
		t.Fatal(err)
	}
}

func (p *installed) runsBatches(t *testing.T) {
	for _, code := range []int{0, 3} {
		got := p.do("run", "--image", p.image, "--name", "batch-"+strconv.Itoa(code), "--type", "batch", "--mem",
			"128m", "--wait", "--",
			"sh", "-c", "echo one; echo two; exit "+strconv.Itoa(code))
		if got.code != code || got.stdout != "one\ntwo\n" {
			t.Errorf("a batch that exits with %d: %+v", code, got)
		}
	}
	if got := p.must("logs", "batch-3"); got != "one\ntwo\n" {
		t.Errorf("its log after the end: %q", got)
	}
	if got := p.must("logs", "--tail", "1", "batch-3"); got != "two\n" {
		t.Errorf("the last line of its log: %q", got)
	}
	s := p.session("show", "batch-3")
	if s.Status != "TERMINATED" || s.Result != "failure" || s.Reason != "task-failed" || s.ExitCode == nil ||
		*s.ExitCode != 3 {
		t.Errorf("it is shown as %+v", s)
	}
	got := p.do("run", "--image", "no/such-image:0", "--name", "no-image", "--type", "batch", "--wait",
		"--wait-timeout", "180s", "--", "true")
	if s := p.session("show", "no-image"); got.code != ExitNoResult || s.Status != "ERROR" ||
		s.Reason != "pull-failed" || s.Error == nil || s.Error.Hint == "" {
		t.Errorf("an image that is not there: %+v, %+v", got, s)
	}
}

func (p *installed) refusesBadInput(t *testing.T) {
	before := len(p.sessions("ps", "-a"))
	for _, args := range [][]string{
		{"--image", p.image, "--name", "a"},
		{"--image", p.image, "--name", "has blanks"},
		{"--image", p.image, "--name", "e2e-two"}, // taken
		{"--image", "two words"},
		{"--image", "name:"},
		{"--image", p.image, "--type", "interactiv"},
		{"--image", p.image, "--type", "batch"}, // no command
		{"--image", p.image, "--cpu", "100000"},
		{"--image", p.image, "--mem", "much"},
		{"--image", p.image, "--mem", "1"},
		{"--image", p.image, "--mem", "512m", "--shm", "1g"},
		{"--image", p.image, "--threads", "1001"},
		{"--image", p.image, "-e", "1A=b"},
		{"--image", p.image, "-e", "SLIPWAY_X=b"},
		{"--image", p.image, "-v", "/etc:/proc"},
		{"--image", p.image, "-v", "/no/such/directory"},
		{"--image", p.image, "--port", "80"},
		{"--image", p.image, "--timeout", "30m"}, // of a batch only
		{"--image", p.image, "--on", "nobody"},
		{"--image", p.image, "--gpu", "one"},
		{"--image", p.image, "--gpu", "1000"}, // more than there are
		{"--image", p.image, "--gpu", "mig:9g.999gb"},
		{"--image", p.image, "--mps"},
		{"--image", p.image, "--cluster", "9"},
		{"--image", p.image, "--priority", "101"},
		{"--image", p.image, "--after", "nobody-there"},
		{"--image", p.image, "--pending-timeout", "soon"},
		{"--image", p.image, "--label", " blank"},
		{"--image", p.image, "--idle-gpu", "5"}, // no window
		{"--image", p.image, "--count", "11"},
	} {
		got := p.do(append([]string{"run", "-d", "-o", "json"}, args...)...)
		var told session.Error
		if err := json.Unmarshal([]byte(got.stderr), &told); err != nil || told.Code == "" || told.Message == "" ||
			got.code == ExitOK || got.stdout != "" {
			t.Errorf("run %q: %+v, want a problem", args, got)
		}
		if told.Hint == "" && (len(told.Fields) == 0 || told.Fields[0].Hint == "" && told.Fields[0].Said == nil) {
			t.Errorf("run %q: %+v says not what to do", args, told)
		}
	}
	if after := len(p.sessions("ps", "-a")); after != before {
		t.Errorf("%d sessions were created", after-before)
	}
}

func TestManyFirstCommandsStartOneControlPlane(t *testing.T) {
	leaveOutIfShort(t)
	p := install(t, "sim")
	results := make(chan result)
	for range 6 {
		go func() { results <- p.do("ps", "-o", "json") }()
	}
	for range 6 {
		if got := <-results; got.code != ExitOK || strings.TrimSpace(got.stdout) != "[]" {
			t.Errorf("one of them: %+v", got)
		}
	}
	serving, err := p.home.Serving()
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(p.home.LogFile())
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(log), "msg=serving"); n != 1 {
		t.Errorf("%d control planes came to serve (the one that stays is %d), want 1:\n%s", n, serving.PID, log)
	}
}
