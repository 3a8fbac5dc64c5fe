package agentrpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"slipway/backend/session"
	"slipway/tunnel"
)

func machineOf(name string) func(context.Context) (session.Machine, error) {
	return func(context.Context) (session.Machine, error) {
		return session.Machine{Agent: name,
			Capacity: session.Capacity{CPUs: 8}}, nil
	}
}

func TestACallIsAnswered(t *testing.T) {
	agent := &scripted{machine: machineOf("lab")}
	client, _ := pair(t, agent)
	machine, err := client.Machine(t.Context())
	if err != nil || machine.Agent != "lab" || machine.CPUs != 8 {
		t.Errorf("%+v, %v", machine, err)
	}
	hello, err := client.Hello(t.Context())
	if err != nil || hello.Version != Version || len(hello.Methods) != len(methods) || hello.Program != "test" {
		t.Errorf("%+v, %v", hello, err)
	}
	told := &session.Error{Code: "a_b_c", Message: "m", Hint: "h",
		Fields: []session.FieldError{{Field: "f", Kind: "d_e_f", Message: "n", Hint: "i",
			Said: []session.Phrase{{Say: "n"}}}},
		Err: errors.New("not for others")}
	agent.machine = func(context.Context) (session.Machine, error) {
		return session.Machine{}, fmt.Errorf("wrapped: %w", told)
	}
	_, err = client.Machine(t.Context())
	var e *session.Error
	if !errors.As(err, &e) || e.Code != "a_b_c" || e.Message != "m" || e.Hint != "h" || len(e.Fields) != 1 ||
		!reflect.DeepEqual(e.Fields, told.Fields) || e.Err != nil {
		t.Errorf("the failure came as %#v", err)
	}
	agent.machine = func(context.Context) (session.Machine, error) {
		return session.Machine{},
			errors.New("without a code")
	}
	if _, err = client.Machine(t.Context()); session.CodeOf(err) != "agent_call_internal-error" {
		t.Errorf("an error without a code came as %v", err)
	}
	agent.machine = func(context.Context) (session.Machine, error) { panic("a mistake") }
	if _, err = client.Machine(t.Context()); session.CodeOf(err) != "agent_call_internal-error" {
		t.Errorf("a mistake came as %v", err)
	}
	agent.machine = machineOf("lab")
	if _, err = client.Machine(t.Context()); err != nil {
		t.Errorf("after the mistake: %v", err)
	}
}

func TestAnEndedContextEndsTheCallOnBothSides(t *testing.T) {
	entered, left := make(chan struct{}, 1), make(chan struct{}, 1)
	wait := func(ctx context.Context) error {
		entered <- struct{}{}
		<-ctx.Done()
		left <- struct{}{}
		return ctx.Err()
	}
	agent := &scripted{
		machine: func(ctx context.Context) (session.Machine, error) { return session.Machine{}, wait(ctx) },
		open: func(ctx context.Context, _ session.ID, _ session.TerminalRequest) (session.Terminal, error) {
			return session.Terminal{}, wait(ctx)
		},
		watch: func(ctx context.Context, _ session.Cursor, _ func(session.Event) error) error { return wait(ctx) },
		logs: func(ctx context.Context, _ session.ID, _ session.LogOptions) (io.ReadCloser, error) {
			return nil, wait(ctx)
		},
		dial: func(ctx context.Context, _ session.ID, _ int) (net.Conn, error) { return nil, wait(ctx) },
	}
	client, _ := pair(t, agent)
	for name, call := range map[string]func(context.Context) error{
		"a question": func(ctx context.Context) error { _, err := client.Machine(ctx); return err },
		"a change": func(ctx context.Context) error {
			_, err := client.OpenTerminal(ctx, "a", session.TerminalRequest{})
			return err
		},
		"a watch": func(ctx context.Context) error { return client.Watch(ctx, session.Cursor{}, nil) },
		"a download": func(ctx context.Context) error {
			_,
				err := client.Logs(ctx, "a", session.LogOptions{})
			return err
		},
		"a duplex": func(ctx context.Context) error { _, err := client.DialPort(ctx, "a", 1); return err },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-entered; cancel() }()
			if err := call(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("the call ended as %v", err)
			}
			await(t, left, "the far call goes on")
		})
	}
	t.Run("a deadline leaves the outcome unknown", func(t *testing.T) {
		ctx := newExpiring(t.Context())
		go func() { <-entered; ctx.expire() }()
		_, err := client.OpenTerminal(ctx, "a", session.TerminalRequest{})
		if session.CodeOf(err) != "agent_call_unavailable" || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the call ended as %v", err)
		}
		await(t, left, "the far call goes on")
	})
}

// expiring is a context whose deadline comes when a test says so.
type expiring struct {
	context.Context //nolint:containedctx // it is a context itself
	over            chan struct{}
}

func newExpiring(parent context.Context) expiring { return expiring{parent, make(chan struct{})} }

func (e expiring) expire()               { close(e.over) }
func (e expiring) Done() <-chan struct{} { return e.over }
func (e expiring) Err() error {
	select {
	case <-e.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func await(t *testing.T, done <-chan struct{}, complaint string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal(complaint)
	}
}

func TestACallThatIsCutHappensOnce(t *testing.T) {
	var calls atomic.Int64
	entered, goOn := make(chan struct{}, 8), make(chan struct{})
	agent := &scripted{open: func(ctx context.Context, _ session.ID, _ session.TerminalRequest) (session.Terminal,
		error) {
		n := calls.Add(1)
		entered <- struct{}{}
		select {
		case <-goOn:
			return session.Terminal{ID: fmt.Sprintf("t%d", n)}, nil
		case <-ctx.Done():
			return session.Terminal{}, ctx.Err()
		}
	}}
	h := handlerFor(agent)
	l := newLinks(t, h)
	client := NewClient(ClientConfig{Name: func() string { return "lab" }, Opener: l})
	var opened session.Terminal
	var err error
	var calling sync.WaitGroup
	calling.Go(func() { opened, err = client.OpenTerminal(t.Context(), "a", session.TerminalRequest{}) })
	<-entered
	for range 3 { // while it is under way
		l.cut()
		l.join()
	}
	close(goOn)
	calling.Wait()
	if err != nil || opened.ID != "t1" || calls.Load() != 1 {
		t.Errorf("opened %+v, %v in %d calls", opened, err, calls.Load())
	}

	t.Run("also when it was answered into the void", func(t *testing.T) {
		calls.Store(0)
		entered, goOn = make(chan struct{}, 8), make(chan struct{})
		calling.Go(func() { opened, err = client.OpenTerminal(t.Context(), "a", session.TerminalRequest{}) })
		<-entered
		l.cut()
		close(goOn)
		for h.visits() > 0 {
			time.Sleep(time.Millisecond)
		}
		l.join()
		calling.Wait()
		if err != nil || opened.ID != "t1" || calls.Load() != 1 {
			t.Errorf("opened %+v, %v in %d calls", opened, err, calls.Load())
		}
	})
}

// visits is how many calls are being answered.
func (h *Handler) visits() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, state := range h.peers {
		n += state.visits
	}
	return n
}

// TestACallWhoseAgentForgotIt cuts a call and has another handler, as of an agent
// that was started again, at the end of the next tunnel.
func TestACallWhoseAgentForgotIt(t *testing.T) {
	var calls atomic.Int64
	entered := make(chan struct{}, 8)
	hold := make(chan struct{})
	agent := &scripted{
		open: func(context.Context, session.ID, session.TerminalRequest) (session.Terminal, error) {
			calls.Add(1)
			entered <- struct{}{}
			<-hold
			return session.Terminal{ID: "t"}, nil
		},
		rename: func(_ context.Context, id session.ID, name string) (session.Session, error) {
			if calls.Add(1) == 1 {
				entered <- struct{}{}
				<-hold
			}
			return told(id), nil
		},
	}
	for what, test := range map[string]struct {
		call  func(c *Client) error
		code  session.Code
		calls int64
	}{
		"what must happen once is not made again": {func(c *Client) error {
			_, err := c.OpenTerminal(t.Context(), "a", session.TerminalRequest{})
			return err
		}, "agent_call_unavailable", 1},
		"what asks for a state is": {func(c *Client) error {
			_, err := c.Rename(t.Context(), "aaaaaaaaaaaa", "x")
			return err
		}, "", 2},
	} {
		t.Run(what, func(t *testing.T) {
			calls.Store(0)
			l := newLinks(t, handlerFor(agent))
			client := NewClient(ClientConfig{Name: func() string { return "lab" }, Opener: l})
			var err error
			var calling sync.WaitGroup
			calling.Go(func() { err = test.call(client) })
			<-entered
			l.cut()
			l.handler = handlerFor(agent)
			l.join()
			calling.Wait()
			if session.CodeOf(err) != test.code || calls.Load() != test.calls {
				t.Errorf("%v after %d calls", err, calls.Load())
			}
		})
	}
	close(hold)
}

func TestWhatIsNotReachedIsUnavailable(t *testing.T) {
	l := newLinks(t, handlerFor(&scripted{machine: machineOf("lab")}))
	name := "lab"
	client := NewClient(ClientConfig{Name: func() string { return name }, Opener: l, Patience: 200 * time.Millisecond})
	l.cut()
	opened := l.opened
	_, err := client.Machine(t.Context())
	var down *tunnel.DownError
	if session.CodeOf(err) != "agent_call_unavailable" || !errors.As(err, &down) || l.opened != opened+1 {
		t.Errorf("a line that is down: %v after %d tries", err, l.opened-opened)
	}
	if _, err = client.Launch(t.Context(), session.LaunchRequest{}); session.CodeOf(err) != "agent_call_unavailable" {
		t.Errorf("a launch: %v", err)
	}
	if err = client.Watch(t.Context(), session.Cursor{}, nil); session.CodeOf(err) != "agent_call_unavailable" {
		t.Errorf("a watch: %v", err)
	}
	name = "attic"
	if _, err = client.Machine(t.Context()); !strings.HasPrefix(session.AsError(err, "").Message,
		"The agent attic cannot be reached") {
		t.Errorf("under another name: %v", err)
	}
	l.join()
	if _, err := client.Machine(t.Context()); err != nil {
		t.Errorf("a line that is back: %v", err)
	}
}

func TestALaunchWithoutAKeyGetsOne(t *testing.T) {
	var keys []string
	client, _ := pair(t, &scripted{launch: func(_ context.Context, r session.LaunchRequest) (session.Session, error) {
		keys = append(keys, r.Key)
		return told("aaaaaaaaaaaa"), nil
	}})
	for _, key := range []string{"", "", "mine"} {
		if _, err := client.Launch(t.Context(), session.LaunchRequest{Key: key}); err != nil {
			t.Fatal(err)
		}
	}
	if keys[0] == "" || keys[0] == keys[1] || keys[2] != "mine" {
		t.Errorf("keys %q", keys)
	}
}

func TestVersionsAndMethodsApart(t *testing.T) {
	client, h := pair(t, &scripted{machine: machineOf("lab")})
	ask := func(req request) error {
		frame, err := client.codec.encode(kindRequest, req)
		if err != nil {
			t.Fatal(err)
		}
		call, err := client.start(t.Context(), methodMachine.spec, frame, 0)
		if err == nil {
			call.release()
			call.wire.stream.Close()
		}
		return err
	}
	for version, want := range map[int]session.Code{oldest - 1: session.CodeConnectVersion, Version: "",
		Version + 1: "", Version + 2: session.CodeConnectVersion} {
		if err := ask(request{Version: version, Method: "machine"}); session.CodeOf(err) != want {
			t.Errorf("version %d: %v", version, err)
		}
	}
	err := ask(request{Version: Version, Method: "of.tomorrow"})
	if session.CodeOf(err) != session.CodeAgentUnsupported || session.AsError(err, "").Hint == "" {
		t.Errorf("a method of tomorrow: %v", err)
	}
	if err := ask(request{Version: Version, Method: "machine", Args: []byte(`{"unknown":1}`)}); err != nil {
		t.Errorf("a field of tomorrow: %v", err)
	}
	err = ask(request{Version: Version, Method: "get", Args: []byte(`[1]`)})
	if session.CodeOf(err) != session.CodeAgentInvalid {
		t.Errorf("arguments of another shape: %v", err)
	}
	h.config.Resolve = func(tunnel.Peer) (session.Agent, error) { return session.Agent{}, errors.New("a stranger") }
	if _, err := client.Machine(t.Context()); session.CodeOf(err) != session.CodeAgentForbidden {
		t.Errorf("a stranger: %v", err)
	}
}

func TestAResetOfTenThousandSessionsArrives(t *testing.T) {
	reset := &session.Reset{}
	for i := range 10_000 {
		reset.Sessions = append(reset.Sessions, session.Session{
			ID: session.NewID(), Name: fmt.Sprintf("session-%d", i), Owner: "ada", Agent: "lab",
			Status: session.Running,
			End:    session.End{Result: session.ResultUndefined}, CreatedAt: time.Now(),
			Spec: session.Spec{Image: "registry/of/a/long/name:latest",
				Command: strings.Repeat("python train.py --epochs 10 ", 40),
				Env:     []session.EnvVar{{Name: "A", Value: strings.Repeat("b", 500)}}},
			Allocation: session.Allocation{
				Kernels: []session.Kernel{{Name: "main1", Container: strings.Repeat("c", 64), Status: session.Running}},
			},
		})
	}
	client, _ := pair(t, &scripted{watch: func(ctx context.Context, _ session.Cursor,
		fn func(session.Event) error) error {
		if err := fn(session.Event{Epoch: "e", Seq: 1, Reset: reset}); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	}})
	enough := errors.New("enough")
	began := time.Now()
	err := client.Watch(t.Context(), session.Cursor{}, func(e session.Event) error {
		if len(e.Reset.Sessions) != 10_000 || e.Reset.Sessions[9999].Name != "session-9999" {
			t.Errorf("%d sessions", len(e.Reset.Sessions))
		}
		return enough
	})
	if !errors.Is(err, enough) {
		t.Errorf("it ended as %v", err)
	}
	t.Logf("it took %v", time.Since(began))
	reset.Sessions[0].Spec.Command = strings.Repeat("x", MaxMessage)
	if err := client.Watch(t.Context(), session.Cursor{}, func(session.Event) error { return nil }); err == nil {
		t.Error("a message without end was sent")
	}
}

func TestALogGoesOnAfterACut(t *testing.T) {
	var whole bytes.Buffer
	for i := range 3000 {
		fmt.Fprintf(&whole, "line %d of a log\n", i)
	}
	agent := &scripted{logs: func(ctx context.Context, _ session.ID, o session.LogOptions) (io.ReadCloser, error) {
		if o.Tail != 0 {
			t.Errorf("asked for a tail of %d", o.Tail)
		}
		return io.NopCloser(&dosed{r: bytes.NewReader(whole.Bytes()), size: 500}), nil
	}}
	l := newLinks(t, handlerFor(agent))
	client := NewClient(ClientConfig{Name: func() string { return "lab" }, Opener: l})
	for _, tail := range []int{0, 1, 2500, 5000} {
		log, err := client.Logs(t.Context(), "a", session.LogOptions{Follow: true, Tail: tail})
		if err != nil {
			t.Fatal(err)
		}
		want := whole.String()
		if lines := strings.SplitAfter(want, "\n"); tail > 0 && tail < 3000 {
			want = strings.Join(lines[len(lines)-1-tail:], "")
		}
		var got bytes.Buffer
		var joins sync.WaitGroup
		for cuts := 0; ; {
			n, err := io.CopyN(&got, log, 9000)
			if err != nil {
				if !errors.Is(err, io.EOF) {
					t.Errorf("tail %d: %v after %d bytes", tail, err, n)
				}
				break
			}
			if cuts++; cuts%2 == 0 {
				if err := l.WaitUp(t.Context()); err != nil {
					t.Fatal(err)
				}
				l.cut()
				joins.Go(l.join)
			}
		}
		joins.Wait()
		if got.String() != want {
			t.Errorf("tail %d: %d bytes of %d", tail, got.Len(), len(want))
		}
		log.Close()
		if _, err := log.Read(make([]byte, 1)); err == nil {
			t.Error("a closed log is read")
		}
	}
}

// dosed gives a little at a time.
type dosed struct {
	r    io.Reader
	size int
}

func (d *dosed) Read(p []byte) (int, error) { return d.r.Read(p[:min(len(p), d.size)]) }

func TestAPortEndsInEachDirectionByItself(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() { // says how much it was told once all of it was
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				n, err := io.Copy(io.Discard, conn)
				fmt.Fprintf(conn, "%d bytes, %v", n, err) //nolint:errcheck // the test sees it
			}()
		}
	}()
	client, _ := pair(t, &scripted{dial: func(ctx context.Context, _ session.ID, _ int) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", listener.Addr().String())
	}})
	conn, err := client.DialPort(t.Context(), "a", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(make([]byte, 1_000_000)); err != nil {
		t.Fatal(err)
	}
	if err := conn.(halfCloser).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if said, err := io.ReadAll(conn); err != nil || string(said) != "1000000 bytes, <nil>" {
		t.Errorf("it said %q, %v", said, err)
	}
	t.Run("and times out without losing its place", func(t *testing.T) {
		near, far := net.Pipe()
		client, _ := pair(t, &scripted{dial: func(context.Context, session.ID, int) (net.Conn, error) {
			return far,
				nil
		}})
		conn, err := client.DialPort(t.Context(), "a", 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"one", "two"} {
			if err := conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Read(make([]byte, 9)); !isTimeout(err) {
				t.Errorf("nothing read as %v", err)
			}
			if err := conn.SetReadDeadline(time.Time{}); err != nil {
				t.Fatal(err)
			}
			go io.WriteString(near, word) //nolint:errcheck // the test sees it
			got := make([]byte, 3)
			if _, err := io.ReadFull(conn, got); err != nil || string(got) != word {
				t.Errorf("read %q, %v", got, err)
			}
		}
		conn.Close()
		if _, err := near.Read(make([]byte, 1)); err == nil {
			t.Error("the far end is still open")
		}
	})
}

func TestNothingStaysBehind(t *testing.T) {
	held := make(chan struct{})
	agent := &scripted{
		machine: machineOf("lab"),
		watch: func(ctx context.Context, _ session.Cursor, fn func(session.Event) error) error {
			for ctx.Err() == nil {
				if err := fn(session.Event{Removed: new(session.ID)}); err != nil {
					return err
				}
			}
			return ctx.Err()
		},
		dial: func(context.Context, session.ID, int) (net.Conn, error) {
			near, far := net.Pipe()
			go func() { <-held; far.Close() }() // and reads nothing
			return near, nil
		},
	}
	settle := func() int {
		last := 0
		for range 100 {
			runtime.Gosched()
			time.Sleep(5 * time.Millisecond)
			if n := runtime.NumGoroutine(); n == last {
				return n
			}
			last = runtime.NumGoroutine()
		}
		return last
	}
	client, _ := pair(t, agent)
	if _, err := client.Machine(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := settle()
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		// ends with ctx
		_ = client.Watch(ctx, session.Cursor{}, func(session.Event) error { time.Sleep(time.Millisecond); return nil })
		cancel()
		conn, err := client.DialPort(t.Context(), "a", 1)
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
		if _, err := client.Machine(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	close(held)
	deadline := time.Now().Add(time.Minute)
	for settle() > before+2 && time.Now().Before(deadline) {
		time.Sleep(20 * time.Millisecond)
	}
	if after := settle(); after > before+2 {
		var stacks bytes.Buffer
		buffer := make([]byte, 1<<20)
		stacks.Write(buffer[:runtime.Stack(buffer, true)])
		t.Errorf("%d goroutines before, %d after:\n%s", before, after, stacks.String())
	}
}

func BenchmarkCall(b *testing.B) {
	agent := &scripted{machine: machineOf("lab")}
	plain, _ := pair(b, agent)
	host := tunnel.NewHost(tunnel.Config{})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { handlerFor(agent).ServeHost(ctx, host) })
	b.Cleanup(func() { cancel(); host.Close(); running.Wait() })
	near, far := connect(b)
	go host.Serve(tunnel.Carrier{Conn: far}) //nolint:errcheck // the near side sees it
	tun, err := tunnel.Dial(b.Context(), dialFunc(func(context.Context, bool) (net.Conn, error) { return near, nil }),
		tunnel.Config{OneCarrier: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { tun.Close() })
	for name, client := range map[string]*Client{"plain streams": plain,
		"a tunnel": NewClient(ClientConfig{Opener: tun})} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := client.Machine(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
