package agent

import (
	"context"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"

	"slipway/backend/session"
	"slipway/backend/terminal"
)

// screen is what a terminal has shown.
type screen struct {
	mu   sync.Mutex // guards text
	text strings.Builder
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// shows returns how often a text was shown.
func (s *screen) shows(text string) int { return strings.Count(s.String(), text) }

// watch opens a terminal in a session and types a line into it.
func watch(t *testing.T, agent *Agent, id session.ID, line string) *screen {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	opened, err := agent.OpenTerminal(ctx, id, session.TerminalRequest{Cols: 120, Rows: 24})
	if err != nil {
		t.Fatal(err)
	}
	stream, err := agent.AttachTerminal(ctx, id, session.AttachRequest{Terminal: opened.ID, Client: "test"})
	if err != nil {
		t.Fatal(err)
	}
	s := &screen{}
	viewer := terminal.NewViewer(terminal.ViewerConfig{Client: "test", Output: s})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		viewer.Run(ctx, terminal.NewConn(stream)) //nolint:errcheck // it ends with the session or the test
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	if _, err := io.WriteString(viewer, line+"\n"); err != nil {
		t.Fatal(err)
	}
	return s
}

// begin starts a command in a session; the channel closes at its end, which end brings about.
func (w *world) begin(id session.ID, argv ...string) (ended <-chan struct{}, end func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := w.agent.Exec(ctx, id, session.ExecRequest{Command: argv})
	if err != nil {
		w.t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		terminal.RunExec(ctx, terminal.NewConn(stream), terminal.ExecIO{}) //nolint:errcheck // it may be ended
	}()
	stop := func() {
		cancel()
		<-over
	}
	w.t.Cleanup(stop)
	return over, stop
}

// run runs a command in a session to its end.
func (w *world) run(id session.ID, argv ...string) {
	w.t.Helper()
	ended, _ := w.begin(id, argv...)
	<-ended
}

// listen starts a server on a port of a session; end stops it.
func (w *world) listen(id session.ID, port int) (end func()) {
	w.t.Helper()
	_, end = w.begin(id, "httpd", "-p", strconv.Itoa(port))
	return end
}
