package service

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"slipway/backend/agent"
	"slipway/backend/engine"
	"slipway/backend/engine/enginetest"
	"slipway/backend/engine/sim/simtest"
	"slipway/backend/hub"
	"slipway/backend/hub/hubtest"
	"slipway/backend/session"
	"slipway/backend/settings"
	"slipway/backend/store"
	"slipway/gpu"
)

var errGone = errors.New("the process is dead")

// yard is one machine whose agent is killed and started again, on the engine and the store that stay.
type yard struct {
	t      *testing.T
	name   string
	dir    string
	engine *simtest.Engine
	slow   *rand.Rand

	mu    sync.Mutex // guards what follows
	agent session.Agent
	stop  func()
	dead  bool
	left  int  // transactions until it dies; 0: it does not
	cut   bool // no call comes through, and some that did are not answered
	runs  map[string]map[session.ID]bool
	ends  map[string]time.Time // when the test ends a container
}

func newYard(t *testing.T, name string, seed uint64) *yard {
	dir, err := os.MkdirTemp("/dev/shm", "slipway-test-")
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	y := &yard{t: t, name: name, dir: dir, runs: map[string]map[session.ID]bool{}, ends: map[string]time.Time{},
		slow:   rand.New(rand.NewPCG(seed, 3)),
		engine: simtest.New(t, filepath.Join(dir, "engine"), simtest.Config{CPUs: 4, Memory: 16 * gpu.GiB})}
	y.start()
	t.Cleanup(y.halt)
	return y
}

// fault ends the life of the process before, within or after a transaction.
func (y *yard) fault(string) error {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.left > 0 {
		if y.left--; y.left == 0 {
			y.dead = true
		}
	}
	if y.dead {
		return errGone
	}
	return nil
}

func (y *yard) start() {
	y.mu.Lock()
	y.dead, y.left = false, 0
	y.mu.Unlock()
	books, err := store.Open(store.Config{Path: filepath.Join(y.dir, "agent.db"), Fault: y.fault})
	if err != nil {
		y.t.Fatal(err)
	}
	a, err := agent.Open(agent.Config{Name: y.name, Dir: y.dir, Engine: engine.Of(mortalEngine{y.engine, y}),
		Store: books, Owner: "ada", UID: 1000, GID: 1000, Log: discard(),
		Host: agent.HostConfig{Boot: func() (time.Time, error) { return time.Time{}, nil }}})
	if err != nil {
		y.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = a.Run(ctx) // ends with ctx
	}()
	y.mu.Lock()
	y.agent, y.stop = a.Agent(), func() {
		cancel()
		<-ended
		a.Close()
		if err := books.Close(); err != nil {
			y.t.Error(err)
		}
	}
	y.mu.Unlock()
}

func (y *yard) halt() {
	y.mu.Lock()
	y.dead = true
	stop := y.stop
	y.stop = nil
	y.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// mortalEngine notes which session runs under which name.
type mortalEngine struct {
	*simtest.Engine
	yard *yard
}

func (m mortalEngine) Create(ctx context.Context, c engine.Container) (string, error) {
	if err := m.yard.fault("create"); err != nil {
		return "", err
	}
	id, err := m.Engine.Create(ctx, c)
	if err == nil {
		m.yard.mu.Lock()
		defer m.yard.mu.Unlock()
		name := ""
		for _, v := range c.Guest.Env {
			if v.Name == "JOB" {
				name = v.Value
			}
		}
		if m.yard.runs[name] == nil {
			m.yard.runs[name] = map[session.ID]bool{}
		}
		m.yard.runs[name][c.Guest.Session] = true
	}
	return id, err
}

// endSome ends containers that have run long enough.
func (y *yard) endSome() {
	now := time.Now()
	for _, state := range y.engine.States() {
		at, known := y.ends[state.ID]
		switch {
		case !state.Running:
		case !known:
			y.ends[state.ID] = now.Add(time.Duration(5+y.slow.IntN(40)) * time.Second)
		case now.After(at):
			y.engine.Exit(state.ID, 0)
		}
	}
}

// line is the connection of one life of the hub to a yard.
type line struct {
	yard *yard
	hub  *crew
}

func (l *line) reach() (session.Agent, error) {
	l.yard.mu.Lock()
	defer l.yard.mu.Unlock()
	if l.yard.dead || l.yard.cut || l.hub.gone() {
		return session.Agent{}, session.NewError(session.CodeAgentUnavailable, "The agent is not reached.", "")
	}
	return l.yard.agent, nil
}

// over makes a call that may be lost on its way, or lose its answer.
func over[T any](l *line, call func(session.Agent) (T, error)) (T, error) {
	var none T
	a, err := l.reach()
	if err != nil {
		return none, err
	}
	v, err := call(a)
	if _, lost := l.reach(); lost != nil {
		return none, lost
	}
	if errors.Is(err, errGone) {
		return none, session.NewError(session.CodeAgentUnavailable, "The agent has died.", "")
	}
	return v, err
}

type lineSessions struct {
	session.Sessions
	*line
}

func (l lineSessions) Preview(ctx context.Context, owner string, spec session.Spec,
	count int) (session.Preview, error) {
	return over(l.line, func(a session.Agent) (session.Preview, error) { return a.Preview(ctx, owner, spec, count) })
}

// Launch loses every eighth answer.
func (l lineSessions) Launch(ctx context.Context, req session.LaunchRequest) (session.Session, error) {
	s, err := over(l.line, func(a session.Agent) (session.Session, error) { return a.Launch(ctx, req) })
	if err == nil && l.yard.slow.IntN(8) == 0 {
		err = session.NewError(session.CodeAgentUnavailable, "The answer is lost.", "")
	}
	return s, err
}
func (l lineSessions) Get(ctx context.Context, id session.ID) (session.Session, error) {
	return over(l.line, func(a session.Agent) (session.Session, error) { return a.Sessions.Get(ctx, id) })
}
func (l lineSessions) List(ctx context.Context, f session.Filter) ([]session.Session, error) {
	return over(l.line, func(a session.Agent) ([]session.Session, error) { return a.Sessions.List(ctx, f) })
}

type lineMoves struct {
	session.Moves
	*line
}

func (l lineMoves) Accept(ctx context.Context, r session.LaunchRequest) (session.Session, error) {
	return over(l.line, func(a session.Agent) (session.Session, error) { return a.Accept(ctx, r) })
}
func (l lineMoves) Yield(ctx context.Context, id, to session.ID) error {
	_, err := over(l.line, func(a session.Agent) (int, error) { return 0, a.Yield(ctx, id, to) })
	return err
}
func (l lineMoves) Release(ctx context.Context, id session.ID) (session.Session, error) {
	return over(l.line, func(a session.Agent) (session.Session, error) { return a.Release(ctx, id) })
}

type lineActivity struct {
	session.Activity
	*line
}

func (l lineActivity) Watch(ctx context.Context, after session.Cursor, fn func(session.Event) error) error {
	a, err := l.reach()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // a cut ends it
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(100 * time.Millisecond):
			}
			if _, err := l.reach(); err != nil {
				cancel()
			}
		}
	}()
	return a.Activity.Watch(ctx, after, func(e session.Event) error {
		if _, err := l.reach(); err != nil {
			return err
		}
		return fn(e)
	})
}

// crew is one life of the hub.
type crew struct {
	*hub.Hub
	stop func()
	mu   sync.Mutex // guards dead
	dead bool
}

func (c *crew) gone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}

// kill ends the hub at once: nothing that it would have done after that happens.
func (c *crew) kill() {
	c.mu.Lock()
	c.dead = true
	c.mu.Unlock()
	c.stop()
}

func newCrew(t *testing.T, shelf hub.Shelf, yards []*yard) *crew {
	c := &crew{}
	var members []hub.Member
	for i, y := range yards {
		l := &line{yard: y, hub: c}
		members = append(members, hub.Member{Name: y.name, Local: i == 0, Agent: session.Agent{
			Sessions: lineSessions{line: l}, Moves: lineMoves{line: l}, Activity: lineActivity{line: l}}})
	}
	h, err := hub.Open(hub.Config{Members: members, Shelf: shelf, Owner: "ada", Log: discard(),
		Settings: settings.New(t.TempDir(), func(string) string { return "" })})
	if err != nil {
		t.Fatal(err)
	}
	c.Hub = h
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.Run(ctx)
	}()
	c.stop = func() {
		cancel()
		<-ended
	}
	return c
}

// TestFloatingSessionsRunOnceWhateverDiesWhen lets 200 sessions wait for two machines whose agents, whose hub and whose
// connections end at random moments. Each session runs once, none is forgotten, and no machine stays idle while one of
// them waits that it could run.
func TestFloatingSessionsRunOnceWhateverDiesWhen(t *testing.T) {
	seeds := 1
	if text := os.Getenv("SLIPWAY_TEST_SEEDS"); text != "" {
		seeds, _ = strconv.Atoi(text)
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) { float(t, uint64(seed)) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func float(t *testing.T, seed uint64) {
	const jobs = 200
	r := rand.New(rand.NewPCG(seed, 1))
	yards := []*yard{newYard(t, "desk", seed), newYard(t, "lab", seed+1)}
	shelf := &hubtest.Shelf{}
	boss := newCrew(t, shelf, yards)
	t.Cleanup(func() { boss.kill() })
	yards[1].mark(func(y *yard) { y.cut = true }) // so that many sessions wait for the other machine
	time.Sleep(time.Second)
	asked, deaths, moved, idle := 0, 0, 0, 0
	longest := 0
	var refused error // of the last launch
	whole := 0        // seconds since everything was last reborn
	for second := 0; ; second++ {
		if second > 20_000 {
			t.Fatalf("%d of %d sessions have ended after %d s; the last launch failed with %v", ended(t, yards), asked,
				second, refused)
		}
		quiet := asked == jobs
		for asked < jobs && r.IntN(3) == 0 {
			key := fmt.Sprint("job-", asked)
			_, err := boss.Launch(t.Context(), hub.LaunchRequest{Key: key, Spec: session.Spec{
				Name: key, Image: enginetest.ImageMinimal, Type: session.Batch, Command: "work",
				Env:       []session.EnvVar{{Name: "JOB", Value: key}},
				Resources: session.Resources{CPU: 1 + asked%2, Memory: gpu.GiB}}})
			if err != nil {
				refused = err
				break // ask again, with the same key
			}
			asked++
		}
		whole++
		switch chance := r.IntN(60); {
		case quiet && second%7 > 0: // let it run dry
		case chance < 2:
			y := yards[r.IntN(2)]
			y.mu.Lock()
			y.left = 1 + r.IntN(12)
			y.mu.Unlock()
		case chance == 2:
			yards[r.IntN(2)].mark(func(y *yard) { y.cut = true })
		case chance == 3:
			boss.kill()
			boss = newCrew(t, shelf, yards)
			deaths, whole = deaths+1, 0
		}
		for _, y := range yards {
			if y.read(func() bool { return y.dead }) {
				y.halt()
				y.start()
				deaths, whole = deaths+1, 0
			}
			if y.read(func() bool { return y.cut }) {
				whole = 0
				if (asked > jobs/2 || y == yards[0]) && r.IntN(8) == 0 {
					y.mark(func(y *yard) { y.cut = false })
				}
			}
			y.endSome()
		}
		time.Sleep(time.Second)
		if whole > 0 && couldRun(t, yards) {
			if idle++; idle > longest {
				longest = idle
			}
		} else {
			idle = 0
		}
		if asked == jobs && ended(t, yards) >= jobs {
			break
		}
	}
	names := map[string]map[session.ID]bool{}
	for _, y := range yards {
		for name, ids := range y.runs {
			if names[name] == nil {
				names[name] = map[session.ID]bool{}
			}
			for id := range ids {
				names[name][id] = true
			}
		}
		list, err := y.agent.Sessions.List(t.Context(), session.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			if s.From != "" {
				moved++
			}
			if s.Status.Live() || s.Result != session.ResultSuccess {
				t.Errorf("%s on %s is %s, %s (%s, %v)", s.Name, y.name, s.Status, s.Result, s.Reason, s.Error)
			}
		}
	}
	for i := range jobs {
		if name := fmt.Sprint("job-", i); len(names[name]) != 1 {
			t.Errorf("%s was run by %d sessions: %v", name, len(names[name]), names[name])
		}
	}
	t.Logf("%d deaths, %d sessions moved, idle capacity for at most %d s", deaths, moved, longest)
	if longest > 10 {
		t.Errorf("a machine was idle for %d s while a session waited that it could run", longest)
	}
	if moved < jobs/20 || deaths < 10 {
		t.Errorf("only %d sessions moved and %d processes died", moved, deaths)
	}
}

func (y *yard) mark(change func(*yard)) {
	y.mu.Lock()
	defer y.mu.Unlock()
	change(y)
}

func (y *yard) read(what func() bool) bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	return what()
}

// ended counts the sessions that have run and ended.
func ended(t *testing.T, yards []*yard) (count int) {
	for _, y := range yards {
		list, err := y.agent.Sessions.List(t.Context(), session.Filter{Finished: true})
		if err != nil {
			t.Fatal(err)
		}
		count += len(list)
	}
	return count
}

// couldRun reports whether a machine has free what a session waits for at the other.
func couldRun(t *testing.T, yards []*yard) bool {
	free := make([]int, len(yards))
	var waiting [][]session.Session
	for i, y := range yards {
		free[i] = 4
		list, err := y.agent.Sessions.List(t.Context(), session.Filter{Live: true})
		if err != nil {
			t.Fatal(err)
		}
		var here []session.Session
		for _, s := range list {
			if s.Status.HoldsResources() {
				free[i] -= s.Spec.Resources.CPU
			} else {
				here = append(here, s)
			}
		}
		waiting = append(waiting, here)
	}
	for i := range yards {
		for _, s := range waiting[1-i] {
			if s.Spec.Resources.CPU <= free[i] && len(waiting[i]) == 0 {
				return true
			}
		}
	}
	return false
}
