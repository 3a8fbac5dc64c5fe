package agent

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway/backend/agent/ledger"
	"slipway/backend/engine"
	"slipway/backend/engine/enginetest"
	"slipway/backend/engine/sim/simtest"
	"slipway/backend/session"
	"slipway/gpu"
)

// tenant is one of several agents on an engine: it lists what is its own.
type tenant struct {
	*simtest.Engine
	instance string
	t        *testing.T
	// creating is called before each container is created and created after it;
	// either may be nil.
	creating, created func()
}

func (e *tenant) own(states []engine.State, own bool) (list []engine.State) {
	for _, s := range states {
		if (s.Labels[engine.LabelInstance] == e.instance) == own {
			list = append(list, s)
		}
	}
	return list
}

func (e *tenant) List(ctx context.Context) ([]engine.State, error) {
	states, err := e.Engine.List(ctx)
	return e.own(states, true), err
}

func (e *tenant) Others(context.Context) (list []engine.State, err error) {
	for _, s := range e.own(e.States(), false) {
		if s.Running || s.Created {
			list = append(list, s)
		}
	}
	return list, nil
}

func (e *tenant) Watch(ctx context.Context, fn func(engine.State)) error {
	return e.Engine.Watch(ctx, func(s engine.State) {
		if s.Labels[engine.LabelInstance] == e.instance {
			fn(s)
		}
	})
}

func (e *tenant) Create(ctx context.Context, c engine.Container) (string, error) {
	if e.creating != nil {
		e.creating()
	}
	id, err := e.Engine.Create(ctx, c)
	if err == nil && e.created != nil {
		e.created()
	}
	return id, err
}

// Start checks the promise at the only moment that matters: nothing runs that
// was given what runs already.
func (e *tenant) Start(ctx context.Context, id string) error {
	shares := map[gpu.UUID]gpu.Share{}
	for _, s := range e.States() {
		var grants session.Grants
		if json.Unmarshal([]byte(s.Labels[engine.LabelGrants]), &grants) != nil {
			continue // made up by a test
		}
		if s.Running || s.ID == id {
			for _, g := range grants.GPUs {
				shares[g.Device] += g.Share
			}
		}
	}
	for device, share := range shares {
		if share > gpu.WholeDevice {
			e.t.Errorf("%s is given %s times", device, share)
		}
	}
	return e.Engine.Start(ctx, id)
}

// neighboursOf makes two agents on one engine with one device.
func neighboursOf(t *testing.T, alone func(context.Context) (func(), error), creating, created func()) (a, b *world) {
	t.Helper()
	fake := newFake(t, simtest.Config{})
	config := func(c *Config) {
		c.Engine = engine.Of(&tenant{Engine: fake, instance: c.Store.Instance(), t: t, creating: creating,
			created: created})
		c.Devices.Alone = alone
	}
	a, b = newWorld(t, fake, config), newWorld(t, fake, config)
	for _, w := range []*world{a, b} {
		w.withDevices([]gpu.Device{{UUID: "GPU-a", Model: "T", Vendor: gpu.NVIDIA, Memory: 24 * gpu.GiB}}, nil)
	}
	return a, b
}

// meeting returns a function in which the first two callers wait for one another,
// but for a second at most: a lock may keep one of them out.
func meeting() func() {
	var mu sync.Mutex
	came, met := 0, make(chan struct{})
	return func() {
		mu.Lock()
		came++
		last := came == 2
		mu.Unlock()
		if last {
			close(met)
		}
		select {
		case <-met:
		case <-time.After(time.Second):
		}
	}
}

// inTurn is a lock that works.
func inTurn() func(context.Context) (func(), error) {
	turn := make(chan struct{}, 1)
	return func(ctx context.Context) (func(), error) {
		select {
		case turn <- struct{}{}:
			return func() { <-turn }, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func TestOtherAgentsSessionsCount(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a, b := neighboursOf(t, inTurn(), nil, nil)
		most := gpu.Request{Shares: 600}
		first := a.awaitStatus(a.launch(session.Spec{Name: "train", Accelerator: most}).ID, session.Running)
		second := b.launch(session.Spec{Name: "wait", Accelerator: most})
		// Its first reason may be that the engine has not answered yet.
		s := b.await(second.ID, "waiting", func(s session.Session) bool {
			return s.Wait != nil &&
				strings.Contains(s.Wait.Message, " has ")
		})
		want := "train (of ada, another Slipway) has 0.6 (14.4 GiB)"
		if !strings.Contains(s.Wait.Message, want) {
			t.Errorf("it says %q, not %q", s.Wait.Message, want)
		}
		board, err := b.agent.Devices(context.Background())
		if err != nil || board.Devices[0].Free != 400 || len(board.Devices[0].Holders) != 1 ||
			board.Devices[0].Holders[0].Share != 600 {
			t.Errorf("the board is %+v, %v", board.Devices, err)
		}
		small := b.launch(session.Spec{Name: "small", Type: session.Batch, Command: "true",
			Lifetime: session.Lifetime{Timeout: session.Duration(time.Minute)}, Accelerator: gpu.Request{Shares: 400}})
		b.awaitStatus(small.ID, session.Running)
		b.fake.Exit(b.awaitStatus(small.ID, session.Running).Container(), 0)
		a.fake.Exit(first.Container(), 0) // nobody tells the second agent
		began := time.Now()
		b.awaitStatus(second.ID, session.Running)
		if took := time.Since(began); took > 2*ledger.LookAgain {
			t.Errorf("it waited %s after the end", took)
		}
	})
}

func TestTwoAgentsNeverGiveTheSame(t *testing.T) {
	hog := func(context.Context) (func(), error) { return nil, errors.New("another program keeps the lock") }
	for name, alone := range map[string]func(context.Context) (func(), error){
		"with the lock": inTurn(), "with a lock that somebody hogs": hog, "without any": nil,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				if name == "with the lock" {
					alone = inTurn() // channels belong to a bubble
				}
				// Both have planned and looked before either creates, and both have
				// created before either looks again.
				ready, created := meeting(), meeting()
				a, b := neighboursOf(t, alone, ready, created)
				most := gpu.Request{Shares: 600}
				first, second := a.launch(session.Spec{Name: "alpha", Accelerator: most}),
					b.launch(session.Spec{Name: "bravo", Accelerator: most})
				won, lost := a, b
				wonID, lostID := first.ID, second.ID
				for {
					x, _ := a.agent.Get(context.Background(), first.ID)
					y, _ := b.agent.Get(context.Background(), second.ID)
					if x.Status == session.Running || y.Status == session.Running {
						if y.Status == session.Running {
							won, lost, wonID, lostID = b, a, second.ID, first.ID
						}
						break
					}
					time.Sleep(time.Millisecond)
				}
				s := lost.await(lostID, "waiting", func(s session.Session) bool {
					return s.Status == session.Pending &&
						s.Wait != nil
				})
				if !strings.Contains(s.Wait.Message, "another Slipway") {
					t.Errorf("it waits for %q", s.Wait.Message)
				}
				machine, err := lost.agent.Machine(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				told := false
				for _, w := range machine.Warnings {
					told = told || w.Code == "agent_devices_lock-held"
				}
				if told != strings.Contains(name, "hogs") {
					t.Errorf("its warnings are %+v", machine.Warnings)
				}
				won.fake.Exit(won.awaitStatus(wonID, session.Running).Container(), 0)
				lost.awaitStatus(lostID, session.Running)
				if s, _ := lost.agent.Get(context.Background(), lostID); s.Attempt > 3 {
					t.Errorf("it took %d attempts", s.Attempt)
				}
			})
		})
	}
}

// TestLaterOnesAreWaitedFor has another agent's container come to light after
// ours, as if it had looked before ours did.
func TestLaterOnesAreWaitedFor(t *testing.T) {
	for name, test := range map[string]struct {
		then func(f *simtest.Engine, id string) error // a second later
		runs time.Duration                            // when ours runs, 0: not within five minutes
	}{
		"until they start": {then: func(f *simtest.Engine, id string) error {
			return f.Start(context.Background(),
				id)
		}},
		"until they step back": {then: func(f *simtest.Engine,
			id string) error {
			return f.Remove(context.Background(), id)
		}, runs: 2 * time.Second},
		"but not for very long": {runs: 15*time.Minute + time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var once sync.Once
				var a *world
				late := func() {
					once.Do(func() {
						labels := map[string]string{engine.LabelInstance: "late",
							engine.LabelGrants: `{"gpus":[{"device":"GPU-a","share":"1"}]}`}
						id, err := a.fake.Create(context.Background(),
							engine.Container{Name: "late", Image: enginetest.ImageMinimal, Labels: labels,
								Memory: session.MinMemory})
						if err != nil {
							t.Error(err)
						}
						if test.then == nil {
							return
						}
						time.AfterFunc(time.Second, func() {
							if err := test.then(a.fake, id); err != nil {
								t.Error(err)
							}
						})
					})
				}
				a, _ = neighboursOf(t, nil, nil, late)
				began := time.Now()
				launched := a.launch(session.Spec{Name: "ours", Accelerator: gpu.Request{Shares: 600}})
				running := func() bool {
					s, err := a.agent.Get(context.Background(), launched.ID)
					return err == nil && s.Status == session.Running
				}
				for limit := max(test.runs, 5*time.Minute); !running() && time.Since(began) < limit; {
					time.Sleep(100 * time.Millisecond)
				}
				took := time.Since(began)
				switch {
				case running() != (test.runs != 0):
					t.Errorf("after %s it runs: %t", took, running())
				case test.then != nil && running() && took < time.Second, test.then == nil && took < 15*time.Minute:
					t.Errorf("it did not wait: %s", took)
				}
			})
		})
	}
}

func TestGrantsOfOthersAreNotTrusted(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a, b := neighboursOf(t, nil, nil, nil)
		for _, grants := range []string{`{"gpus":[{"device":"GPU-a","share":"-5"}]}`,
			`{"gpus":[{"device":"GPU-a","share":900}]}`, `{"gpus":[{"device":"GPU-a","share":"900"}]}`,
			`{"gpus":[{"device":"GPU-a","memory":-5}]}`, `{"gpus":"all"}`, `{"gpus":[{"device":"","share":1}]}`} {
			labels := map[string]string{engine.LabelInstance: a.store.Instance(), engine.LabelGrants: grants,
				engine.LabelSession: "x"}
			if _, err := a.fake.Create(context.Background(),
				engine.Container{Name: grants, Image: enginetest.ImageMinimal, Labels: labels,
					Memory: session.MinMemory}); err != nil {
				t.Fatal(err)
			}
		}
		b.awaitStatus(b.launch(session.Spec{Name: "free", Accelerator: gpu.Request{Shares: gpu.WholeDevice}}).ID,
			session.Running)
	})
}
