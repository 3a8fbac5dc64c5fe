package agenttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"slipway/backend/session"
)

// readLog reads a log to its end, from the beginning again if it is cut.
func (s *suite) readLog(id session.ID, opts session.LogOptions) string {
	s.Helper()
	return must(s, func(ctx context.Context) (string, error) {
		log, err := s.agent.Logs(ctx, id, opts)
		if err != nil {
			return "", err
		}
		defer log.Close()
		text, err := io.ReadAll(log)
		return string(text), err
	})
}

func caseLogs(s *suite) {
	id := s.launch(session.Spec{Type: session.Batch, Command: "for i in 1 2 3 4 5; do echo line $i; done"}).ID
	s.awaitEnd(id)
	const whole = "line 1\nline 2\nline 3\nline 4\nline 5\n"
	for opts, want := range map[session.LogOptions]string{
		{}:                                       whole,
		{Kernel: session.MainKernel}:             whole,
		{Tail: 2}:                                "line 4\nline 5\n",
		{Tail: 100}:                              whole,
		{Follow: true}:                           whole,
		{Follow: true, Tail: 1}:                  "line 5\n",
		{Follow: true, Tail: 5}:                  whole,
		{Kernel: "main1", Tail: 3, Follow: true}: "line 3\nline 4\nline 5\n",
	} {
		if got := s.readLog(id, opts); got != want {
			s.Errorf("%+v: %q", opts, got)
		}
	}
	timed := strings.Split(strings.TrimSuffix(s.readLog(id, session.LogOptions{Timestamps: true}), "\n"), "\n")
	for i, line := range timed {
		stamp, text, _ := strings.Cut(line, " ")
		at, err := time.Parse(time.RFC3339Nano, stamp)
		if err != nil || time.Since(at) > time.Hour || text != fmt.Sprintf("line %d", i+1) {
			s.Errorf("line %q: %v", line, err)
		}
	}
	if len(timed) != 5 {
		s.Errorf("%d lines with times", len(timed))
	}
	refused(s, "a kernel that is not there", session.DetailNotFound,
		with2(s.agent.Logs, id, session.LogOptions{Kernel: "sub7"}))
}

func caseLogsFollow(s *suite) {
	const lines = 60
	var want strings.Builder
	for i := 1; i <= lines; i++ {
		fmt.Fprintf(&want, "drip %d of a log that is followed\n", i)
	}
	command := fmt.Sprintf(
		"i=0; while [ $i -lt %d ]; do i=$((i+1)); echo drip $i of a log that is followed; sleep 0.05; done", lines)
	id := s.launch(session.Spec{Type: session.Batch, Command: command}).ID
	var all sync.WaitGroup
	for _, opts := range []session.LogOptions{{Follow: true}, {Follow: true, Tail: 1000}} {
		all.Go(func() {
			log, err := try(s, with2(s.agent.Logs, id, opts))
			if err != nil {
				s.Error(err)
				return
			}
			defer log.Close()
			// The agent must mend a cut by itself: nothing is retried here.
			if text, err := io.ReadAll(log); err != nil || string(text) != want.String() {
				s.Errorf("%+v: %d bytes of %d, %v:\n%s", opts, len(text), want.Len(), err, text)
			}
		})
	}
	all.Wait()
	s.awaitEnd(id)
	if got := s.readLog(id, session.LogOptions{}); got != want.String() {
		s.Errorf("what is kept has %d bytes of %d", len(got), want.Len())
	}
}

func caseLogsClose(s *suite) {
	id := s.running()
	for name, end := range map[string]func(io.Closer, context.CancelFunc){
		"closing":    func(log io.Closer, _ context.CancelFunc) { log.Close() },
		"cancelling": func(_ io.Closer, cancel context.CancelFunc) { cancel() },
	} {
		ctx, cancel := context.WithCancel(s.ctx)
		log, err := try(s, func(context.Context) (io.ReadCloser, error) {
			return s.agent.Logs(ctx, id, session.LogOptions{Follow: true})
		})
		s.ok(err)
		ended := make(chan error, 1)
		go func() {
			_, err := io.Copy(io.Discard, log)
			ended <- err
		}()
		end(log, cancel)
		err = receive(s, ended, name+": the reader hangs")
		if err != nil && lost(err) && !errors.Is(err, context.Canceled) && !s.Mortal {
			s.Errorf("%s: %v", name, err)
		}
		cancel()
		log.Close()
	}
}

func caseUsage(s *suite) {
	id := s.launch(session.Spec{}).ID
	since := time.Now().Add(-time.Hour)
	for s.ctx.Err() == nil {
		samples := must(s, with2(s.agent.Usage, id, since))
		if len(samples) == 0 {
			s.pause()
			continue
		}
		last := samples[len(samples)-1]
		if last.Session != id || last.MemLimit == 0 {
			s.Errorf("a sample is %+v", last)
		}
		for _, later := range must(s, with2(s.agent.Usage, id, last.At)) {
			if !later.At.After(last.At) {
				s.Errorf("a sample of %v is not after %v", later.At, last.At)
			}
		}
		s.terminate(id, false)
		s.awaitEnd(id)
		kept := must(s, with2(s.agent.Usage, id, since))
		if len(kept) < len(samples) || kept[0].At != samples[0].At {
			s.Errorf("of %d samples %d are kept", len(samples), len(kept))
		}
		for _, sample := range kept {
			if peak := kept[len(kept)-1].MemoryPeak; sample.Memory > peak {
				s.Errorf("a sample of %s is above the peak of %s", sample.Memory, peak)
			}
		}
		return
	}
	s.Error("nothing was measured")
}

func caseCancelled(s *suite) {
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	id := s.running()
	for name, call := range map[string]func(){
		"machine":   func() { _, _ = s.agent.Machine(ctx) },
		"list":      func() { _, _ = s.agent.List(ctx, session.Filter{}) },
		"images":    func() { _, _ = s.agent.ListImages(ctx) },
		"terminals": func() { _, _ = s.agent.ListTerminals(ctx, id) },
		"apps":      func() { _, _ = s.agent.ListApps(ctx, id) },
		"devices":   func() { _, _ = s.agent.Devices(ctx) },
		"watch":     func() { _ = s.agent.Watch(ctx, session.Cursor{}, func(session.Event) error { return nil }) },
		"dial": func() {
			if conn, err := s.agent.DialPort(ctx, id, ServerPort); err == nil {
				conn.Close()
			}
		},
	} {
		done := make(chan struct{})
		go func() { defer close(done); call() }()
		receive(s, done, name+" continues without its context")
	}
}

func caseCrowd(s *suite) {
	id := s.running()
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			_, err := try(s, func(ctx context.Context) (any, error) {
				switch i % 5 {
				case 0:
					return s.agent.Get(ctx, id)
				case 1:
					return s.agent.List(ctx, session.Filter{Limit: 10})
				case 2:
					return s.agent.Machine(ctx)
				case 3:
					return s.agent.History(ctx, id)
				}
				return s.agent.ListTerminals(ctx, id)
			})
			if err != nil {
				s.Error(err)
			}
		})
	}
	all.Wait()
}
