package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway/backend/engine"
	"slipway/backend/engine/enginetest"
	"slipway/backend/guest/link"
	"slipway/backend/session"
	"slipway/backend/terminal"
	"slipway/gpu"
)

// quick is fast enough for tests and slow enough that things overlap.
const quick = 200

func open(t *testing.T, dir string) *Sim {
	t.Helper()
	return openBeside(t, dir, dir)
}

// openBeside opens an engine that may mount what lies in data.
func openBeside(t *testing.T, dir, data string) *Sim {
	t.Helper()
	s, err := Open(Config{Dir: dir, Data: data, Instance: "one", Speed: quick})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestSimKeepsThePromisesOfAnEngine(t *testing.T) {
	var current *Sim
	enginetest.Run(t, func(t *testing.T) engine.Engine {
		dir := t.TempDir()
		current = openBeside(t, dir, filepath.Dir(dir)) // the suite mounts other directories of the test
		return engine.Of(current)
	}, enginetest.Options{
		Instance: "one", Image: "python:3.12", Guest: true, OOM: "stress --vm-bytes 1G --timeout 60",
		Serve:     []string{"httpd", "-p", fmt.Sprint(enginetest.ServePort)},
		PullImage: "julia:1.11", Evict: func(t *testing.T, ref string) {
			if err := current.Evict(ref); err != nil {
				t.Error(err)
			}
		},
		HomeExists: func(t *testing.T, _ engine.Container) bool { return homeExists(t, current) },
		DropGuest: func(t *testing.T, id string) {
			current.mu.Lock()
			defer current.mu.Unlock()
			if err := current.byID[id].life.conn.Close(); err != nil {
				t.Error(err)
			}
		},
	})
}

// homeExists looks for the home of the only container.
func homeExists(t *testing.T, s *Sim) bool {
	t.Helper()
	homes, err := filepath.Glob(filepath.Join(s.config.Dir, "containers", "*", "root", "home", "work"))
	if err != nil {
		t.Fatal(err)
	}
	return len(homes) > 0
}

func spec(name, command string) engine.Container {
	return engine.Container{
		Name: name, Hostname: "main1", Image: "python:3.12", Memory: 256 * gpu.MiB, Shm: 64 * gpu.MiB,
		CPUs:   []int{2, 5},
		Labels: map[string]string{engine.LabelInstance: "one", engine.LabelSession: name},
		Guest: engine.GuestConfig{UID: 1000, GID: 1000, Command: command,
			Env: []session.EnvVar{{Name: "COLOUR", Value: "blue"}}},
	}
}

func start(t *testing.T, s *Sim, c engine.Container) string {
	t.Helper()
	id, err := s.Create(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	return id
}

func connect(t *testing.T, s *Sim, id string) *link.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	conn, err := s.Guest(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	client, err := link.Connect(ctx, conn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() }) //nolint:errcheck // it may be broken by then
	return client
}

func exec(t *testing.T, client *link.Client, command ...string) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	stream, err := client.Exec(ctx, session.ExecRequest{Command: command})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	code, err := terminal.RunExec(ctx, terminal.NewConn(stream), terminal.ExecIO{Stdout: &out, Stderr: &out})
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), code
}

func ended(t *testing.T, s *Sim, id string) engine.State {
	t.Helper()
	for range 24_000 {
		state, err := s.Inspect(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if !state.Running && !state.Created {
			return state
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("the container does not end")
	return engine.State{}
}

func TestSession(t *testing.T) {
	s := open(t, t.TempDir())
	id := start(t, s, spec("a", ""))
	client := connect(t, s, id)
	t.Run("commands see the limits that were asked for", func(t *testing.T) {
		got, code := exec(t, client, "sh", "-c",
			"nproc; cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/cpuset.cpus.effective; echo $COLOUR; pwd; whoami")
		if want := "2\n268435456\n2,5\nblue\n/home/work\nwork\n"; got != want || code != 0 {
			t.Errorf("got %q, %d, want %q", got, code, want)
		}
	})
	t.Run("what is not there says so", func(t *testing.T) {
		_, err := client.Exec(t.Context(), session.ExecRequest{Command: []string{"julia"}})
		if session.CodeOf(err) != "process_start_not-found" {
			t.Errorf("got %v", err)
		}
		_, err = client.Exec(t.Context(), session.ExecRequest{Command: []string{"ls"}, Dir: "/nowhere"})
		if session.CodeOf(err) != "guest_call_internal-error" {
			t.Errorf("got %v", err)
		}
		found, err := client.Which(t.Context(), []string{"bash", "jupyter-lab"})
		if err != nil || len(found) != 1 || found["bash"] != "/usr/bin/bash" {
			t.Errorf("got %v, %v", found, err)
		}
		_, err = client.StartService(t.Context(), link.ServiceRequest{ID: "jupyterlab", Argv: []string{"jupyter-lab"},
			Port: 7430})
		if session.CodeOf(err) != "app_start_not-installed" {
			t.Errorf("got %v", err)
		}
	})
	t.Run("what a small build leaves out says so", func(t *testing.T) {
		with := spec("notebook", "")
		with.Image = "quay.io/jupyter/minimal-notebook:latest"
		if _, err := s.Pull(t.Context(), with.Image, engine.Login{}, func(session.Pull) {}); err != nil {
			t.Fatal(err)
		}
		request := link.ServiceRequest{ID: "jupyterlab", Argv: []string{"jupyter-lab"}, Port: 7430}
		_, err := connect(t, s, start(t, s, with)).StartService(t.Context(), request)
		if failure := session.AsError(err, ""); failure.Code != "app_start_exited" ||
			!strings.Contains(failure.Message, "this build of Slipway has no notebook") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("files of a terminal and a command are the same", func(t *testing.T) {
		opened, err := client.OpenTerminal(t.Context(), session.TerminalRequest{Cols: 80, Rows: 24})
		if err != nil {
			t.Fatal(err)
		}
		stream, err := client.AttachTerminal(t.Context(), session.AttachRequest{Terminal: opened.ID, Client: "me"})
		if err != nil {
			t.Fatal(err)
		}
		var shown bytes.Buffer
		viewer := terminal.NewViewer(terminal.ViewerConfig{Client: "me", Output: &shown})
		if _, err := viewer.Write([]byte("echo both > file\rexit 3\r")); err != nil {
			t.Fatal(err)
		}
		code, err := viewer.Run(t.Context(), terminal.NewConn(stream))
		if err != nil || code != 3 || !strings.HasPrefix(shown.String(), "work@main1:~$ echo both > file\r\n") {
			t.Errorf("got %q, %d, %v", shown.String(), code, err)
		}
		if got, _ := exec(t, client, "cat", "file"); got != "both\n" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("a service is started, reached and stopped", func(t *testing.T) {
		started, err := client.StartService(t.Context(),
			link.ServiceRequest{ID: "files", Argv: []string{"httpd", "-p", "8080"}, Port: 8080, Ready: "/"})
		if err != nil || started.State != link.ServiceReady {
			t.Fatalf("got %+v, %v", started, err)
		}
		conn, err := client.Dial(t.Context(), 8080)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte("GET /file HTTP/1.0\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		var page bytes.Buffer
		if _, err := page.ReadFrom(conn); err != nil || !strings.HasSuffix(page.String(), "\r\n\r\nboth\n") {
			t.Errorf("got %q, %v", page.String(), err)
		}
		if err := client.StopService(t.Context(), "files"); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Dial(t.Context(), 8080); session.CodeOf(err) != "app_start_timeout" {
			t.Errorf("got %v", err)
		}
	})
	t.Run("load shows in the samples, lack of memory in the state", func(t *testing.T) {
		before, err := s.Stats(t.Context(), []string{id})
		if err != nil {
			t.Fatal(err)
		}
		if output, code := exec(t, client, "stress", "--cpu", "2", "--vm-bytes", "100M", "--timeout",
			"0.3"); code != 0 {
			t.Fatalf("got %q, %d", output, code)
		}
		after, err := s.Stats(t.Context(), []string{id})
		if err != nil || after[id].CPU-before[id].CPU < 400*time.Millisecond {
			t.Errorf("CPU grew from %s to %s (%v)", before[id].CPU, after[id].CPU, err)
		}
		if _, code := exec(t, client, "stress", "--vm-bytes", "1G"); code != 137 {
			t.Errorf("got code %d, want 137", code)
		}
		state, err := s.Inspect(t.Context(), id)
		if err != nil || !state.Running || !state.OOMKilled {
			t.Errorf("want running and short of memory, got %+v, %v", state, err)
		}
	})
}

func TestMountsAreDirectoriesOfTheMachine(t *testing.T) {
	s := open(t, t.TempDir())
	dir := filepath.Join(s.config.Dir, "disk", "data")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	c := spec("a", "echo kept > data/file; echo x > fixed/file")
	c.Mounts = []session.Mount{{Source: dir, Target: "/home/work/data"},
		{Source: dir, Target: "/home/work/fixed", ReadOnly: true}}
	id := start(t, s, c)
	if state := ended(t, s, id); state.ExitCode == 0 {
		t.Errorf("writing to a read-only mount succeeded: %+v", state)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(data) != "kept\n" {
		t.Errorf("got %q, %v", data, err)
	}
	if err := s.Remove(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "file")); err != nil {
		t.Errorf("removing the container took the mounted file: %v", err)
	}
	c.Mounts[0].Source = filepath.Join(dir, "missing")
	c.Name = "b"
	if _, err := s.Create(t.Context(), c); session.CodeOf(err) != "engine_call_invalid" {
		t.Errorf("got %v", err)
	}
}

func TestNothingOutsideTheDataFolderIsMounted(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	s, inside, link := open(t, dir), filepath.Join(dir, "disk"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600),
		os.Mkdir(inside, 0o755), os.Symlink(outside, link)); err != nil {
		t.Fatal(err)
	}
	c := spec("a", "")
	for _, source := range []string{outside, "/", link, filepath.Join(dir, "..", filepath.Base(outside))} {
		c.Mounts = []session.Mount{{Source: source, Target: "/home/work/data"}}
		if _, err := s.Create(t.Context(), c); session.CodeOf(err) != "engine_call_invalid" {
			t.Errorf("%s is mounted: %v", source, err)
		}
	}
	exchange := func() {
		if err := errors.Join(os.Remove(inside), os.Symlink(outside, inside)); err != nil {
			t.Fatal(err)
		}
	}
	c.Mounts[0].Source = inside
	id, err := s.Create(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	c.Name = "b"
	started := start(t, s, c)
	exchange()
	if err := s.Start(t.Context(), id); session.CodeOf(err) != "engine_start_failed" {
		t.Errorf("a link that was put there before the start is followed: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if state := ended(t, open(t, dir), started); state.ExitCode != 137 {
		t.Errorf("what was mounted is gone, and the session is %+v", state)
	}
	if data, err := os.ReadFile(filepath.Join(outside, "secret")); err != nil || string(data) != "secret" {
		t.Errorf("the file outside is %q, %v", data, err)
	}
}

func TestRestart(t *testing.T) {
	dir := t.TempDir()
	first := open(t, dir)
	running := start(t, first, spec("running", ""))
	client := connect(t, first, running)
	if _, code := exec(t, client, "sh", "-c", "echo kept > file"); code != 0 {
		t.Fatal("the file was not written")
	}
	done := start(t, first, spec("done", "echo said; exit 4"))
	ended(t, first, done)
	created, err := first.Create(t.Context(), spec("created", ""))
	if err != nil {
		t.Fatal(err)
	}
	busy := start(t, first, spec("busy", "sleep 600"))
	if _, err := first.Pull(t.Context(), "julia:1.10", engine.Login{}, func(session.Pull) {}); err != nil {
		t.Fatal(err)
	}
	before, err := first.Inspect(t.Context(), running)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := first.List(t.Context()); session.CodeOf(err) != "engine_connect_unavailable" {
		t.Errorf("a closed engine answers: %v", err)
	}

	second := open(t, dir)
	t.Run("a running container runs again with its files", func(t *testing.T) {
		state, err := second.Inspect(t.Context(), running)
		if err != nil || !state.Running || !state.StartedAt.Equal(before.StartedAt) {
			t.Fatalf("got %+v, %v", state, err)
		}
		if got, _ := exec(t, connect(t, second, running), "cat", "file"); got != "kept\n" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("one that had ended keeps its code and log", func(t *testing.T) {
		state, err := second.Inspect(t.Context(), done)
		if err != nil || state.Running || state.ExitCode != 4 {
			t.Errorf("got %+v, %v", state, err)
		}
		log, err := second.Logs(t.Context(), done, session.LogOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if _, err := text.ReadFrom(log); err != nil || text.String() != "said\n" {
			t.Errorf("got %q, %v", text.String(), err)
		}
	})
	t.Run("one that was created can be started", func(t *testing.T) {
		if err := second.Start(t.Context(), created); err != nil {
			t.Error(err)
		}
	})
	t.Run("a batch command that was cut off has failed", func(t *testing.T) {
		if state, err := second.Inspect(t.Context(), busy); err != nil || state.Running || state.ExitCode != 137 {
			t.Errorf("got %+v, %v", state, err)
		}
	})
	t.Run("a pulled image is still there", func(t *testing.T) {
		if _, err := second.Image(t.Context(), "julia:1.10"); err != nil {
			t.Error(err)
		}
	})
}

func TestFaults(t *testing.T) {
	s := open(t, t.TempDir())
	t.Run("a crash ends the container", func(t *testing.T) {
		id := start(t, s, spec("crash", ""))
		client := connect(t, s, id)
		s.Exit(id, 137)
		<-client.Done()
		if state := ended(t, s, id); state.ExitCode != 137 || state.OOMKilled {
			t.Errorf("got %+v", state)
		}
	})
	t.Run("exhausted memory is told", func(t *testing.T) {
		id := start(t, s, spec("oom", ""))
		s.OOM(id)
		if state := ended(t, s, id); state.ExitCode != 137 || !state.OOMKilled {
			t.Errorf("got %+v", state)
		}
	})
	t.Run("a lost container is gone with its files", func(t *testing.T) {
		id := start(t, s, spec("lost", ""))
		if err := s.Lose(id); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Inspect(t.Context(), id); session.CodeOf(err) != "engine_read_not-found" {
			t.Errorf("got %v", err)
		}
		if _, err := os.Stat(s.containerDir(id)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("its files are still there: %v", err)
		}
	})
	t.Run("an unreadable state is said and left alone", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "engine.json"), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(Config{Dir: dir}); session.CodeOf(err) != "server_start_invalid" {
			t.Errorf("got %v", err)
		}
		if data, err := os.ReadFile(filepath.Join(dir, "engine.json")); err != nil || string(data) != "{" {
			t.Errorf("the file was changed: %q, %v", data, err)
		}
	})
}

func TestAnImageThatIsBroughtKeepsItsLabelsAndTakesItsName(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	bring := func(id byte, replace bool) (session.Image, error) {
		content := func(text string) engine.Content {
			return engine.Content{Open: func() (io.ReadCloser, error) {
				return io.NopCloser(strings.NewReader(text)), nil
			}}
		}
		layer := "sha256:" + strings.Repeat(string(id), 64)
		return s.ImportImage(t.Context(), session.ImageParts{ID: "sha256:" + strings.Repeat(string(id+1), 64),
			Refs: []string{"mine:1"}, Replace: replace, Layers: []session.ImageLayer{{Digest: layer, Size: gpu.MiB}}},
			map[string]engine.Content{layer: content(""),
				session.ImageConfig: content(`{"config": {"Labels": {"made": "by ` + string(id) + `"}}}`)})
	}
	first, err := bring('a', false)
	if err != nil || first.Labels["made"] != "by a" || first.Size != gpu.MiB {
		t.Fatalf("got %+v, %v", first, err)
	}
	if _, err := bring('c', false); session.CodeOf(err) != "image_update_conflict" {
		t.Errorf("a name that is taken: %v", err)
	}
	second, err := bring('c', true)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	named, err := open(t, dir).Image(t.Context(), "mine:1")
	if err != nil || named.ID != second.ID || named.Labels["made"] != "by c" {
		t.Errorf("after a restart the name is that of %+v, %v", named, err)
	}
}
