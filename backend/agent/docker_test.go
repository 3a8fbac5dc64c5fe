package agent

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"slipway/backend/agent/host"
	"slipway/backend/engine"
	"slipway/backend/engine/docker"
	"slipway/backend/engine/enginetest"
	"slipway/backend/guest/payload"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

// patience is how long a test waits for what must happen. No test says how soon
// that is: a machine with other work may take its time.
const patience = 3 * time.Minute

// real is an agent on a real Docker daemon.
type real struct {
	t      *testing.T
	dir    string
	engine engine.Engine
	store  *store.Store
	agent  *Agent
	stop   func()
}

// openReal opens an agent on the daemon at address with its data in dir, and runs
// it. The daemon's containers of this instance stay when it stops.
func openReal(dir, address string, change ...func(*Config)) (*real, error) {
	s, err := store.Open(store.Config{Path: filepath.Join(dir, "agent.db")})
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	e, err := docker.Open(docker.Config{Host: address, Dir: filepath.Join(dir, "kernels"), Instance: s.Instance(),
		Guest: payload.Binary, Log: log})
	if err != nil {
		return nil, err
	}
	config := Config{Name: "local", Dir: dir, Engine: engine.Of(e), Store: s, Owner: "ada",
		UID: os.Getuid(), GID: os.Getgid(), Version: "test", Log: log, Sessions: SessionConfig{App: patience,
			Limits: host.Limits{Grace: 2 * time.Second, Guest: patience, Backoff: []time.Duration{time.Second / 5}}}}
	for _, fn := range change {
		fn(&config)
	}
	a, err := Open(config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.Run(ctx) //nolint:errcheck // ends with ctx
	}()
	return &real{dir: dir, engine: engine.Of(e), store: s, agent: a, stop: func() {
		cancel()
		<-ended
		a.Close()
		e.Close()
		s.Close()
	}}, nil
}

func newReal(t *testing.T, dir string, change ...func(*Config)) *real {
	t.Helper()
	return newRealAt(t, dir, enginetest.RequireDocker(t), change...)
}

func newRealAt(t *testing.T, dir, host string, change ...func(*Config)) *real {
	t.Helper()
	r, err := openReal(dir, host, change...)
	if err != nil {
		t.Fatal(err)
	}
	r.t = t
	t.Cleanup(func() {
		r.endAll()
		r.stop()
	})
	return r
}

// endAll ends every session by force, so that a test leaves nothing.
func (r *real) endAll() {
	live, err := r.agent.List(context.Background(), session.Filter{Live: true})
	if err != nil {
		r.t.Error(err)
	}
	for _, s := range live {
		if _, err := r.agent.Terminate(context.Background(), s.ID, true); err != nil {
			r.t.Error(err)
		}
	}
	for _, s := range live {
		r.await(s.ID, "ended", func(s session.Session) bool { return s.Status.Terminal() })
	}
	states, err := r.engine.List(context.Background())
	if err != nil || len(states) > 0 {
		r.t.Errorf("left behind: %+v, %v", states, err)
	}
	if problems, err := r.store.Check(); err != nil || len(problems) > 0 {
		r.t.Errorf("audit: %v, %v", problems, err)
	}
}

func (r *real) launch(spec session.Spec) session.Session {
	r.t.Helper()
	if spec.Image == "" {
		spec.Image = enginetest.ImageMinimal
	}
	if spec.Resources.Memory == 0 {
		spec.Resources.Memory = 256 * gpu.MiB
	}
	s, err := r.agent.Launch(context.Background(), session.LaunchRequest{Spec: spec})
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

func (r *real) await(id session.ID, what string, done func(session.Session) bool) session.Session {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var last session.Session
	found := errors.New("found")
	err := r.agent.Watch(ctx, session.Cursor{}, func(e session.Event) error {
		var seen []session.Session
		if e.Reset != nil {
			seen = e.Reset.Sessions
		}
		if e.Session != nil {
			seen = append(seen, *e.Session)
		}
		for _, s := range seen {
			if s.ID == id {
				if last = s; done(s) {
					return found
				}
			}
		}
		return nil
	})
	if !errors.Is(err, found) {
		history, _ := r.agent.History(context.Background(), id)
		r.t.Fatalf("session %s did not become %s: %v; it is %+v\n%+v\n%+v", id, what, err, last, last.Error, history)
	}
	return last
}

func (r *real) awaitEnd(id session.ID) session.Session {
	r.t.Helper()
	return r.await(id, "ended", func(s session.Session) bool { return s.Status.Terminal() })
}

func (r *real) awaitRunning(id session.ID) session.Session {
	r.t.Helper()
	return r.await(id, "RUNNING", func(s session.Session) bool {
		return s.Status == session.Running ||
			s.Status.Terminal()
	})
}

// exec runs a command and returns what it wrote to stdout and its exit code.
func (r *real) exec(id session.ID, command ...string) (string, int) {
	r.t.Helper()
	return r.execIn(id, "", command...)
}

// execIn runs a command in one kernel.
func (r *real) execIn(id session.ID, kernel string, command ...string) (string, int) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	stream, err := r.agent.Exec(ctx, id, session.ExecRequest{Kernel: kernel, Command: command})
	if err != nil {
		r.t.Fatal(err)
	}
	defer stream.Close()
	var out strings.Builder
	for {
		kind, payload, err := readFrame(stream)
		if err != nil {
			r.t.Fatalf("exec %v: %v after %q", command, err, out.String())
		}
		switch kind {
		case 'D':
			out.Write(payload)
		case 'X':
			return out.String(), int(int32(binary.BigEndian.Uint32(payload)))
		}
	}
}

func readFrame(r io.Reader) (byte, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	payload := make([]byte, binary.BigEndian.Uint32(head[1:]))
	_, err := io.ReadFull(r, payload)
	return head[0], payload, err
}

// client sends requests to a port of a session.
func (r *real) client(id session.ID, port int) *http.Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return r.agent.DialPort(ctx, id, port) }
	return &http.Client{Transport: &http.Transport{DialContext: dial}}
}

func (r *real) log(id session.ID, opts session.LogOptions) string {
	r.t.Helper()
	log, err := r.agent.Logs(context.Background(), id, opts)
	if err != nil {
		r.t.Fatal(err)
	}
	defer log.Close()
	text, err := io.ReadAll(log)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(text)
}

func TestRealDocker(t *testing.T) {
	t.Parallel()
	enginetest.RequireDocker(t)
	r := newReal(t, t.TempDir())
	t.Run("an interactive session has what it asked for", r.interactive)
	t.Run("batch sessions end with their command", r.batch)
	t.Run("memory that runs out is named", r.outOfMemory)
	t.Run("failures are named states", r.failures)
	t.Run("an image that holds one binary runs", r.static)
}

func (r *real) in(t *testing.T) *real {
	inner := *r
	inner.t = t
	return &inner
}

func (r *real) interactive(t *testing.T) {
	r = r.in(t)
	data := t.TempDir()
	if err := os.WriteFile(filepath.Join(data, "file"), []byte("mounted\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	s := r.launch(session.Spec{Name: "inter.active", Resources: session.Resources{CPU: 1, Memory: 300 * gpu.MiB,
		Shm: 32 * gpu.MiB},
		Env:    []session.EnvVar{{Name: "MINE", Value: "a b"}},
		Mounts: []session.Mount{{Source: data, Target: "data", ReadOnly: true}},
		Access: session.Access{Ports: []int{8000}}})
	s = r.awaitRunning(s.ID)
	t.Logf("RUNNING after %v and %d transactions", time.Since(begin), r.store.Changes())
	history, err := r.agent.History(context.Background(), s.ID)
	if err != nil || len(history) != 3 {
		t.Errorf("history %+v, %v", history, err)
	}
	for _, p := range history {
		for _, step := range p.Steps {
			t.Logf("%s/%s %s in %v", p.Phase, step.Step, step.Result, step.EndedAt.Sub(step.StartedAt))
		}
	}
	for command, want := range map[string]string{
		"nproc":                                "1",
		"cat ~/data/file":                      "mounted",
		"echo $MINE":                           "a b",
		"echo $SLIPWAY_CPUS":                   "1",
		"echo $OMP_NUM_THREADS":                "1",
		"pwd":                                  "/home/work",
		"id -un":                               "work",
		"hostname":                             "main1",
		"df -k /dev/shm | awk 'END{print $2}'": fmt.Sprint(32 << 10),
		"cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null; true": fmt.Sprint(
			300 << 20),
		"echo $SLIPWAY_SESSION_ID $SLIPWAY_SESSION_NAME": string(s.ID) +
			" inter.active",
	} {
		if got, code := r.exec(s.ID, "bash", "-c", command); strings.TrimSpace(got) != want || code != 0 {
			t.Errorf("%s prints %q with %d, want %q", command, got, code, want)
		}
	}
	if _, code := r.exec(s.ID, "bash", "-c", "touch data/x"); code == 0 {
		t.Error("a read-only mount was written")
	}
	r.usage(s)
	opened, err := r.agent.OpenTerminal(context.Background(), s.ID, session.TerminalRequest{Cols: 80, Rows: 24})
	if err != nil {
		t.Fatal(err)
	}
	list, err := r.agent.ListTerminals(context.Background(), s.ID)
	if err != nil || len(list) != 1 || list[0].ID != opened.ID {
		t.Errorf("terminals %+v, %v", list, err)
	}
	apps, err := r.agent.ListApps(context.Background(), s.ID)
	if err != nil || len(apps) != 1 || apps[0].State != session.AppStopped {
		t.Errorf("apps %+v, %v", apps, err)
	}
	_, err = r.agent.StartApp(context.Background(), s.ID, session.AppRequest{App: "notebook"})
	if session.CodeOf(err) != "app_start_not-installed" {
		t.Errorf("a notebook that is not installed: %v", err)
	}
	if _, err := r.agent.Terminate(context.Background(), s.ID, false); err != nil {
		t.Fatal(err)
	}
	begin = time.Now()
	s = r.awaitEnd(s.ID)
	t.Logf("ended after %v", time.Since(begin))
	if s.Status != session.Terminated || s.Reason != session.ReasonUser || len(s.Warnings) > 0 {
		t.Errorf("ended as %s, %s, %+v", s.Status, s.Reason, s.Warnings)
	}
}

// usage checks that a session that keeps its CPU busy is seen to.
func (r *real) usage(s session.Session) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	busy, err := r.agent.Exec(ctx, s.ID, session.ExecRequest{Command: []string{"bash", "-c", "while :; do :; done"}})
	if err != nil {
		r.t.Fatal(err)
	}
	defer busy.Close()
	found := errors.New("found")
	var last session.Usage
	err = r.agent.Watch(ctx, session.Cursor{}, func(e session.Event) error {
		for _, u := range e.Usage {
			if last = u; u.CPU > 0.02 && u.CPU < 1.1 && u.Memory > gpu.MiB && u.MemLimit == s.Grants.Memory &&
				u.Pids > 1 {
				return found
			}
		}
		return nil
	})
	if !errors.Is(err, found) {
		r.t.Errorf("its use was not seen: %v, %+v", err, last)
	}
}

func (r *real) batch(t *testing.T) {
	r = r.in(t)
	good := r.launch(session.Spec{Type: session.Batch, Command: "echo one; sleep 0.2; echo two; sleep 0.2; echo three"})
	followed := make(chan string, 1)
	go func() { followed <- r.log(good.ID, session.LogOptions{Follow: true}) }()
	if s := r.awaitEnd(good.ID); s.Result != session.ResultSuccess || s.Reason != session.ReasonFinished ||
		s.ExitCode == nil || *s.ExitCode != 0 {
		t.Errorf("ended as %+v", s)
	}
	if got := <-followed; got != "one\ntwo\nthree\n" {
		t.Errorf("followed %q", got)
	}
	if got := r.log(good.ID, session.LogOptions{Tail: 1}); got != "three\n" {
		t.Errorf("kept %q", got)
	}
	if got := r.log(good.ID, session.LogOptions{Timestamps: true, Tail: 1}); !strings.HasSuffix(got, "Z three\n") {
		t.Errorf("kept with timestamps %q", got)
	}
	quick := r.launch(session.Spec{Type: session.Batch, Command: "echo to stderr >&2; exit 3"})
	if s := r.awaitEnd(quick.ID); s.Result != session.ResultFailure || s.Reason != session.ReasonTaskFailed ||
		*s.ExitCode != 3 || s.StartedAt == nil {
		t.Errorf("ended as %+v", s)
	}
	if got := r.log(quick.ID, session.LogOptions{}); got != "to stderr\n" {
		t.Errorf("kept of its errors %q", got)
	}
	slow := r.launch(session.Spec{Type: session.Batch, Command: "trap '' TERM; sleep 60",
		Lifetime: session.Lifetime{Timeout: session.Duration(time.Second)}})
	if s := r.awaitEnd(slow.ID); s.Result != session.ResultFailure || s.Reason != session.ReasonTaskTimeout ||
		s.Status != session.Terminated {
		t.Errorf("ended as %+v", s)
	}
}

func (r *real) outOfMemory(t *testing.T) {
	r = r.in(t)
	const eat = `python3 -c "a=bytearray(400<<20)"`
	s := r.launch(session.Spec{Type: session.Batch, Command: eat, Resources: session.Resources{Memory: 100 * gpu.MiB}})
	if s = r.awaitEnd(s.ID); s.Reason != session.ReasonOOM || s.Result != session.ResultFailure || s.Error == nil ||
		s.Error.Code != session.CodeOOM {
		t.Errorf("the batch ended as %+v, %+v", s, s.Error)
	}
	s = r.launch(session.Spec{Resources: session.Resources{Memory: 100 * gpu.MiB}})
	s = r.awaitRunning(s.ID)
	if _, code := r.exec(s.ID, "bash", "-c", eat); code != 137 {
		t.Errorf("what ate the memory ended with %d", code)
	}
	s = r.await(s.ID, "warned", func(s session.Session) bool { return len(s.Warnings) > 0 })
	if s.Warnings[0].Code != session.CodeOOM || s.Status != session.Running {
		t.Errorf("warned of %+v while %s", s.Warnings, s.Status)
	}
	if got, code := r.exec(s.ID, "echo", "alive"); got != "alive\n" || code != 0 {
		t.Errorf("then %q, %d", got, code)
	}
}

func (r *real) failures(t *testing.T) {
	r = r.in(t)
	s := r.launch(session.Spec{Image: "127.0.0.1:9/slipway-test/nobody:1"})
	begin := time.Now()
	if s = r.awaitEnd(s.ID); s.Status != session.Failed || s.Reason != session.ReasonPullFailed || s.Error == nil ||
		s.Error.Hint == "" {
		t.Errorf("an image that nobody has ended as %+v, %+v", s, s.Error)
	}
	t.Logf("pull gave up after %v: %+v", time.Since(begin), s.Error)
	s = r.launch(session.Spec{Image: enginetest.ImageStatic, Type: session.Batch, Command: "echo hello"})
	if s = r.awaitEnd(s.ID); s.Status != session.Failed || s.Reason != session.ReasonStartFailed || s.Error == nil ||
		s.Error.Code != "session_start_no-shell" {
		t.Errorf("a batch without a shell ended as %+v, %+v", s, s.Error)
	}
	s = r.launch(session.Spec{})
	s = r.awaitRunning(s.ID)
	if err := r.engine.Remove(context.Background(), s.Container()); err != nil {
		t.Fatal(err)
	}
	if s = r.awaitEnd(s.ID); s.Status != session.Failed && s.Reason != session.ReasonSelf {
		t.Errorf("a container that someone removed ended as %s, %s", s.Status, s.Reason)
	}
}

func (r *real) static(t *testing.T) {
	r = r.in(t)
	s := r.launch(session.Spec{Image: enginetest.ImageStatic})
	s = r.awaitRunning(s.ID)
	if s.Status != session.Running {
		t.Fatalf("it is %+v", s)
	}
	if out, code := r.exec(s.ID, "/hello"); code != 0 || out == "" {
		t.Errorf("its binary printed %q and ended with %d", out, code)
	}
	if _, err := r.agent.OpenTerminal(context.Background(), s.ID,
		session.TerminalRequest{Cols: 80, Rows: 24}); session.CodeOf(err) != "guest_call_internal-error" {
		t.Errorf("a terminal without a shell: %v", err)
	}
}

const childVariable = "SLIPWAY_AGENT_TEST_DIR"

// TestMain runs an agent instead of the tests where the test of a kill asks
// for one: it launches sessions, one a line of stdin, and prints their ids.
func TestMain(m *testing.M) {
	dir := os.Getenv(childVariable)
	if dir == "" {
		os.Exit(m.Run())
	}
	r, err := openReal(dir, os.Getenv(enginetest.DockerVariable))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		spec := session.Spec{Name: lines.Text(), Image: enginetest.ImageMinimal,
			Resources: session.Resources{Memory: 128 * gpu.MiB}}
		if strings.HasPrefix(spec.Name, "batch") {
			spec.Type, spec.Command = session.Batch, "sleep 1; echo done; exit 5"
		}
		s, err := r.agent.Launch(context.Background(), session.LaunchRequest{Key: spec.Name, Spec: spec})
		fmt.Println(s.ID, err)
	}
}

// child is another process with an agent.
func startChild(t *testing.T, dir string) (*exec.Cmd, io.Writer, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+dir)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() }) //nolint:errcheck // usually dead already
	return cmd, in, bufio.NewScanner(out)
}

func TestRealKillLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	enginetest.RequireDocker(t)
	for _, after := range []time.Duration{0, 150 * time.Millisecond, 400 * time.Millisecond, 900 * time.Millisecond,
		3 * time.Second} {
		t.Run(after.String(), func(t *testing.T) {
			dir := t.TempDir()
			child, in, out := startChild(t, dir)
			ids := map[string]session.ID{}
			for _, name := range []string{"first", "batch"} {
				fmt.Fprintln(in, name)
				if !out.Scan() {
					t.Fatal("the child said nothing")
				}
				id, trouble, _ := strings.Cut(out.Text(), " ")
				if trouble != "<nil>" {
					t.Fatal(trouble)
				}
				ids[name] = session.ID(id)
			}
			time.Sleep(after) // the moment of the kill is what is tested
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			child.Wait() //nolint:errcheck // it was killed
			r := newReal(t, dir)
			s := r.awaitRunning(ids["first"])
			if s.Status != session.Running {
				t.Fatalf("the interactive session is %+v: %+v", s, s.Error)
			}
			if got, code := r.exec(s.ID, "echo", "hello"); got != "hello\n" || code != 0 {
				t.Errorf("it answers %q, %d", got, code)
			}
			b := r.awaitEnd(ids["batch"])
			if b.Status != session.Terminated || b.Reason != session.ReasonTaskFailed || *b.ExitCode != 5 {
				t.Errorf("the batch session ended as %+v, %+v", b, b.Error)
			}
			if got := r.log(b.ID, session.LogOptions{}); got != "done\n" {
				t.Errorf("its log is %q", got)
			}
			again, err := r.agent.Launch(context.Background(),
				session.LaunchRequest{Key: "first", Spec: session.Spec{Image: enginetest.ImageMinimal}})
			if err != nil || again.ID != ids["first"] {
				t.Errorf("its key leads to %s, %v", again.ID, err)
			}
			states, err := r.engine.List(context.Background())
			if err != nil || len(states) != 1 {
				t.Errorf("containers %+v, %v", states, err)
			}
		})
	}
}

func TestRealNotebook(t *testing.T) {
	t.Parallel()
	enginetest.RequireDocker(t)
	r := newReal(t, t.TempDir())
	s := r.launch(session.Spec{Image: enginetest.ImageNotebook, Resources: session.Resources{Memory: gpu.GiB}})
	s = r.awaitRunning(s.ID)
	ctx := context.Background()
	begin := time.Now()
	app, err := r.agent.StartApp(ctx, s.ID, session.AppRequest{App: "notebook"})
	if err != nil || app.State != session.AppReady {
		t.Fatalf("%+v, %v", app, err)
	}
	t.Logf("ready after %v", time.Since(begin))
	client := r.client(s.ID, app.Port)
	get := func(path string) (int, string) {
		answer, err := client.Get("http://localhost:" + strconv.Itoa(app.Port) + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(body)
	}
	if status, body := get("/api/contents"); status != 200 || !strings.Contains(body, `"content"`) {
		t.Errorf("contents: %d %s", status, body)
	}
	if status, body := get("/tree"); status != 200 || !strings.Contains(body, "Jupyter") {
		t.Errorf("page: %d %.200s", status, body)
	}
	if again, err := r.agent.StartApp(ctx, s.ID, session.AppRequest{App: "notebook"}); err != nil ||
		again.Port != app.Port {
		t.Errorf("started again: %+v, %v", again, err)
	}
	r.exec(s.ID, "bash", "-c",
		"kill -9 $(grep -l jupyter-notebook /proc/[0-9]*/cmdline | cut -d/ -f3 | grep -v self) 2>/dev/null")
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		apps, err := r.agent.ListApps(ctx, s.ID)
		if err != nil || len(apps) != 1 {
			t.Fatalf("apps %+v, %v", apps, err)
		}
		if apps[0].State == session.AppFailed {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("killed, it is %+v", apps[0])
		}
	}
	if app, err = r.agent.StartApp(ctx, s.ID, session.AppRequest{App: "notebook"}); err != nil ||
		app.State != session.AppReady {
		t.Fatalf("after its death: %+v, %v", app, err)
	}
	client.CloseIdleConnections()
	if status, _ := get("/api"); status != 200 {
		t.Errorf("after its death: %d", status)
	}
	if err := r.agent.StopApp(ctx, s.ID, "notebook"); err != nil {
		t.Error(err)
	}
}
