package enginetest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"slipway/backend/engine"
	"slipway/backend/session"
	"slipway/gpu"
)

func TestFakeKeepsThePromisesOfAnEngine(t *testing.T) {
	var mu sync.Mutex
	var current *Fake
	open := func(t *testing.T) engine.Engine {
		var fake *Fake
		fake = NewFake(FakeConfig{Instance: "one", OnStart: func(id string, c engine.Container) { obey(fake, id, c) }})
		fake.Publish("registry.test/big:1",
			PullScript{Steps: []session.Pull{{Current: 1, Total: 10, Layers: 2},
				{Current: 10, Total: 10, LayersDone: 2, Layers: 2}}})
		mu.Lock()
		current = fake
		mu.Unlock()
		return fake
	}
	Run(t, open, Options{
		Instance: "one", Image: ImageMinimal, Commands: Commands{OOM: "oom"}, PullImage: "registry.test/big:1",
		Stats: true, Guest: true,
		Evict:     func(_ *testing.T, ref string) { current.Evict(ref) },
		DropGuest: func(_ *testing.T, id string) { current.DropGuest(id) },
		HomeExists: func(_ *testing.T, c engine.Container) bool {
			return !strings.Contains(strings.Join(current.HomesRemoved(), " "), c.Name)
		},
	})
}

// obey does what the suite's commands do.
func obey(f *Fake, id string, c engine.Container) {
	switch c.Guest.Command {
	case CommandExit:
		f.Exit(id, 7)
	case CommandPrint:
		for line := range strings.Lines(printed(1, 10)) {
			f.WriteLog(id, strings.TrimSuffix(line, "\n"))
		}
		f.Exit(id, 0)
	case CommandDrip:
		go func() {
			for _, line := range []string{"drip 1", "drip 2", "drip 3"} {
				f.WriteLog(id, line)
				time.Sleep(10 * time.Millisecond)
			}
			f.Exit(id, 0)
		}()
	case "oom":
		f.OOM(id)
	}
}

func newContainer(t *testing.T, f *Fake, name string) string {
	t.Helper()
	id, err := f.Create(t.Context(), engine.Container{
		Name: name, Image: ImageMinimal, Memory: 128 * gpu.MiB, Labels: map[string]string{engine.LabelInstance: "one"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestFakeFaults(t *testing.T) {
	t.Run("while down every call and every watch fails", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := NewFake(FakeConfig{})
			broken := make(chan error, 1)
			go func() { broken <- f.Watch(t.Context(), func(engine.State) {}) }()
			if err := f.AwaitWatch(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			f.SetDown(true)
			if err := <-broken; !errors.Is(err, Unavailable) {
				t.Errorf("watch: got %v", err)
			}
			if _, err := f.List(t.Context()); !errors.Is(err, Unavailable) {
				t.Errorf("list: got %v", err)
			}
			f.SetDown(false)
			if _, err := f.List(t.Context()); err != nil {
				t.Errorf("list after healing: %v", err)
			}
			if got := f.Calls(CallList); got != 2 {
				t.Errorf("got %d calls of List, want 2", got)
			}
		})
	})
	t.Run("a blocked call hangs until it is released", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := NewFake(FakeConfig{})
			gate := f.Block(CallList)
			done := make(chan error, 1)
			go func() { _, err := f.List(t.Context()); done <- err }()
			<-gate.Entered()
			synctest.Wait()
			select {
			case err := <-done:
				t.Fatalf("the call returned: %v", err)
			default:
			}
			gate.Release()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("a blocked call ends with its context", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := NewFake(FakeConfig{})
			f.Block(CallStart)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := f.Start(ctx, "any"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		})
	})
	t.Run("a lost answer leaves its work done", func(t *testing.T) {
		f := NewFake(FakeConfig{})
		f.FailAfter(CallCreate, Unavailable)
		_, err := f.Create(t.Context(), engine.Container{Name: "a", Image: ImageMinimal,
			Labels: map[string]string{engine.LabelInstance: "one"}})
		if !errors.Is(err, Unavailable) || len(f.States()) != 1 {
			t.Errorf("got %v with %d containers, want the failure and one container", err, len(f.States()))
		}
	})
	t.Run("a failure that was asked for happens once", func(t *testing.T) {
		f := NewFake(FakeConfig{})
		id := newContainer(t, f, "a")
		f.Fail(CallStart, Unavailable)
		if err := f.Start(t.Context(), id); !errors.Is(err, Unavailable) || f.States()[0].Running {
			t.Errorf("first start: %v, running %v", err, f.States()[0].Running)
		}
		if err := f.Start(t.Context(), id); err != nil || !f.States()[0].Running {
			t.Errorf("second start: %v, running %v", err, f.States()[0].Running)
		}
	})
	t.Run("a lost container is gone and its guest connection broken", func(t *testing.T) {
		f := NewFake(FakeConfig{})
		id := newContainer(t, f, "a")
		if err := f.Start(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		conn, err := f.Guest(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		f.Lose(id)
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Error("the connection goes on")
		}
		if _, err := f.Inspect(t.Context(), id); session.CodeOf(err) != "engine_read_not-found" {
			t.Errorf("inspect: %v", err)
		}
	})
	t.Run("a pull fails after the progress that was scripted", func(t *testing.T) {
		f := NewFake(FakeConfig{})
		full := &session.Error{Code: "engine_pull_no-space", Message: "The disk is full."}
		f.Publish("registry.test/a", PullScript{Steps: []session.Pull{{Current: 5, Total: 9}}, Err: full})
		var seen []session.Pull
		_, err := f.Pull(t.Context(), "registry.test/a:latest", false, func(p session.Pull) { seen = append(seen, p) })
		if !errors.Is(err, full) || len(seen) != 1 {
			t.Errorf("got %v after %v", err, seen)
		}
	})
}
