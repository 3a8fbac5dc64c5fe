//go:build linux

package docker_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"slipway/backend/engine"
	"slipway/backend/engine/docker"
	"slipway/backend/engine/enginetest"
	"slipway/backend/session"
)

// started creates and starts a container that the end of the test removes.
func started(t testing.TB, e *docker.Engine, c engine.Container) string {
	t.Helper()
	id := created(t, e, c)
	if err := e.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	return id
}

func created(t testing.TB, e *docker.Engine, c engine.Container) string {
	t.Helper()
	id, err := e.Create(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	forget(t, c)
	return id
}

// forget removes a container at the end of a test, past any engine.
func forget(t testing.TB, c engine.Container) {
	docker := api(t)
	t.Cleanup(func() {
		docker.ContainerRemove(context.Background(), c.Name,
			container.RemoveOptions{Force: true, RemoveVolumes: true}) //nolint:errcheck // it may be gone
		docker.VolumeRemove(context.Background(), "slipway-"+c.Labels[engine.LabelSession],
			true) //nolint:errcheck // it may be gone
	})
}

// mute makes a container whose guest never dials.
func mute(c engine.Container) engine.Container {
	c.Guest.Env = append(c.Guest.Env, session.EnvVar{Name: "GUEST_MUTE", Value: "1"})
	return c
}

// echo fails unless the guest sends back what it is sent.
func echo(t *testing.T, conn net.Conn, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()                                //nolint:errcheck // nothing to lose
	conn.SetDeadline(time.Now().Add(2 * time.Minute)) //nolint:errcheck // a socket takes deadlines
	if _, err := conn.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != "hello" {
		t.Fatalf("the guest sent back %q, %v", got, err)
	}
}

// holdVariable makes this program hold a guest's connection until it is killed,
// in place of running tests. Its value is the engine's directory and the container.
const holdVariable = "SLIPWAY_TEST_HOLD"

func hold(what string) {
	dir, id, _ := strings.Cut(what, "\n")
	e, err := docker.Open(docker.Config{Host: os.Getenv(enginetest.DockerVariable), Dir: dir, Instance: "held",
		Guest: standIn})
	if err != nil {
		panic(err)
	}
	conn, err := e.Guest(context.Background(), id)
	if err != nil {
		panic(err)
	}
	defer conn.Close() //nolint:errcheck // it is killed before
	os.Stdout.WriteString("held\n")
	time.Sleep(time.Hour)
}

// dial connects to a socket as whoever this program runs as, until its input ends.
func dial(path string) int {
	conn, err := net.Dial("unix", path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	io.Copy(io.Discard, os.Stdin) //nolint:errcheck // its end is what matters
	conn.Close()                  //nolint:errcheck // nothing was written
	return 0
}

func TestGuest(t *testing.T) {
	t.Run("comes again after a loss", func(t *testing.T) {
		e := open(t, docker.Config{Instance: instanceOf(t)})
		id := started(t, e, newContainer(instanceOf(t), ""))
		for range 3 {
			conn, err := e.Guest(t.Context(), id)
			echo(t, conn, err)
		}
	})
	t.Run("comes to a new process after the old one was killed", func(t *testing.T) {
		dir := t.TempDir()
		first := open(t, docker.Config{Dir: dir, Instance: "held"})
		id := started(t, first, newContainer("held", ""))
		conn, err := first.Guest(t.Context(), id)
		echo(t, conn, err)
		first.Close() //nolint:errcheck // only to give the link away
		holder := exec.Command(os.Args[0])
		holder.Env = append(os.Environ(), holdVariable+"="+dir+"\n"+id)
		out, err := holder.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := holder.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
			t.Fatalf("the holder said %q, %v", line, err)
		}
		if err := holder.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		holder.Wait() //nolint:errcheck // it was killed
		next := open(t, docker.Config{Dir: dir, Instance: "held"})
		conn, err = next.Guest(t.Context(), id)
		echo(t, conn, err)
	})
	t.Run("has exited once the container is killed by somebody else", func(t *testing.T) {
		e := open(t, docker.Config{Instance: instanceOf(t)})
		id := started(t, e, mute(newContainer(instanceOf(t), "")))
		go func() {
			time.Sleep(500 * time.Millisecond)
			api(t).ContainerKill(context.Background(), id, "KILL") //nolint:errcheck // the test tells
		}()
		_, err := e.Guest(t.Context(), id)
		wantCode(t, err, "engine_guest_exited")
	})
	t.Run("has exited once the container is removed by somebody else", func(t *testing.T) {
		e := open(t, docker.Config{Instance: instanceOf(t)})
		id := started(t, e, mute(newContainer(instanceOf(t), "")))
		if err := api(t).ContainerRemove(t.Context(), id,
			container.RemoveOptions{Force: true, RemoveVolumes: true}); err != nil {
			t.Fatal(err)
		}
		_, err := e.Guest(t.Context(), id)
		wantCode(t, err, "engine_read_not-found")
	})
	t.Run("is lost with the container's files", func(t *testing.T) {
		dir := t.TempDir()
		first := open(t, docker.Config{Dir: dir, Instance: "held"})
		c := newContainer("held", "")
		id := started(t, first, c)
		if err := os.RemoveAll(filepath.Join(dir, "kernels", c.Name)); err != nil {
			t.Fatal(err)
		}
		_, err := open(t, docker.Config{Dir: dir, Instance: "held"}).Guest(t.Context(), id)
		wantCode(t, err, "session_use_unavailable")
	})
	t.Run("is not mistaken for a process without its powers", func(t *testing.T) {
		e := open(t, docker.Config{Instance: instanceOf(t)})
		id := started(t, e, mute(newContainer(instanceOf(t), "")))
		knock := func(as ...string) {
			t.Helper()
			dial := `import socket, time; s = socket.socket(socket.AF_UNIX); s.connect("/.slipway/link/agent.sock");` +
				` print("in", flush=True); time.sleep(60)`
			args := append([]string{"-H", enginetest.RequireDocker(t), "exec", id}, as...)
			cmd := exec.Command("docker", append(args, "python3", "-c", dial)...)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				cmd.Process.Kill() //nolint:errcheck // it may have ended
				cmd.Wait()         //nolint:errcheck // it was killed
			})
			if line, err := bufio.NewReader(out).ReadString('\n'); line != "in\n" {
				t.Fatalf("the process could not connect: %q, %v", line, err)
			}
		}
		knock("setpriv", "--reuid", fmt.Sprint(os.Getuid()), "--clear-groups", "--bounding-set=-all", "--inh-caps=-all")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := e.Guest(ctx, id); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v, want that nobody came", err)
		}
		knock()
		conn, err := e.Guest(t.Context(), id)
		if err != nil {
			t.Fatalf("a process with the guest's powers is refused: %v", err)
		}
		conn.Close() //nolint:errcheck // nothing was sent
	})
}

func wantCode(t testing.TB, err error, code session.Code) {
	t.Helper()
	if got := session.CodeOf(err); got != code {
		t.Errorf("got %q (%v), want %s", got, err, code)
	}
}

// cutter stands before a daemon and breaks the connection at a chosen request,
// before or after the daemon had it.
type cutter struct {
	host   string
	cut    atomic.Pointer[string] // end of the path to break at
	before atomic.Bool
}

func newCutter(t *testing.T, target string) *cutter {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "d.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{host: "unix://" + socket}
	daemon := strings.TrimPrefix(target, "unix://")
	upstream := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", daemon)
	}}
	server := &http.Server{ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			at := c.cut.Load()
			breaks := at != nil && strings.HasSuffix(r.URL.Path, *at)
			if breaks && c.before.Load() {
				panic(http.ErrAbortHandler)
			}
			body, _ := io.ReadAll(r.Body) //nolint:errcheck // what is missing the daemon complains of
			out := r.Clone(r.Context())
			out.RequestURI, out.URL.Scheme, out.URL.Host, out.Body = "", "http", "docker",
				io.NopCloser(bytes.NewReader(body))
			if out.ContentLength = int64(len(body)); len(body) == 0 {
				out.Body = http.NoBody
			}
			reply, err := upstream.RoundTrip(out)
			if err != nil || breaks {
				panic(http.ErrAbortHandler)
			}
			defer reply.Body.Close() //nolint:errcheck // read to its end
			for name, values := range reply.Header {
				w.Header()[name] = values
			}
			w.WriteHeader(reply.StatusCode)
			w.(http.Flusher).Flush()
			io.Copy(flushing{w}, reply.Body) //nolint:errcheck // the caller may have gone
		})}
	go server.Serve(listener)            //nolint:errcheck // ends with the test
	t.Cleanup(func() { server.Close() }) //nolint:errcheck // nothing to lose
	return c
}

type flushing struct{ w http.ResponseWriter }

func (f flushing) Write(p []byte) (int, error) {
	defer f.w.(http.Flusher).Flush()
	return f.w.Write(p)
}

func (c *cutter) at(path string, before bool) {
	c.before.Store(before)
	c.cut.Store(&path)
}

func (c *cutter) mend() { c.cut.Store(nil) }

func TestDaemonStopsInTheMiddle(t *testing.T) {
	for _, before := range []bool{true, false} {
		when := map[bool]string{true: "before", false: "after"}[before]
		t.Run("of a create "+when+" it was made, and the next create finishes", func(t *testing.T) {
			cut := newCutter(t, enginetest.RequireDocker(t))
			e := open(t, docker.Config{Host: cut.host, Instance: instanceOf(t)})
			c := newContainer(instanceOf(t), "")
			forget(t, c)
			cut.at("/containers/create", before)
			_, err := e.Create(t.Context(), c)
			wantCode(t, err, "engine_connect_unavailable")
			cut.mend()
			id, err := e.Create(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Start(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			conn, err := e.Guest(t.Context(), id)
			echo(t, conn, err)
		})
		t.Run("of a start "+when+" it happened, and the next start finishes", func(t *testing.T) {
			cut := newCutter(t, enginetest.RequireDocker(t))
			e := open(t, docker.Config{Host: cut.host, Instance: instanceOf(t)})
			id := created(t, e, newContainer(instanceOf(t), ""))
			cut.at("/start", before)
			wantCode(t, e.Start(t.Context(), id), "engine_connect_unavailable")
			cut.mend()
			if err := e.Start(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			conn, err := e.Guest(t.Context(), id)
			echo(t, conn, err)
		})
	}
	t.Run("of a watch, which says so", func(t *testing.T) {
		cut := newCutter(t, enginetest.RequireDocker(t))
		cut.at("/events", false)
		e := open(t, docker.Config{Host: cut.host, Instance: instanceOf(t)})
		wantCode(t, e.Watch(t.Context(), func(engine.State) {}), "engine_connect_unavailable")
	})
}

func TestDaemonThatIsNotThere(t *testing.T) {
	e := open(t, docker.Config{Host: "unix://" + filepath.Join(t.TempDir(), "no.sock"), Instance: "x"})
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"Info":    func() error { _, err := e.Info(ctx); return err },
		"Create":  func() error { _, err := e.Create(ctx, newContainer("x", "")); return err },
		"Start":   func() error { return e.Start(ctx, "some") },
		"Guest":   func() error { _, err := e.Guest(ctx, "some"); return err },
		"Stop":    func() error { return e.Stop(ctx, "some", time.Second) },
		"Remove":  func() error { return e.Remove(ctx, "some") },
		"List":    func() error { _, err := e.List(ctx); return err },
		"Inspect": func() error { _, err := e.Inspect(ctx, "some"); return err },
		"Watch":   func() error { return e.Watch(ctx, func(engine.State) {}) },
		"Stats":   func() error { _, err := e.Stats(ctx, []string{"some"}); return err },
		"Logs":    func() error { _, err := e.Logs(ctx, "some", session.LogOptions{}); return err },
		"Images":  func() error { _, err := e.Images(ctx); return err },
		"Image":   func() error { _, err := e.Image(ctx, "some"); return err },
		"Pull":    func() error { _, err := e.Pull(ctx, "some", engine.Login{}, func(session.Pull) {}); return err },
	} {
		t.Run(name+" says unavailable", func(t *testing.T) { wantCode(t, call(), "engine_connect_unavailable") })
	}
}
