// Package simtest is a simulated engine with fault injection: any call can hang or fail, and containers end on demand.
package simtest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"slipway/backend/engine"
	"slipway/backend/engine/enginetest"
	"slipway/backend/engine/sim"
	"slipway/backend/session"
	"slipway/gpu"
)

// Engine is a simulated engine with fault injection. It mounts any directory of this computer, as Docker does. A second
// agent on the same engine is like an agent that restarted.
type Engine struct {
	*sim.Sim
	*faults
	commands bool

	mu      sync.Mutex // guards what follows
	created map[string]engine.Container
	conns   map[string]net.Conn      // to guests
	absent  map[string]chan struct{} // closed when the guest is there again
	stats   map[string]engine.Stats
	scripts map[string]PullScript
}

// Config describes an [Engine]. The zero value works.
type Config struct {
	CPUs     int       // 0: 8
	Memory   gpu.Bytes // 0: 16 GiB
	Instance string    // value of the instance label; other containers are not listed
	Commands bool      // run the commands of containers; otherwise they end only on demand
}

// New returns an engine in dir that has [enginetest.ImageMinimal] and no containers. It closes with the test.
func New(t testing.TB, dir string, config Config) *Engine {
	t.Helper()
	s, err := sim.Open(sim.Config{
		Dir: dir, Data: "/", Instance: config.Instance,
		CPUs: cmp.Or(config.CPUs, 8), Memory: cmp.Or(config.Memory, 16*gpu.GiB),
		Speed: 1e12, Catalogue: []sim.Image{{Ref: enginetest.ImageMinimal, Size: 120 * gpu.MiB, Installed: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &Engine{
		Sim: s, faults: newFaults(), commands: config.Commands,
		created: map[string]engine.Container{}, conns: map[string]net.Conn{},
		absent: map[string]chan struct{}{}, stats: map[string]engine.Stats{}, scripts: map[string]PullScript{},
	}
}

func (e *Engine) Info(ctx context.Context) (engine.Info, error) {
	return under(ctx, e.faults, CallInfo, func() (engine.Info, error) { return e.Sim.Info(ctx) })
}

func (e *Engine) Create(ctx context.Context, c engine.Container) (string, error) {
	return under(ctx, e.faults, CallCreate, func() (string, error) {
		made := c
		made.Hidden = nil // which the simulated engine refuses
		if !e.commands {
			made.Guest.Command = ""
		}
		id, err := e.Sim.Create(ctx, made)
		if err == nil {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.created[id] = c
		}
		return id, err
	})
}

func (e *Engine) Start(ctx context.Context, id string) error {
	return do(ctx, e.faults, CallStart, func() error { return e.Sim.Start(ctx, id) })
}

func (e *Engine) Guest(ctx context.Context, id string) (net.Conn, error) {
	return under(ctx, e.faults, CallGuest, func() (net.Conn, error) {
		e.mu.Lock()
		back := e.absent[id]
		e.mu.Unlock()
		if back != nil {
			if err := await(ctx, back); err != nil {
				return nil, err
			}
		}
		conn, err := e.Sim.Guest(ctx, id)
		if err == nil {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.conns[id] = conn
		}
		return conn, err
	})
}

func (e *Engine) Stop(ctx context.Context, id string, grace time.Duration) error {
	return do(ctx, e.faults, CallStop, func() error { return e.Sim.Stop(ctx, id, grace) })
}

func (e *Engine) Home(ctx context.Context, id string) (io.ReadCloser, error) {
	return under(ctx, e.faults, CallHome, func() (io.ReadCloser, error) { return e.Sim.Home(ctx, id) })
}

func (e *Engine) Remove(ctx context.Context, id string) error {
	return do(ctx, e.faults, CallRemove, func() error { return e.Sim.Remove(ctx, id) })
}

func (e *Engine) List(ctx context.Context) ([]engine.State, error) {
	return under(ctx, e.faults, CallList, func() ([]engine.State, error) { return e.Sim.List(ctx) })
}

func (e *Engine) Inspect(ctx context.Context, id string) (engine.State, error) {
	return under(ctx, e.faults, CallInspect, func() (engine.State, error) { return e.Sim.Inspect(ctx, id) })
}

func (e *Engine) Watch(ctx context.Context, fn func(engine.State)) error {
	return do(ctx, e.faults, CallWatch, func() error {
		ctx, end := e.watching(ctx)
		defer end()
		return e.Sim.Watch(ctx, fn)
	})
}

// Stats returns the sample set by the test, else the use of a small program.
func (e *Engine) Stats(ctx context.Context, ids []string) (map[string]engine.Stats, error) {
	return under(ctx, e.faults, CallStats, func() (map[string]engine.Stats, error) {
		samples, err := e.Sim.Stats(ctx, ids)
		e.mu.Lock()
		defer e.mu.Unlock()
		for id, sample := range samples {
			if said, ok := e.stats[id]; ok {
				samples[id] = said
				continue
			}
			state, _ := e.Sim.Inspect(ctx, id) // one that is gone has used what it has
			sample.CPU = sample.At.Sub(state.StartedAt) / 10
			samples[id] = sample
		}
		return samples, err
	})
}

func (e *Engine) Logs(ctx context.Context, id string, opts session.LogOptions) (io.ReadCloser, error) {
	return under(ctx, e.faults, CallLogs, func() (io.ReadCloser, error) { return e.Sim.Logs(ctx, id, opts) })
}

func (e *Engine) Images(ctx context.Context) ([]session.Image, error) {
	return under(ctx, e.faults, CallImages, func() ([]session.Image, error) { return e.Sim.Images(ctx) })
}

func (e *Engine) Image(ctx context.Context, ref string) (session.Image, error) {
	return under(ctx, e.faults, CallImage, func() (session.Image, error) { return e.Sim.Image(ctx, ref) })
}

func (e *Engine) Commit(ctx context.Context, id string, c engine.Commit) (session.Image, error) {
	return under(ctx, e.faults, CallCommit, func() (session.Image, error) { return e.Sim.Commit(ctx, id, c) })
}

func (e *Engine) CreateNetwork(ctx context.Context, n engine.Network) error {
	return do(ctx, e.faults, CallCreateNetwork, func() error { return e.Sim.CreateNetwork(ctx, n) })
}

func (e *Engine) RemoveNetwork(ctx context.Context, name string) error {
	return do(ctx, e.faults, CallRemoveNetwork, func() error { return e.Sim.RemoveNetwork(ctx, name) })
}

// PullScript describes a pull: Steps, Pace apart; a wait for Hold to be closed, if set; then Err or success.
type PullScript struct {
	Steps   []session.Pull
	Pace    time.Duration
	Hold    <-chan struct{}
	Err     error
	Private bool // it needs a login
}

func (e *Engine) Publish(ref string, script PullScript) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.scripts[sim.FullRef(ref)] = script
}

func (e *Engine) Pull(ctx context.Context, ref string, login engine.Login,
	progress func(session.Pull)) (bool, error) {
	return under(ctx, e.faults, CallPull, func() (private bool, err error) {
		e.mu.Lock()
		script, ok := e.scripts[sim.FullRef(ref)]
		e.mu.Unlock()
		switch {
		case !ok:
			return e.Sim.Pull(ctx, ref, login, progress)
		case script.Private && !login.Stored && login.Own == nil:
			return false, session.NewError(session.CodePullForbidden,
				fmt.Sprintf("The registry does not let you pull %s.", ref), "Log in.")
		}
		if err := script.play(ctx, progress); err != nil {
			return false, err
		}
		return script.Private, e.AddImage(ref)
	})
}

func (p PullScript) play(ctx context.Context, progress func(session.Pull)) error {
	for _, step := range p.Steps {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		progress(step)
		if p.Pace > 0 {
			if err := await(ctx, time.After(p.Pace)); err != nil {
				return err
			}
		}
	}
	if p.Hold != nil {
		if err := await(ctx, p.Hold); err != nil {
			return err
		}
	}
	return p.Err
}

// States is List without fault injection.
func (e *Engine) States() []engine.State {
	states, _ := e.Sim.List(context.Background()) // it fails only when it is closed
	return states
}

// Container returns the configuration of an existing container.
func (e *Engine) Container(id string) (engine.Container, bool) {
	if _, err := e.Sim.Inspect(context.Background(), id); err != nil {
		return engine.Container{}, false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	c, ok := e.created[id]
	return c, ok
}

func (e *Engine) Networks() []string { return slices.Sorted(maps.Keys(e.MadeNetworks())) }

// DropGuest breaks the connection to a container's guest; the container keeps running.
func (e *Engine) DropGuest(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if conn := e.conns[id]; conn != nil {
		conn.Close() //nolint:errcheck // a pipe cannot fail to close
	}
}

// SetGuestAbsent makes Guest of a container wait, as if its guest never connected, until it is called with false.
func (e *Engine) SetGuestAbsent(id string, absent bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	back := e.absent[id]
	switch {
	case absent && back == nil:
		e.absent[id] = make(chan struct{})
	case !absent && back != nil:
		close(back)
		delete(e.absent, id)
	}
}

func (e *Engine) SetStats(id string, s engine.Stats) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stats[id] = s
}
