package enginetest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sort"
	"time"

	"slipway/backend/engine"
	"slipway/backend/session"
	"slipway/gpu"
)

// Call names one method of [engine.Engine].
type Call string

// The calls that a [Fake] counts, blocks and fails.
const (
	CallInfo    Call = "Info"
	CallCreate  Call = "Create"
	CallStart   Call = "Start"
	CallGuest   Call = "Guest"
	CallStop    Call = "Stop"
	CallRemove  Call = "Remove"
	CallList    Call = "List"
	CallInspect Call = "Inspect"
	CallWatch   Call = "Watch"
	CallStats   Call = "Stats"
	CallLogs    Call = "Logs"
	CallImages  Call = "Images"
	CallImage   Call = "Image"
	CallPull    Call = "Pull"
	CallCommit  Call = "Commit"

	CallCreateNetwork Call = "CreateNetwork"
	CallRemoveNetwork Call = "RemoveNetwork"
	CallAttachment    Call = "Attachment"
)

type fault struct {
	err   error
	after bool // the call does its work first: its answer is lost
}

// Unavailable is what every call fails with while an engine does not answer.
var Unavailable error = &session.Error{
	Code: "engine_connect_unavailable", Message: "The container engine does not answer.",
	Hint: "Start it and try again.",
}

// Gate holds back the calls of one method.
type Gate struct {
	fake     *Fake
	call     Call
	entered  chan struct{}
	released chan struct{}
}

// Block makes every call of a method hang, before it does anything, until the
// gate is released or the call's context ends.
func (f *Fake) Block(call Call) *Gate {
	g := &Gate{fake: f, call: call, entered: make(chan struct{}, 1024), released: make(chan struct{})}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gates[call] = g
	return g
}

// Entered delivers one value for each call that hangs at the gate.
func (g *Gate) Entered() <-chan struct{} { return g.entered }

// Release lets all calls go on, those that hang and those to come.
func (g *Gate) Release() {
	g.fake.mu.Lock()
	defer g.fake.mu.Unlock()
	if g.fake.gates[g.call] == g {
		delete(g.fake.gates, g.call)
	}
	select {
	case <-g.released:
	default:
		close(g.released)
	}
}

// Fail makes the next calls of a method fail, one for each error, before they
// do anything. A nil error lets one call through.
func (f *Fake) Fail(call Call, errs ...error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, err := range errs {
		f.faults[call] = append(f.faults[call], fault{err: err})
	}
}

// FailAfter makes the next call of a method do its work and then fail, as when
// the connection breaks before the answer.
func (f *Fake) FailAfter(call Call, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults[call] = append(f.faults[call], fault{err: err, after: true})
}

// SetDown makes every call fail with [Unavailable] and breaks every Watch until
// it is called with false. Containers and guest connections go on.
func (f *Fake) SetDown(down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = down
	if down {
		for w := range f.watchers {
			w.End()
		}
	}
}

// Calls returns how often a method was called, failures included.
func (f *Fake) Calls(call Call) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[call]
}

// enter counts a call and applies what the test has scripted for its beginning.
func (f *Fake) enter(ctx context.Context, call Call) error {
	f.mu.Lock()
	f.calls[call]++
	gate := f.gates[call]
	f.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if gate != nil {
		select {
		case gate.entered <- struct{}{}:
		default:
		}
		select {
		case <-gate.released:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down {
		return Unavailable
	}
	if queue := f.faults[call]; len(queue) > 0 && !queue[0].after {
		f.faults[call] = queue[1:]
		return queue[0].err
	}
	return nil
}

// leave applies what the test has scripted for the end of a call.
func (f *Fake) leave(call Call) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if queue := f.faults[call]; len(queue) > 0 && queue[0].after {
		f.faults[call] = queue[1:]
		return queue[0].err
	}
	return nil
}

// AddImage puts an image on the machine.
func (f *Fake) AddImage(ref string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	ref = fullRef(ref)
	f.images[ref] = session.Image{
		ID: fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(ref))), Refs: []string{ref},
		Size: 120 * gpu.MiB, Arch: "amd64", CreatedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
}

// Evict takes an image from the machine, whoever uses it.
func (f *Fake) Evict(ref string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.images, fullRef(ref))
}

// PullScript says how a pull goes: Steps are reported, Pace apart; then, if
// Hold is set, the pull waits for it to be closed; then it fails with Err or
// succeeds.
type PullScript struct {
	Steps []session.Pull
	Pace  time.Duration
	Hold  <-chan struct{}
	Err   error
	// Private: it cannot be pulled without a login.
	Private bool
}

// Publish makes an image available in the registry.
func (f *Fake) Publish(ref string, script PullScript) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.remote[fullRef(ref)] = script
}

func (p PullScript) play(ctx context.Context, progress func(session.Pull)) error {
	for _, step := range p.Steps {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		progress(step)
		if p.Pace > 0 {
			select {
			case <-time.After(p.Pace):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	if p.Hold != nil {
		select {
		case <-p.Hold:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return p.Err
}

// States returns the containers of this instance as [Fake.List] does, without
// counting as a call.
func (f *Fake) States() []engine.State {
	f.mu.Lock()
	defer f.mu.Unlock()
	states := []engine.State{}
	for _, c := range f.containers {
		if f.ours(c) {
			states = append(states, c.snapshot())
		}
	}
	sort.Slice(states, func(i, j int) bool { return states[i].ID < states[j].ID })
	return states
}

// Container returns what a container was created with.
func (f *Fake) Container(id string) (engine.Container, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c, ok := f.containers[id]; ok {
		return c.spec, true
	}
	return engine.Container{}, false
}

// GuestOf returns the guest that plays in a container, or nil.
func (f *Fake) GuestOf(id string) *Guest {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c, ok := f.containers[id]; ok {
		return c.guest
	}
	return nil
}

// HomesRemoved returns the names of the containers whose homes are gone, in the
// order of their removal.
func (f *Fake) HomesRemoved() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.removed...)
}

// Exit ends a running container with a code.
func (f *Fake) Exit(id string, code int) { f.end(id, code, nil) }

// OOM ends a running container because its memory ran out.
func (f *Fake) OOM(id string) {
	f.end(id, 137, func(c *fakeContainer) {
		c.state.OOMKilled = true
		c.stats.OOMKills++
	})
}

// FailedStart leaves a created container as an engine leaves one that could not
// be started, with what the engine says of it.
func (f *Fake) FailedStart(id, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c, ok := f.containers[id]; ok {
		c.state.Created, c.state.Running = false, false
		c.state.ExitCode, c.state.Error, c.state.FinishedAt = 127, text, time.Now()
		f.touch(id)
	}
}

// Lose makes a container vanish without a word to watchers, as when someone
// removes it while the engine's events are not heard.
func (f *Fake) Lose(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c, ok := f.containers[id]; ok {
		if c.conn != nil {
			c.conn.Close() //nolint:errcheck // a pipe cannot fail to close
		}
		delete(f.containers, id)
		f.touch(id)
	}
}

// DropGuest breaks the connection to a container's guest; the container goes on.
func (f *Fake) DropGuest(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c, ok := f.containers[id]; ok && c.conn != nil {
		c.conn.Close() //nolint:errcheck // a pipe cannot fail to close
		c.conn = nil
	}
}

// SetGuestAbsent makes Guest of a container wait, as when its guest never
// connects, until it is called with false.
func (f *Fake) SetGuestAbsent(id string, absent bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c, ok := f.containers[id]; ok {
		c.noGuest = absent
		f.touch(id)
	}
}

// SetStats fixes what Stats says of a container.
func (f *Fake) SetStats(id string, s engine.Stats) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c, ok := f.containers[id]; ok {
		c.stats = s
	}
}

// WriteLog adds whole lines to what a container wrote.
func (f *Fake) WriteLog(id string, lines ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c, ok := f.containers[id]; ok {
		for _, line := range lines {
			c.log = append(c.log, logLine{at: time.Now(), text: line})
		}
		close(f.changed)
		f.changed = make(chan struct{})
	}
}

// end stops a running container; change adds to its last state.
func (f *Fake) end(id string, code int, change func(*fakeContainer)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, ok := f.containers[id]
	if !ok || !c.state.Running {
		return
	}
	c.state.Running, c.state.ExitCode, c.state.FinishedAt = false, code, time.Now()
	if change != nil {
		change(c)
	}
	if c.conn != nil {
		c.conn.Close() //nolint:errcheck // a pipe cannot fail to close
		c.conn = nil
	}
	f.touch(id)
}
