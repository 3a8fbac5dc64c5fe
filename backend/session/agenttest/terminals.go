package agenttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"slipway/backend/session"
	"slipway/backend/terminal"
)

func (s *suite) openTerminal(id session.ID) string {
	s.Helper()
	return must(s, with2(s.agent.OpenTerminal, id, session.TerminalRequest{Title: "suite", Cols: 120, Rows: 30})).ID
}

func (s *suite) terminals(id session.ID) []session.Terminal {
	s.Helper()
	return must(s, with(s.agent.ListTerminals, id))
}

// screen gathers what a viewer shows.
type screen struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
	gaps atomic.Int64
}

func (x *screen) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.text.Write(p)
}

func (x *screen) String() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.text.String()
}

// viewing is a viewer that connects again when its connection is lost, as the terminal of the user interface does.
type viewing struct {
	*terminal.Viewer
	screen *screen
	cancel context.CancelFunc
	done   chan struct{}
	code   int
	err    error
	joined atomic.Int64
}

// view attaches to a shell. With breakAfter it breaks its own connections after each that many bytes, to resume them.
func (s *suite) view(id session.ID, shell, client string, breakAfter int) *viewing {
	v := &viewing{screen: &screen{}, done: make(chan struct{})}
	v.Viewer = terminal.NewViewer(terminal.ViewerConfig{Client: client, Output: v.screen,
		Gap: func(uint64, uint64) { v.screen.gaps.Add(1) }})
	var ctx context.Context
	ctx, v.cancel = context.WithCancel(s.ctx)
	go func() {
		defer close(v.done)
		for {
			breakAfter += breakAfter / 4
			v.code, v.err = v.once(ctx, s, session.AttachRequest{Terminal: shell, Offset: v.Offset(), Client: client},
				id, breakAfter)
			if v.err == nil || ctx.Err() != nil || !lost(v.err) && !errors.Is(v.err, errBroken) &&
				!errors.Is(v.err, io.ErrUnexpectedEOF) {
				return
			}
			s.pause()
		}
	}()
	s.Cleanup(v.stop)
	return v
}

func (v *viewing) once(ctx context.Context, s *suite, req session.AttachRequest, id session.ID,
	breakAfter int) (int, error) {
	stream, err := s.agent.AttachTerminal(ctx, id, req)
	if err != nil {
		return 0, err
	}
	v.joined.Add(1)
	if breakAfter > 0 {
		stream = &breaking{ReadWriteCloser: stream, left: breakAfter}
	}
	return v.Run(ctx, terminal.NewConn(stream))
}

func (v *viewing) stop() {
	v.cancel()
	v.Close()
	<-v.done
}

func (v *viewing) await(s *suite, text string) {
	s.Helper()
	for !strings.Contains(v.screen.String(), text) {
		select {
		case <-s.ctx.Done():
			shown := v.screen.String()
			s.Fatalf("%q did not come; %d bytes did, the last are %q", text, len(shown), shown[max(0, len(shown)-200):])
		case <-v.done:
			if !strings.Contains(v.screen.String(), text) {
				s.Fatalf("the viewer ended with %d, %v before %q", v.code, v.err, text)
			}
		case <-time.After(5 * time.Millisecond):
		}
	}
}

var errBroken = errors.New("agenttest: broken on purpose")

// breaking is a stream that breaks after so many bytes.
type breaking struct {
	io.ReadWriteCloser
	left int
}

func (b *breaking) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errBroken
	}
	n, err := b.ReadWriteCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

func caseTerminalList(s *suite) {
	id := s.running()
	before := len(s.terminals(id))
	first, second := s.openTerminal(id), s.openTerminal(id)
	found := map[string]session.Terminal{}
	list := s.terminals(id)
	for _, t := range list {
		found[t.ID] = t
	}
	if len(list) != before+2 || first == second || found[first].Title != "suite" || found[second].Cols != 120 {
		s.Errorf("opened %s and %s, listed %+v", first, second, list)
	}
	for _, t := range []string{first, second} {
		s.do(func(ctx context.Context) error { return s.agent.CloseTerminal(ctx, id, t) })
	}
	if list := s.terminals(id); len(list) != before {
		s.Errorf("after closing both there are %+v", list)
	}
	err := s.void(func(ctx context.Context) error { return s.agent.CloseTerminal(ctx, id, first) })
	want(s, "closing it again", err, session.DetailNotFound)
	refused(s, "attaching to it", session.DetailNotFound,
		with2(s.agent.AttachTerminal, id, session.AttachRequest{Terminal: first, Client: "a"}))
	refused(s, "a kernel that is not there", session.DetailNotFound,
		with2(s.agent.OpenTerminal, id, session.TerminalRequest{Kernel: "sub9", Cols: 80, Rows: 24}))
}

func caseTerminalOutput(s *suite) {
	id := s.running()
	shell := s.openTerminal(id)
	whole, torn := s.view(id, shell, "whole", 0), s.view(id, shell, "torn", 7001)
	const lines = 20000
	fmt.Fprintf(whole, "i=0; while [ $i -lt %d ]; do i=$((i+1)); echo \"line $i of output\"; done; echo all-\"done\"\n",
		lines) //nolint:errcheck // await sees it
	whole.await(s, "all-done")
	torn.await(s, "all-done")
	late := s.view(id, shell, "late", 0)
	late.await(s, "all-done")
	reference := late.screen.String()
	for name, v := range map[string]*viewing{"one that stayed": whole, "one that was torn": torn} {
		end := strings.Index(v.screen.String(), "all-done")
		if got := v.screen.String()[:end]; got != reference[:min(end, len(reference))] {
			s.Errorf("%s shows %d bytes that differ from the %d kept", name, len(got), len(reference))
		}
		if gaps := v.screen.gaps.Load(); gaps > 0 {
			s.Errorf("%s has %d gaps", name, gaps)
		}
	}
	rest := reference
	for i := 1; i <= lines; i++ {
		_, after, found := strings.Cut(rest, fmt.Sprintf("line %d of output\r\n", i))
		if !found {
			s.Fatalf("line %d is missing", i)
		}
		rest = after
	}
	if n := strings.Count(reference, " of output\r\n"); n != lines {
		s.Errorf("%d lines are kept, want %d", n, lines)
	}
	s.Logf("the torn viewer joined %d times, the other %d times", torn.joined.Load(), whole.joined.Load())
}

func caseTerminalInput(s *suite) {
	id := s.running()
	v := s.view(id, s.openTerminal(id), "typist", 1500)
	const words = 150
	var typed sync.WaitGroup
	typed.Go(func() {
		for i := range words {
			if _, err := fmt.Fprintf(v, "echo typed-\"%d\".\n", i); err != nil {
				return // await says so
			}
			time.Sleep(2 * time.Millisecond)
		}
	})
	v.await(s, fmt.Sprintf("typed-%d.", words-1))
	typed.Wait()
	shown := v.screen.String()
	for i := range words {
		if n := strings.Count(shown, fmt.Sprintf("typed-%d.", i)); n != 1 {
			s.Errorf("word %d was answered %d times in %q", i, n, shown)
		}
	}
	fmt.Fprint(v, "exit 3\n") //nolint:errcheck // the exit shows it
	receive(s, v.done, "the shell did not end")
	if v.err != nil || v.code != 3 {
		s.Errorf("the shell ended with %d, %v", v.code, v.err)
	}
	s.Logf("the viewer joined %d times", v.joined.Load())
}

func caseTerminalStalled(s *suite) {
	id := s.running()
	shell := s.openTerminal(id)
	stalled := must(s, with2(s.agent.AttachTerminal, id, session.AttachRequest{Terminal: shell, Client: "stalled"}))
	defer stalled.Close()
	lively := s.view(id, shell, "lively", 0)
	fmt.Fprint(lively, "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); echo \"line $i that nobody reads\"; done; "+
		"echo all-\"done\"\n")
	lively.await(s, "all-done")
	began := time.Now()
	other := s.view(id, s.openTerminal(id), "other", 0)
	fmt.Fprint(other, "echo still-\"here\"\n") //nolint:errcheck // await sees it
	other.await(s, "still-here")
	must(s, s.agent.Machine)
	s.Logf("beside a stalled viewer: %v", time.Since(began))
}
