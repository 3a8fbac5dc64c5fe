package simtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"slipway/backend/engine"
	"slipway/backend/engine/enginetest"
	"slipway/backend/session"
)

func TestEngineKeepsThePromises(t *testing.T) {
	var mu sync.Mutex // guards what follows
	var current *Engine
	var dir string
	enginetest.Run(t, func(t *testing.T) engine.Engine {
		mu.Lock()
		defer mu.Unlock()
		dir = t.TempDir()
		current = New(t, dir, Config{Instance: "one", Commands: true})
		current.Publish("registry.test/big:1", PullScript{Steps: []session.Pull{{Current: 1, Total: 10, Layers: 2},
			{Current: 10, Total: 10, LayersDone: 2, Layers: 2}}})
		return engine.Of(current)
	}, enginetest.Options{
		Instance: "one", Image: enginetest.ImageMinimal, PullImage: "registry.test/big:1",
		OOM: "stress --vm-bytes 1G --timeout 60", Serve: []string{"httpd", "-p", fmt.Sprint(enginetest.ServePort)},
		Guest: true,
		Evict: func(t *testing.T, ref string) {
			if err := current.Evict(ref); err != nil {
				t.Error(err)
			}
		},
		DropGuest: func(_ *testing.T, id string) { current.DropGuest(id) },
		HomeExists: func(t *testing.T, _ engine.Container) bool {
			homes, err := filepath.Glob(filepath.Join(dir, "containers", "*", "root", "home", "work"))
			if err != nil {
				t.Fatal(err)
			}
			return len(homes) > 0
		},
	})
}

func newContainer(t *testing.T, e *Engine, name string) string {
	t.Helper()
	id, err := e.Create(t.Context(), container(name))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func container(name string) engine.Container {
	return engine.Container{Name: name, Image: enginetest.ImageMinimal, Memory: session.MinMemory,
		Labels: map[string]string{engine.LabelInstance: "one"},
		Guest:  engine.GuestConfig{UID: os.Getuid(), GID: os.Getgid(), Command: "exit 3"}}
}

func TestFaults(t *testing.T) {
	bubble := func(name string, test func(*testing.T, *Engine)) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) { test(t, New(t, dir, Config{})) })
		})
	}
	bubble("while down every call and every watch fails", func(t *testing.T, e *Engine) {
		broken := make(chan error, 1)
		go func() { broken <- e.Watch(t.Context(), func(engine.State) {}) }()
		synctest.Wait()
		e.SetDown(true)
		if err := <-broken; !errors.Is(err, Unavailable) {
			t.Errorf("watch: got %v", err)
		}
		if _, err := e.List(t.Context()); !errors.Is(err, Unavailable) {
			t.Errorf("list: got %v", err)
		}
		e.SetDown(false)
		if _, err := e.List(t.Context()); err != nil {
			t.Errorf("list after healing: %v", err)
		}
		if got := e.Calls(CallList); got != 2 {
			t.Errorf("got %d calls of List, want 2", got)
		}
	})
	bubble("a blocked call hangs until it is released", func(t *testing.T, e *Engine) {
		gate := e.Block(CallList)
		done := make(chan error, 1)
		go func() { _, err := e.List(t.Context()); done <- err }()
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
	bubble("a blocked call ends with its context", func(t *testing.T, e *Engine) {
		e.Block(CallStart)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := e.Start(ctx, "any"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
	bubble("a lost answer leaves its work done", func(t *testing.T, e *Engine) {
		e.FailAfter(CallCreate, Unavailable)
		_, err := e.Create(t.Context(), container("a"))
		if !errors.Is(err, Unavailable) || len(e.States()) != 1 {
			t.Errorf("got %v with %d containers, want the failure and one container", err, len(e.States()))
		}
	})
	bubble("a failure that was ordered happens once", func(t *testing.T, e *Engine) {
		id := newContainer(t, e, "a")
		e.Fail(CallStart, Unavailable)
		if err := e.Start(t.Context(), id); !errors.Is(err, Unavailable) || e.States()[0].Running {
			t.Errorf("first start: %v, running %v", err, e.States()[0].Running)
		}
		if err := e.Start(t.Context(), id); err != nil || !e.States()[0].Running {
			t.Errorf("second start: %v, running %v", err, e.States()[0].Running)
		}
	})
	bubble("a container does nothing on its own", func(t *testing.T, e *Engine) {
		id := newContainer(t, e, "a")
		if err := e.Start(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if state, err := e.Inspect(t.Context(), id); err != nil || !state.Running {
			t.Errorf("after an hour: %+v, %v", state, err)
		}
		e.Exit(id, 5)
		if state, err := e.Inspect(t.Context(), id); err != nil || state.Running || state.ExitCode != 5 {
			t.Errorf("when it was told to end: %+v, %v", state, err)
		}
	})
	bubble("a lost container is gone, its guest's connection broken, and nobody told", func(t *testing.T, e *Engine) {
		id := newContainer(t, e, "a")
		if err := e.Start(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		conn, err := e.Guest(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_ = e.Watch(t.Context(), func(s engine.State) { t.Errorf("told of %+v", s) }) // ends with the test
		}()
		synctest.Wait()
		if err := e.Lose(id); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for buffer := make([]byte, 1024); err == nil; _, err = conn.Read(buffer) {
		}
		if _, err := e.Inspect(t.Context(), id); session.CodeOf(err) != "engine_read_not-found" {
			t.Errorf("inspect: %v", err)
		}
	})
	bubble("a pull fails after the progress that was scripted", func(t *testing.T, e *Engine) {
		full := &session.Error{Code: "disk_write_no-space", Message: "The disk is full."}
		e.Publish("registry.test/a", PullScript{Steps: []session.Pull{{Current: 5, Total: 9}}, Err: full})
		var seen []session.Pull
		_, err := e.Pull(t.Context(), "registry.test/a:latest", engine.Login{},
			func(p session.Pull) { seen = append(seen, p) })
		if !errors.Is(err, full) || len(seen) != 1 {
			t.Errorf("got %v after %v", err, seen)
		}
	})
}
