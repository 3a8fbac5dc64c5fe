//go:build linux

package guest_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway/backend/guest"
	"slipway/backend/guest/link"
	"slipway/backend/session"
	"slipway/backend/terminal"
)

// patience is how long a test waits for what must happen. No test says how soon
// that is: a machine with other work may take its time.
const patience = 2 * time.Minute

// paper is a container made of nothing: its programs end when they are told to.
type paper struct {
	mu      sync.Mutex // guards started
	argv    []string   // of the program that was started last
	started []*program
	dial    func(port int) (net.Conn, error)
	files   func() (net.Conn, error)
}

// program is a program of paper, on pipes or on a terminal.
type program struct {
	out   *io.PipeReader
	print *io.PipeWriter
	ended chan struct{}
	end   func()
}

func (p *paper) start() *program {
	out, print := io.Pipe()
	one := &program{out: out, print: print, ended: make(chan struct{})}
	one.end = sync.OnceFunc(func() {
		_ = print.Close()
		close(one.ended)
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.started = append(p.started, one)
	return one
}

func (p *paper) all() []*program {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]*program(nil), p.started...)
}

func (p *paper) OpenTerminal(guest.Command, int, int) (terminal.TTY, error) { return p.start(), nil }
func (p *paper) Script(text string) []string                                { return []string{"sh", "-c", text} }
func (p *paper) Start(cmd guest.Command) (terminal.Process, error) {
	p.mu.Lock()
	p.argv = cmd.Argv
	p.mu.Unlock()
	return p.start(), nil
}

func (p *paper) Which(names []string) map[string]string {
	found := map[string]string{}
	for _, name := range names {
		found[name] = "/bin/" + name
	}
	return found
}

func (p *paper) Listening() []int { return []int{8888} }

func (p *paper) Files(context.Context) (net.Conn, error) {
	if p.files == nil {
		return nil, errors.New("no files")
	}
	return p.files()
}

func (p *paper) DialPort(_ context.Context, port int) (net.Conn, error) {
	if p.dial == nil {
		return nil, errors.New("refused")
	}
	return p.dial(port)
}

func (p *program) Read(b []byte) (int, error)  { return p.out.Read(b) }
func (p *program) Write(b []byte) (int, error) { return len(b), nil }
func (p *program) Resize(int, int) error       { return nil }
func (p *program) Stdin() io.WriteCloser       { return nil }
func (p *program) Stdout() io.Reader           { return p.out }
func (p *program) Stderr() io.Reader           { return strings.NewReader("") }
func (p *program) Signal(int) error            { return nil }
func (p *program) Kill()                       { p.end() }
func (p *program) Wait() int {
	<-p.ended
	return 0
}

func (p *program) Close() error {
	p.end()
	return nil
}

// join links a client to a guest.
func join(t *testing.T, g *guest.Guest) *link.Client {
	t.Helper()
	ours, theirs := net.Pipe()
	served := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(served)
		_ = g.Serve(ctx, theirs)
	}()
	client, err := link.Connect(t.Context(), ours)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.Close()
		cancel()
		<-served // nothing is left behind
	})
	return client
}

func TestCallsWaitForTheContainer(t *testing.T) {
	g := guest.New(guest.Config{Processes: &paper{}})
	client := join(t, g)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := client.OpenTerminal(ctx, session.TerminalRequest{}); session.CodeOf(err) != "operation_run_timeout" {
		t.Errorf("before it is ready: %v", err)
	}
	if list, err := client.ListTerminals(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("the list: %v, %v", list, err)
	}
	g.Ready()
	if got, err := client.OpenTerminal(t.Context(), session.TerminalRequest{}); err != nil || got.Cols != 80 ||
		got.Rows != 24 {
		t.Errorf("when it is ready: %+v, %v", got, err)
	}
}

func TestEveryEventsStreamBeginsWithWhatIsTrue(t *testing.T) {
	g := guest.New(guest.Config{Processes: &paper{}})
	g.OOM(2)
	g.Ready()
	g.Trouble(&session.Error{Code: "session_start_no-shell", Message: "No."})
	g.Trouble(&session.Error{Code: "session_start_later", Message: "Kept is the first."})
	g.Exit(3)
	for range 2 {
		client := join(t, g)
		var got []string
		passed, pass := context.WithCancel(t.Context())
		pass()
		err := client.Events(t.Context(), func(e link.Event) error {
			switch {
			case e.Error != nil:
				got = append(got, string(e.Error.Code))
			case e.Ready:
				got = append(got, "ready")
			case e.OOM == 2:
				got = append(got, "oom")
			case e.Exit != nil && *e.Exit == 3:
				got = append(got, "exit")
				if g.Flush(passed) == nil {
					t.Error("the guest would end before its exit is read")
				}
			}
			return nil
		})
		if want := "session_start_no-shell ready oom exit"; err != nil || strings.Join(got, " ") != want {
			t.Errorf("got %q, %v", got, err)
		}
	}
	if err := g.Flush(t.Context()); err != nil {
		t.Errorf("flush: %v", err)
	}
	select {
	case <-g.Watched():
	default:
		t.Error("nobody is said to have watched")
	}
}

func TestTerminalsAreBounded(t *testing.T) {
	p := &paper{}
	g := guest.New(guest.Config{Processes: p, SpoolCap: 1 << 10})
	g.Ready()
	client := join(t, g)
	open := func() error {
		_, err := client.OpenTerminal(t.Context(), session.TerminalRequest{Cols: 10, Rows: 10})
		return err
	}
	for range 64 {
		if err := open(); err != nil {
			t.Fatal(err)
		}
	}
	if err := open(); session.CodeOf(err) != "session_use_too-many" {
		t.Errorf("the 65th: %v", err)
	}
	for _, one := range p.all() {
		one.end()
	}
	waitUntil(t, func() bool {
		list, err := client.ListTerminals(t.Context())
		return err == nil && len(list) == 16
	})
	if err := open(); err != nil {
		t.Errorf("after their ends: %v", err)
	}
	if _, err := client.OpenTerminal(t.Context(), session.TerminalRequest{Cols: 10_000, Rows: 1}); session.CodeOf(
		err) != "session_update_invalid" {
		t.Errorf("a screen as wide as a house: %v", err)
	}
	if _, err := client.AttachTerminal(t.Context(), session.AttachRequest{Terminal: "nowhere"}); session.CodeOf(
		err) != "session_use_not-found" {
		t.Errorf("attaching to nothing: %v", err)
	}
}

func waitUntil(t *testing.T, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain")
		}
	}
}

func TestServiceThatIsStoppedWhileItStarts(t *testing.T) {
	p := &paper{}
	g := guest.New(guest.Config{Processes: p})
	g.Ready()
	client := join(t, g)
	started := make(chan error, 1)
	go func() {
		_, err := client.StartService(t.Context(), link.ServiceRequest{ID: "slow", Argv: []string{"slow"}, Port: 8888})
		started <- err
	}()
	waitUntil(t, func() bool { return len(p.all()) == 1 })
	if err := client.StopService(t.Context(), "slow"); err != nil {
		t.Fatal(err)
	}
	if err := <-started; session.CodeOf(err) != "app_open_conflict" {
		t.Errorf("the start ended with %v", err)
	}
	if list, err := client.Services(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("services are %v, %v", list, err)
	}
	if err := client.StopService(t.Context(), "slow"); err != nil {
		t.Errorf("stopping what is gone: %v", err)
	}
}

func TestServiceThatDiesLater(t *testing.T) {
	p := &paper{}
	p.dial = func(int) (net.Conn, error) {
		if len(p.all()) == 0 {
			return nil, errors.New("refused")
		}
		ours, theirs := net.Pipe()
		go func() {
			_, _ = theirs.Read(make([]byte, 1000))
			_, _ = io.WriteString(theirs, "HTTP/1.1 302 Found\r\n\r\n")
		}()
		return ours, nil
	}
	g := guest.New(guest.Config{Processes: p})
	g.Ready()
	client := join(t, g)
	got, err := client.StartService(t.Context(), link.ServiceRequest{ID: "web", Argv: []string{"web"}, Port: 8888,
		Ready: "/"})
	if err != nil || got.State != link.ServiceReady {
		t.Fatalf("got %+v, %v", got, err)
	}
	p.all()[0].end()
	waitUntil(t, func() bool {
		list, err := client.Services(t.Context())
		return err == nil && len(list) == 1 && list[0].State == link.ServiceExited && list[0].ExitCode != nil
	})
}

func TestAServiceIsAskedBeforeItIsStopped(t *testing.T) {
	p := &paper{}
	var asked, running []string
	p.dial = func(int) (net.Conn, error) {
		if len(p.all()) < 2 {
			return nil, errors.New("refused")
		}
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close() //nolint:errcheck // only for the test
			r, err := http.ReadRequest(bufio.NewReader(theirs))
			if err != nil {
				return // it was only tried
			}
			asked = append(asked, r.URL.RequestURI())
			for _, one := range p.all() {
				select {
				case <-one.ended:
				default:
					running = append(running, "one")
				}
			}
			_, _ = io.WriteString(theirs, "HTTP/1.0 204 No Content\r\n\r\n")
		}()
		return ours, nil
	}
	g := guest.New(guest.Config{Processes: p})
	g.Ready()
	client := join(t, g)
	var starts sync.WaitGroup
	for id, last := range map[string]string{"web": "", "keeper": "/write?ending=1"} {
		starts.Go(func() {
			if _, err := client.StartService(t.Context(), link.ServiceRequest{ID: id, Argv: []string{id}, Port: 8888,
				Last: last}); err != nil {
				t.Error(err)
			}
		})
	}
	starts.Wait()
	if err := g.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(asked) != 1 || asked[0] != "/write?ending=1" || len(running) != 2 {
		t.Errorf("it was asked for %v while %d programs ran", asked, len(running))
	}
}

func TestCommandsEndWithTheLink(t *testing.T) {
	p := &paper{}
	g := guest.New(guest.Config{Processes: p})
	g.Ready()
	client := join(t, g)
	if _, err := client.Exec(t.Context(), session.ExecRequest{Command: []string{"sleep"}}); err != nil {
		t.Fatal(err)
	}
	_ = client.Close()
	select {
	case <-p.all()[0].ended:
	case <-time.After(patience):
		t.Error("the command goes on")
	}
	if _, err := client.ListTerminals(t.Context()); session.CodeOf(err) != "session_use_unavailable" {
		t.Errorf("a call on a lost link: %v", err)
	}
}

// refusing is a helper for files that takes the call, refuses what follows, and answers late.
type refusing struct {
	net.Conn
	call, answer io.Reader
	refused      chan struct{} // closed at the first piece
	drained      chan struct{} // closed when more came than the link holds
	ended        chan struct{}
	calls        int
	close        func()
}

func (r *refusing) Write(p []byte) (int, error) {
	if r.calls++; r.calls == 1 {
		return len(p), nil
	}
	if r.calls == 2 {
		close(r.refused)
	}
	return 0, net.ErrClosed
}

func (r *refusing) Read(p []byte) (int, error) {
	if n, err := r.call.Read(p); n > 0 || err == nil {
		return n, err
	}
	select {
	case <-r.drained:
		return r.answer.Read(p)
	case <-r.ended:
		return 0, net.ErrClosed
	}
}

func (r *refusing) Close() error {
	r.close()
	return nil
}

// more is content that goes on after the first piece was refused.
type more struct {
	helper *refusing
	sent   int
}

func (m *more) Read(p []byte) (int, error) {
	if m.sent > 0 {
		<-m.helper.refused
	}
	if m.sent += len(p); m.sent < 4<<20 {
		return len(p), nil
	}
	close(m.helper.drained)
	return 0, io.EOF
}

func TestARefusalThatComesAmidAnUploadIsTheAnswer(t *testing.T) {
	var call, answer bytes.Buffer
	must(t, link.ReplyOK(&call, nil))
	must(t, link.ReplyError(&answer, session.NewError(session.CodeFileForbidden, "The file cannot be written.", "")))
	helper := &refusing{call: &call, answer: &answer, refused: make(chan struct{}), drained: make(chan struct{}),
		ended: make(chan struct{})}
	helper.close = sync.OnceFunc(func() { close(helper.ended) })
	g := guest.New(guest.Config{Processes: &paper{files: func() (net.Conn, error) { return helper, nil }}})
	g.Ready()
	_, err := join(t, g).WriteUpload(t.Context(), session.Upload{Path: "file", Key: "k"}, &more{helper: helper})
	if session.CodeOf(err) != session.CodeFileForbidden {
		t.Errorf("the upload ends with %v", err)
	}
}

func TestCloseEndsEverything(t *testing.T) {
	p := &paper{}
	g := guest.New(guest.Config{Processes: p})
	g.Ready()
	client := join(t, g)
	for range 3 {
		if _, err := client.OpenTerminal(t.Context(), session.TerminalRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, one := range p.all() {
		<-one.ended
	}
}
