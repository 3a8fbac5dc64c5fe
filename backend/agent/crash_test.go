package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"slipway/backend/agent/devices"
	"slipway/backend/engine"
	"slipway/backend/engine/enginetest"
	"slipway/backend/engine/sim/simtest"
	"slipway/backend/session"
	"slipway/gpu"
)

// life ends after a number of deeds, as a process does that is killed: nothing
// that it would have done after that happens.
type life struct {
	mu   sync.Mutex // guards left and dead
	left int        // 0: it does not end
	dead bool
}

var errDead = errors.New("the process is dead")

// deed counts one deed and reports whether the process still lives.
func (l *life) deed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left > 0 {
		if l.left--; l.left == 0 {
			l.dead = true
		}
	}
	return !l.dead
}

func (l *life) fault(string) error {
	if !l.deed() {
		return errDead
	}
	return nil
}

// mortal is an engine as seen by a process that may die before and after each
// call.
type mortal struct {
	engine.Engine
	life *life
}

func deadly[T any](l *life, call func() (T, error)) (T, error) {
	var none T
	if !l.deed() {
		return none, errDead
	}
	v, err := call()
	if !l.deed() {
		return none, errDead
	}
	return v, err
}

func (m mortal) Create(ctx context.Context, c engine.Container) (string, error) {
	return deadly(m.life, func() (string, error) { return m.Engine.Create(ctx, c) })
}
func (m mortal) Start(ctx context.Context, id string) error {
	_, err := deadly(m.life, func() (int, error) { return 0, m.Engine.Start(ctx, id) })
	return err
}
func (m mortal) Stop(ctx context.Context, id string, grace time.Duration) error {
	_, err := deadly(m.life, func() (int, error) { return 0, m.Engine.Stop(ctx, id, grace) })
	return err
}
func (m mortal) Home(ctx context.Context, id string) (io.ReadCloser, error) {
	var home io.ReadCloser
	_, err := deadly(m.life, func() (_ int, err error) {
		home, err = m.Engine.Home(ctx, id)
		return 0, err
	})
	if err != nil && home != nil {
		err = errors.Join(err, home.Close())
	}
	return home, err
}
func (m mortal) Remove(ctx context.Context, id string) error {
	_, err := deadly(m.life, func() (int, error) { return 0, m.Engine.Remove(ctx, id) })
	return err
}
func (m mortal) List(ctx context.Context) ([]engine.State, error) {
	return deadly(m.life, func() ([]engine.State, error) { return m.Engine.List(ctx) })
}
func (m mortal) Inspect(ctx context.Context, id string) (engine.State, error) {
	return deadly(m.life, func() (engine.State, error) { return m.Engine.Inspect(ctx, id) })
}
func (m mortal) Guest(ctx context.Context, id string) (net.Conn, error) {
	return deadly(m.life, func() (net.Conn, error) { return m.Engine.Guest(ctx, id) })
}
func (m mortal) Pull(ctx context.Context, ref string, login engine.Login,
	progress func(session.Pull)) (bool, error) {
	return deadly(m.life, func() (bool, error) { return m.Engine.Pull(ctx, ref, login, progress) })
}
func (m mortal) Logs(ctx context.Context, id string, o session.LogOptions) (io.ReadCloser, error) {
	return deadly(m.life, func() (io.ReadCloser, error) { return m.Engine.Logs(ctx, id, o) })
}

// voyage is one random run.
type voyage struct {
	*world
	r      *rand.Rand
	life   *life
	wishes map[string]session.ID // keys of launches that were answered
	asked  map[session.ID]bool   // those whose end was asked for and accepted
	keys   int
}

func TestNothingIsLostOrDoubledWhateverDiesWhen(t *testing.T) {
	seeds := 15
	if testing.Short() {
		seeds = 4
	}
	if text := os.Getenv("SLIPWAY_TEST_SEEDS"); text != "" {
		seeds, _ = strconv.Atoi(text)
	}
	deaths := 0
	for seed := range seeds {
		inBubble(t, func(t *testing.T) { deaths += sail(t, uint64(seed)) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("the process died %d times", deaths)
	if deaths < 13*seeds {
		t.Errorf("the process died only %d times in %d runs", deaths, seeds)
	}
}

// sail plays one random run and returns how often the process died in it.
func sail(t *testing.T, seed uint64) (deaths int) {
	fake := newFake(t, simtest.Config{CPUs: 4, Memory: 4 * gpu.GiB})
	fake.Publish("remote", simtest.PullScript{Steps: []session.Pull{{Current: 1, Total: 2}, {Current: 2, Total: 2}},
		Pace: time.Second})
	v := &voyage{r: rand.New(rand.NewPCG(seed, 7)), life: &life{}, wishes: map[string]session.ID{},
		asked: map[session.ID]bool{}}
	v.world = &world{t: t, dir: dirInMemory(t), fake: fake}
	v.config = func(c *Config) { c.Engine = engine.Of(mortal{Engine: engine.Of(fake), life: v.life}) }
	v.fault = func(point string) error { return v.life.fault(point) }
	v.gpus = &scriptedDevices{moment: devices.OwnMoment(), devices: []gpu.Device{
		{UUID: "GPU-a", Model: "T", Memory: 16 * gpu.GiB}, {UUID: "GPU-b", Model: "T", Index: 1, Memory: 16 * gpu.GiB},
	}}
	v.start()
	t.Cleanup(v.halt)
	for range 40 {
		v.life.mu.Lock()
		v.life.left = 0
		if v.r.IntN(3) == 0 {
			v.life.left = 1 + v.r.IntN(40)
		}
		v.life.mu.Unlock()
		for range 1 + v.r.IntN(5) {
			v.act()
			time.Sleep(time.Duration(v.r.IntN(3000)) * time.Millisecond)
		}
		if v.r.IntN(3) == 0 || !v.life.deed() {
			v.reborn()
			deaths++
		}
	}
	v.settle()
	return deaths
}

func (v *voyage) reborn() {
	v.halt()
	v.life = &life{}
	v.config = func(c *Config) { c.Engine = engine.Of(mortal{Engine: engine.Of(v.fake), life: v.life}) }
	v.start()
}

// act does one random thing that a person or the world may do.
func (v *voyage) act() {
	ctx := context.Background()
	defer v.disjoint()
	switch v.r.IntN(11) {
	case 10:
		if list, err := v.agent.List(ctx, session.Filter{Live: true}); err == nil && len(list) > 0 {
			_, _ = v.agent.SetPriority(ctx, list[v.r.IntN(len(list))].ID, v.r.IntN(101)) // refused unless it waits
		}
	case 0, 1, 2:
		v.wish(ctx)
	case 3, 4:
		v.end(ctx)
	case 5:
		if states := v.fake.States(); len(states) > 0 {
			id := states[v.r.IntN(len(states))].ID
			[]func(){func() { v.fake.Exit(id, v.r.IntN(2)) }, func() { v.fake.OOM(id) }, func() { v.fake.Lose(id) },
				func() { v.fake.DropGuest(id) }}[v.r.IntN(4)]()
		}
	case 6:
		v.fake.SetDown(v.r.IntN(2) == 0)
	case 7:
		calls := []simtest.Call{simtest.CallCreate, simtest.CallStart, simtest.CallRemove,
			simtest.CallStop, simtest.CallGuest, simtest.CallLogs}
		err := &session.Error{Code: "engine_call_broken", Message: "A call broke."}
		if v.r.IntN(2) == 0 {
			v.fake.Fail(calls[v.r.IntN(len(calls))], err)
		} else {
			v.fake.FailAfter(calls[v.r.IntN(len(calls))], err)
		}
	}
}

// disjoint checks that no CPU, device or instance is in the hands of two
// containers that run, whatever the records say.
func (v *voyage) disjoint() {
	cpus, shares := map[int]string{}, map[gpu.UUID]gpu.Share{}
	for _, state := range v.fake.States() {
		c, ok := v.fake.Container(state.ID)
		if !ok || !state.Running {
			continue
		}
		for _, cpu := range c.CPUs {
			if other, taken := cpus[cpu]; taken {
				v.t.Errorf("CPU %d is used by %s and %s", cpu, other, c.Name)
			}
			cpus[cpu] = c.Name
		}
		for _, g := range c.Grants {
			if shares[g.Device] += g.Share; shares[g.Device] > gpu.WholeDevice {
				v.t.Errorf("%s of %s is in use, by %s too", shares[g.Device], g.Device, c.Name)
			}
		}
	}
}

func (v *voyage) wish(ctx context.Context) {
	v.keys++
	key := fmt.Sprint("wish-", v.keys)
	if v.keys > 1 && v.r.IntN(4) == 0 {
		key = fmt.Sprint("wish-", 1+v.r.IntN(v.keys)) // ask again for an old one
	}
	spec := session.Spec{Image: enginetest.ImageMinimal, Resources: session.Resources{CPU: 1 + v.r.IntN(3),
		Memory: gpu.Bytes(1+v.r.IntN(20)) * 100 * gpu.MiB}}
	if v.r.IntN(3) == 0 {
		spec.Type, spec.Command, spec.Timeout = session.Batch, "true",
			session.Duration(time.Duration(v.r.IntN(60))*time.Second)
	}
	if v.r.IntN(4) == 0 {
		spec.Image = "remote"
		v.fake.Evict("remote")
	}
	switch v.r.IntN(6) {
	case 0:
		spec.Accelerator.Shares = gpu.Share(1+v.r.IntN(9)) * 100
	case 1:
		spec.Accelerator.Devices = 1
	case 2:
		spec.Cluster, spec.Resources.CPU, spec.Resources.Memory = 2+v.r.IntN(2), 1, 500*gpu.MiB
		spec.Accelerator.Shares = gpu.Share(v.r.IntN(4)) * 100
	case 3:
		spec.PendingTimeout = session.Duration(time.Duration(1+v.r.IntN(30)) * time.Second)
	}
	if live, _ := v.agent.List(ctx, session.Filter{Live: true}); spec.Type == session.Batch && len(live) > 0 &&
		v.r.IntN(2) == 0 {
		spec.After = []string{string(live[v.r.IntN(len(live))].ID)} // refused where that is interactive
	}
	priority := v.r.IntN(3) * 10
	spec.Priority = &priority
	s, err := v.agent.Launch(ctx, session.LaunchRequest{Key: key, Spec: spec})
	if err != nil {
		return // its answer was lost, or it was refused
	}
	if known, ok := v.wishes[key]; ok && known != s.ID {
		v.t.Errorf("wish %s was granted as %s and %s", key, known, s.ID)
	}
	v.wishes[key] = s.ID
}

func (v *voyage) end(ctx context.Context) {
	live, err := v.agent.List(ctx, session.Filter{Live: true})
	if err != nil || len(live) == 0 {
		return
	}
	s := live[v.r.IntN(len(live))]
	if _, err := v.agent.Terminate(ctx, s.ID, v.r.IntN(3) == 0); err == nil {
		v.asked[s.ID] = true
	}
}

// settle lets the world be well, waits, and checks that everything ends where
// it should.
func (v *voyage) settle() {
	t, ctx := v.t, context.Background()
	v.fake.SetDown(false)
	v.reborn()
	time.Sleep(time.Hour)
	v.audit()
	v.compare()
	for _, id := range v.wishes {
		if _, err := v.store.Get(id); session.CodeOf(err) == session.CodeSessionNotFound {
			t.Errorf("session %s was accepted and is lost", id)
		}
	}
	for id := range v.asked {
		if s, err := v.store.Get(id); err != nil || !s.Status.Terminal() {
			t.Errorf("session %s was to end and is %s, %v", id, s.Status, err)
		}
	}
	for {
		live, err := v.agent.List(ctx, session.Filter{Live: true})
		if err != nil {
			t.Fatal(err)
		}
		if len(live) == 0 {
			break
		}
		for _, s := range live {
			if _, err := v.agent.Terminate(ctx, s.ID, false); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Hour)
	}
	v.audit()
	if states, networks := v.fake.States(), v.fake.Networks(); len(states) > 0 || len(networks) > 0 {
		t.Errorf("everything has ended and there are %+v and the networks %v", states, networks)
	}
}

// compare checks records against containers in a world at rest.
func (v *voyage) compare() {
	t := v.t
	live, _, err := v.store.Live()
	if err != nil {
		t.Fatal(err)
	}
	containers := map[string]engine.State{}
	for _, state := range v.fake.States() {
		containers[state.ID] = state
	}
	cpus := 0
	for _, s := range live {
		switch s.Status {
		case session.Running:
			for _, k := range s.Kernels {
				state, ok := containers[k.Container]
				if !ok || !state.Running {
					t.Errorf("session %s runs and its container %q is %+v", s.ID, k.Container, state)
				}
				delete(containers, k.Container)
			}
			cpus += len(s.Grants.CPUs)
		case session.Pending:
		default:
			history, _ := v.store.History(s.ID)
			t.Errorf("session %s hangs in %s: %+v\n%+v", s.ID, s.Status, s, history)
		}
	}
	for _, state := range containers {
		t.Errorf("container %s belongs to nobody", state.Name)
	}
	for _, s := range live {
		if s.Status == session.Pending {
			if dressed := v.agent.Dress(s); dressed.Wait == nil ||
				(s.Spec.Resources.CPU <= 4-cpus && dressed.Wait.Position == 1 &&
					s.Spec.Resources.Memory < 100*gpu.MiB) {
				t.Errorf("session %s waits for nothing: %+v", s.ID, dressed.Wait)
			}
		}
	}
}
