package enginetest

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"slipway/backend/engine"
	"slipway/backend/session"
	"slipway/gpu"
)

var containerCases = []engineCase{
	{"info describes the machine", func(s *suite) {
		info, err := s.engine.Info(s.ctx)
		s.ok(err)
		if info.Name == "" || info.Version == "" || info.OS != "linux" || info.Arch == "" {
			s.Errorf("name, version, linux and an architecture are expected, got %+v", info)
		}
		if info.CPUs < 1 || info.Memory < 64*gpu.MiB {
			s.Errorf("%d CPUs and %s of memory are not a machine", info.CPUs, info.Memory)
		}
	}},
	{"create twice gives the same container", func(s *suite) {
		c := s.container("")
		id := s.create(c)
		again, err := s.engine.Create(s.ctx, c)
		if err != nil || again != id {
			s.Errorf("second create: got %q, %v, want %q", again, err, id)
		}
	}},
	{"create with other labels finds the name taken", func(s *suite) {
		c := s.container("")
		s.create(c)
		c.Labels = maps.Clone(c.Labels)
		c.Labels[engine.LabelAttempt] = "2"
		s.wantCode(failure(s.engine.Create(s.ctx, c)), session.CodeEngineConflict)
	}},
	{"create without its image says so", func(s *suite) {
		c := s.container("")
		c.Image = noImage
		s.wantCode(failure(s.engine.Create(s.ctx, c)), session.CodeNoImage)
		s.wantListed(c.Name, false)
	}},
	{"create without a name is invalid", func(s *suite) {
		c := s.container("")
		c.Name = ""
		s.wantCode(failure(s.engine.Create(s.ctx, c)), session.CodeEngineInvalid)
	}},
	{"a created container is not running", func(s *suite) {
		c := s.container("")
		state := s.inspect(s.create(c))
		if !state.Created || state.Running || !state.StartedAt.IsZero() || state.CreatedAt.IsZero() {
			s.Errorf("want created and never started, got %+v", state)
		}
		if state.Name != c.Name || !maps.Equal(state.Labels, c.Labels) {
			s.Errorf("got name %q and labels %v, want %q and %v", state.Name, state.Labels, c.Name, c.Labels)
		}
	}},
	{"start twice does nothing more", func(s *suite) {
		before := time.Now().Add(-2 * time.Second)
		id := s.start("")
		first := s.inspect(id)
		if !first.Running || first.Created || first.StartedAt.Before(before) {
			s.Fatalf("want running since now, got %+v", first)
		}
		s.ok(s.engine.Start(s.ctx, id))
		if second := s.inspect(id); !second.Running || !second.StartedAt.Equal(first.StartedAt) {
			s.Errorf("second start changed the container: %+v, before %+v", second, first)
		}
	}},
	{"start of what is gone is not-found", func(s *suite) {
		s.wantCode(s.engine.Start(s.ctx, "nonexistent"), session.CodeNoContainer)
	}},
	{"stop ends a container once", func(s *suite) {
		id := s.start("")
		s.ok(s.engine.Stop(s.ctx, id, 5*time.Second))
		first := s.inspect(id)
		if first.Running || first.FinishedAt.Before(first.StartedAt) {
			s.Errorf("want ended, got %+v", first)
		}
		if err := s.engine.Stop(s.ctx, id, time.Second); err != nil {
			s.Errorf("second stop: %v", err)
		}
		if second := s.inspect(id); second.ExitCode != first.ExitCode || !second.FinishedAt.Equal(first.FinishedAt) {
			s.Errorf("second stop changed the container: %+v, before %+v", second, first)
		}
	}},
	{"stop ends a busy batch container within its grace", func(s *suite) {
		id := s.start(commandSleep)
		if err := s.engine.Stop(s.ctx, id, 2*time.Second); err != nil { // its command would run for ten minutes
			s.Fatal(err)
		}
		if state := s.inspect(id); state.Running || state.ExitCode == 0 {
			s.Errorf("want an end that is no success, got %+v", state)
		}
	}},
	{"remove takes a running container away", func(s *suite) {
		c := s.container("")
		id := s.run(c)
		s.ok(s.engine.Remove(s.ctx, id))
		s.wantCode(failure(s.engine.Inspect(s.ctx, id)), session.CodeNoContainer)
		s.wantListed(c.Name, false)
	}},
	{"stop and remove of what is gone do nothing", func(s *suite) {
		id := s.create(s.container(""))
		for range 2 {
			if err := s.engine.Remove(s.ctx, id); err != nil {
				s.Errorf("remove: %v", err)
			}
		}
		if err := s.engine.Stop(s.ctx, id, time.Second); err != nil {
			s.Errorf("stop: %v", err)
		}
	}},
	{"list shows this instance and no other", func(s *suite) {
		stopped, running, foreign := s.container(""), s.container(""), s.container("")
		foreign.Labels[engine.LabelInstance] = s.Instance + "-other"
		s.create(stopped)
		s.create(foreign)
		s.ok(s.engine.Start(s.ctx, s.create(running)))
		s.wantListed(stopped.Name, true)
		s.wantListed(running.Name, true)
		s.wantListed(foreign.Name, false)
	}},
	{"inspect of what is gone is not-found", func(s *suite) {
		s.wantCode(failure(s.engine.Inspect(s.ctx, "nonexistent")), session.CodeNoContainer)
	}},
	{"an exit code is kept", func(s *suite) {
		state := s.ended(s.start(commandExit))
		if state.ExitCode != 7 || state.OOMKilled {
			s.Errorf("want exit code 7 and no lack of memory, got %+v", state)
		}
	}},
	{"success is exit code 0", func(s *suite) {
		if state := s.ended(s.start(commandPrint)); state.ExitCode != 0 || state.FinishedAt.IsZero() {
			s.Errorf("want exit code 0 and a time, got %+v", state)
		}
	}},
	{"running out of memory is reported", func(s *suite) {
		if state := s.ended(s.start(s.OOM)); !state.OOMKilled || state.ExitCode == 0 {
			s.Errorf("want a failure for lack of memory, got %+v", state)
		}
	}},
	{"stats are of running containers only", func(s *suite) {
		running, created := s.start(""), s.create(s.container(""))
		var first engine.Stats
		s.await("a sample", func() bool {
			samples, err := s.engine.Stats(s.ctx, []string{running, created, "nonexistent"})
			s.ok(err)
			if len(samples) > 1 {
				s.Fatalf("samples of containers that do not run: %v", samples)
			}
			var ok bool
			first, ok = samples[running]
			return ok && first.Memory > 0 && first.Pids > 0
		})
		if first.At.IsZero() || first.MemLimit != memory || first.Memory > first.MemLimit || first.CPU < 0 {
			s.Errorf("not a sane sample for a limit of %s: %+v", memory, first)
		}
		samples, err := s.engine.Stats(s.ctx, []string{running})
		if second := samples[running]; err != nil || second.CPU < first.CPU || second.At.Before(first.At) {
			s.Errorf("counters went back: %+v after %+v (%v)", second, first, err)
		}
	}},
	{"the home goes with the container", func(s *suite) {
		c := s.container("")
		id := s.run(c)
		if !s.HomeExists(s.T, c) {
			s.Fatal("a running container has no home")
		}
		s.ok(s.engine.Remove(s.ctx, id))
		if s.HomeExists(s.T, c) {
			s.Error("the home is still there")
		}
	}},
	{"the home of a container that has ended is read", func(s *suite) {
		c := s.container("mkdir /home/work/sub && echo here > /home/work/sub/note")
		id := s.run(c)
		s.ended(id)
		home, err := s.engine.Home(s.ctx, id)
		s.ok(err)
		found := map[string]string{}
		for archive := tar.NewReader(home); ; {
			header, err := archive.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			s.ok(err)
			content, err := io.ReadAll(archive)
			s.ok(err)
			found[header.Name] = string(content)
		}
		s.ok(home.Close())
		if found["work/sub/note"] != "here\n" {
			s.Errorf("the home holds %q", found)
		}
		s.wantCode(failure(s.engine.Home(s.ctx, "nonexistent")), session.CodeNoContainer)
		if states, err := s.engine.List(s.ctx); err != nil || slices.ContainsFunc(states,
			func(state engine.State) bool { return state.ID != id && state.Labels[engine.LabelSession] == "" }) {
			s.Errorf("after it there are %+v, %v", states, err)
		}
	}},
	{"several containers at once do not disturb each other", func(s *suite) {
		count := s.AtOnce
		ids := make([]string, count)
		s.together(count, func(i int) error {
			c := s.container("")
			id, err := s.engine.Create(s.ctx, c)
			ids[i] = id
			if err != nil {
				return err
			}
			return s.engine.Start(s.ctx, id)
		})
		for i, id := range ids {
			if id != "" && !s.inspect(id).Running {
				s.Errorf("container %d does not run", i)
			}
		}
		s.together(count, func(i int) error {
			if i%2 == 0 {
				if err := s.engine.Stop(s.ctx, ids[i], 5*time.Second); err != nil {
					return err
				}
			}
			return s.engine.Remove(s.ctx, ids[i])
		})
		for i, id := range ids {
			if _, err := s.engine.Inspect(s.ctx, id); session.CodeOf(err) != session.CodeNoContainer {
				s.Errorf("container %d is still there: %v", i, err)
			}
		}
	}},
	{"every call ends with its context", func(s *suite) {
		id := s.start("")
		ctx, cancel := context.WithCancel(s.ctx)
		cancel()
		e, c := s.engine, s.container("")
		calls := map[string]func() error{
			"Info":    func() error { _, err := e.Info(ctx); return err },
			"Create":  func() error { _, err := e.Create(ctx, c); return err },
			"Start":   func() error { return e.Start(ctx, s.create(s.container(""))) },
			"Guest":   func() error { _, err := e.Guest(ctx, id); return err },
			"Stop":    func() error { return e.Stop(ctx, id, time.Second) },
			"Remove":  func() error { return e.Remove(ctx, id) },
			"List":    func() error { _, err := e.List(ctx); return err },
			"Inspect": func() error { _, err := e.Inspect(ctx, id); return err },
			"Watch":   func() error { return e.Watch(ctx, func(engine.State) {}) },
			"Stats":   func() error { _, err := e.Stats(ctx, []string{id}); return err },
			"Images":  func() error { _, err := e.Images(ctx); return err },
			"Image":   func() error { _, err := e.Image(ctx, s.Image); return err },
			"Network": func() error {
				return e.CreateNetwork(ctx, engine.Network{Name: c.Name, Labels: c.Labels})
			},
			"Remove network": func() error { return e.RemoveNetwork(ctx, c.Name) },
			"Attachment":     func() error { _, err := e.Attachment(ctx, true); return err },
			"Changed":        func() error { _, err := e.Changed(ctx, id); return err },
			"Disk use":       func() error { _, err := e.DiskUse(ctx); return err },
			"Pull": func() error {
				_, err := e.Pull(ctx, noImage, engine.Login{}, func(session.Pull) {})
				return err
			},
		}
		for name, call := range calls {
			s.wantCancelled(name, call())
		}
		if !s.inspect(id).Running {
			s.Error("a cancelled call touched the container")
		}
		s.wantListed(c.Name, false)
	}},
	{"watch ends with its context", func(s *suite) {
		ctx, cancel := context.WithCancel(s.ctx)
		done := make(chan error, 1)
		go func() { done <- s.engine.Watch(ctx, func(engine.State) {}) }()
		cancel()
		s.wantCancelled("Watch", s.ends("Watch", done))
	}},
	{"watch tells of start and end", func(s *suite) {
		seen := s.watch()
		c := s.container(commandExit)
		id := s.run(c)
		last := s.expect(seen, fmt.Sprintf("the end of %s", c.Name), func(state engine.State) bool {
			return state.ID == id && !state.Running && !state.Created
		})
		if last.ExitCode != 7 || !maps.Equal(last.Labels, c.Labels) || last.Name != c.Name {
			s.Errorf("want the whole state with exit code 7, got %+v", last)
		}
		runner := s.start("")
		s.expect(seen, "a start", func(state engine.State) bool { return state.ID == runner && state.Running })
	}},
}

func (s *suite) wantListed(name string, want bool) {
	s.Helper()
	states, err := s.engine.List(s.ctx)
	s.ok(err)
	found := slices.ContainsFunc(states, func(state engine.State) bool { return state.Name == name })
	if found != want {
		s.Errorf("%s is listed: %v, want %v", name, found, want)
	}
}

func (s *suite) together(n int, fn func(i int) error) {
	s.Helper()
	var group sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		group.Go(func() { errs[i] = fn(i) })
	}
	group.Wait()
	for i, err := range errs {
		if err != nil {
			s.Errorf("container %d: %v", i, err)
		}
	}
}

// watch watches until the end of the case, and returns once the watch works.
func (s *suite) watch() <-chan engine.State {
	seen := make(chan engine.State, 4096)
	ctx, cancel := context.WithCancel(s.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.engine.Watch(ctx, func(state engine.State) { seen <- state }); ctx.Err() == nil {
			s.Errorf("watch broke: %v", err)
		}
	}()
	s.Cleanup(func() {
		cancel()
		<-done
	})
	s.await("the watch to listen", func() bool {
		probe := s.start("")
		timer := time.NewTimer(patience / 20)
		defer timer.Stop()
		for {
			select {
			case state := <-seen:
				if state.ID == probe {
					return true
				}
			case <-timer.C:
				return false
			}
		}
	})
	return seen
}

func (s *suite) expect(seen <-chan engine.State, what string, match func(engine.State) bool) engine.State {
	s.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case state := <-seen:
			if match(state) {
				return state
			}
		case <-timer.C:
			s.Fatalf("watch did not tell of %s", what)
		}
	}
}
