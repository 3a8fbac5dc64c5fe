package simtest

import (
	"context"
	"sync"

	"slipway/backend/session"
)

// Call names one method of an engine.
type Call string

// The calls that can be counted, blocked and failed.
const (
	CallInfo    Call = "Info"
	CallCreate  Call = "Create"
	CallStart   Call = "Start"
	CallGuest   Call = "Guest"
	CallStop    Call = "Stop"
	CallHome    Call = "Home"
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
)

// Unavailable is the error of every call while the engine is down.
var Unavailable error = &session.Error{Code: session.CodeEngineUnavailable,
	Message: "The container engine does not answer.", Hint: "Start it and try again."}

type faults struct {
	mu     sync.Mutex // guards what follows
	down   bool
	calls  map[Call]int
	gates  map[Call]*Gate
	orders map[Call][]order
	breaks map[*context.CancelCauseFunc]struct{} // of each Watch
}

type order struct {
	err   error
	after bool // the call does its work first: its answer is lost
}

func newFaults() *faults {
	return &faults{calls: map[Call]int{}, gates: map[Call]*Gate{}, orders: map[Call][]order{},
		breaks: map[*context.CancelCauseFunc]struct{}{}}
}

// Gate blocks the calls of one method.
type Gate struct {
	faults   *faults
	call     Call
	entered  chan struct{}
	released chan struct{}
	release  func() // closes released
}

// Block makes every call of a method hang at its beginning until the gate is released or the call's context ends.
func (f *faults) Block(call Call) *Gate {
	g := &Gate{faults: f, call: call, entered: make(chan struct{}, 1024), released: make(chan struct{})}
	g.release = sync.OnceFunc(func() { close(g.released) })
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gates[call] = g
	return g
}

// Entered delivers one value for each call that hangs at the gate.
func (g *Gate) Entered() <-chan struct{} { return g.entered }

// Release lets all calls proceed, now and later.
func (g *Gate) Release() {
	g.faults.mu.Lock()
	defer g.faults.mu.Unlock()
	if g.faults.gates[g.call] == g {
		delete(g.faults.gates, g.call)
	}
	g.release()
}

// Fail makes the next calls of a method fail at their beginning, one for each error. nil lets one call through.
func (f *faults) Fail(call Call, errs ...error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, err := range errs {
		f.orders[call] = append(f.orders[call], order{err: err})
	}
}

// FailAfter makes the next call of a method do its work and then fail, as if the answer was lost.
func (f *faults) FailAfter(call Call, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.orders[call] = append(f.orders[call], order{err: err, after: true})
}

// SetDown makes every call fail with [Unavailable] and breaks every Watch, until it is called with false.
func (f *faults) SetDown(down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = down
	if down {
		for end := range f.breaks {
			(*end)(Unavailable)
		}
	}
}

// Calls returns how often a method was called, including failures.
func (f *faults) Calls(call Call) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[call]
}

// enter counts a call and applies the faults at its beginning.
func (f *faults) enter(ctx context.Context, call Call) error {
	f.mu.Lock()
	f.calls[call]++
	gate := f.gates[call]
	f.mu.Unlock()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if gate != nil {
		select {
		case gate.entered <- struct{}{}:
		default:
		}
		if err := await(ctx, gate.released); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down {
		return Unavailable
	}
	return f.next(call, false)
}

func await[T any](ctx context.Context, channel <-chan T) error {
	select {
	case <-channel:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// next takes the next fault if it is for this side of the call. It needs mu.
func (f *faults) next(call Call, after bool) error {
	queue := f.orders[call]
	if len(queue) == 0 || queue[0].after != after {
		return nil
	}
	f.orders[call] = queue[1:]
	return queue[0].err
}

// under makes a call with its faults.
func under[T any](ctx context.Context, f *faults, call Call, do func() (T, error)) (T, error) {
	var none T
	if err := f.enter(ctx, call); err != nil {
		return none, err
	}
	result, err := do()
	if err != nil {
		return none, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.next(call, true); err != nil {
		return none, err
	}
	return result, nil
}

// do is under for a call without a result.
func do(ctx context.Context, f *faults, call Call, work func() error) error {
	_, err := under(ctx, f, call, func() (struct{}, error) { return struct{}{}, work() })
	return err
}

// watching returns a context that ends when the engine goes down.
func (f *faults) watching(ctx context.Context) (broken context.Context, end func()) {
	broken, cancel := context.WithCancelCause(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.breaks[&cancel] = struct{}{}
	return broken, func() {
		cancel(nil)
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.breaks, &cancel)
	}
}
