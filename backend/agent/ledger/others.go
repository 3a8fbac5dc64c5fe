package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"slipway/backend/agent/devices"
	"slipway/backend/agent/host"
	"slipway/backend/engine"
	"slipway/backend/pace"
	"slipway/backend/session"
	"slipway/gpu"
)

// Several agents may share one machine: those of several people, or two of one person. Each sees what the others'
// containers hold by their labels, which the engine keeps for all of them, so no agent needs to know another:
//
//   - a plan counts what others hold;
//   - while containers with devices are created, a lock of the machine is held
//     and what others hold is looked at anew, since a pull may have taken hours;
//   - when they are there, it is looked at once more: of two that were created
//     for the same share, which needs somebody who ignores or hogs the lock, the
//     later one steps back, and the first starts once it has. So no lock is
//     trusted with the promise that two sessions never get the same.

const (
	// LookAgain is how soon others are looked at again while somebody waits.
	LookAgain = 5 * time.Second
	// unstarted is how long a container of others counts that was created and is not started: an agent that died in
	// between leaves one for ever.
	unstarted = 15 * time.Minute
	// yielding is how long the later one is given to step back or to start.
	yielding = 10 * time.Second
	// yieldPause is between two looks at whether it did.
	yieldPause = 100 * time.Millisecond
	// crowdTold is how long people are told that the lock was kept from us.
	crowdTold = 10 * time.Minute
)

// Config is what Others are made of.
type Config struct {
	host.Host
	Devices *devices.Devices
	Giving  gpu.Config
	// Alone takes the lock of the machine's devices. nil: there is none.
	Alone func(ctx context.Context) (release func(), err error)
}

// Others are the other agents of the machine, by what their containers hold.
type Others struct {
	config Config

	mu     sync.Mutex // guards everything below
	list   []Other
	hogged time.Time // when the lock could not be had; zero: never
}

// NewOthers returns others of whom nothing is known yet.
func NewOthers(config Config) *Others { return &Others{config: config} }

// List is what others hold, as last seen.
func (x *Others) List() []Other {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.list)
}

// ask asks what other agents hold now, and remembers it.
func (x *Others) ask(ctx context.Context) ([]Other, error) {
	states, err := engine.Ask(ctx, x.config.Limits.Call, "list", x.config.Engine.Others)
	if err != nil {
		return nil, err
	}
	var list []Other
	for _, state := range states {
		var grants session.Grants
		if json.Unmarshal([]byte(state.Labels[engine.LabelGrants]), &grants) != nil || len(grants.GPUs) == 0 {
			continue
		}
		if slices.ContainsFunc(grants.GPUs, func(g gpu.Grant) bool { return g.Share < 0 || g.Memory < 0 }) {
			continue // no agent writes that
		}
		if state.Created && x.config.Clock.Since(state.CreatedAt) > unstarted {
			continue
		}
		list = append(list, Other{State: state, Grants: grants.GPUs})
	}
	x.mu.Lock()
	x.list = list
	x.mu.Unlock()
	return slices.Clone(list), nil
}

// Look looks what others hold where somebody waits for devices. It reports whether others hold any. What cannot be
// asked stays as it was last seen: what is created later is checked again.
func (x *Others) Look(ctx context.Context, live []session.Session) bool {
	waits := slices.ContainsFunc(live, func(s session.Session) bool {
		return s.Status == session.Pending && !s.Spec.Accelerator.IsZero()
	})
	if !waits || !x.config.Health.State().Up {
		return false
	}
	list, err := x.ask(ctx)
	if err != nil {
		_ = x.config.Health.Heed(err) // it is told of where the engine does not answer
		list = x.List()
	}
	return len(list) > 0
}

// Create creates the containers of a session with devices. create does that and returns their ids. It fails with
// engine_create_devices-taken where others hold the devices by now.
func (x *Others) Create(ctx context.Context, s session.Session, create func(context.Context) ([]string, error)) error {
	if x.config.Alone != nil {
		release, err := x.config.Alone(ctx)
		switch {
		case err == nil:
			defer release()
		case ctx.Err() != nil:
			return context.Cause(ctx)
		default:
			x.config.Log.Warn("another program keeps the lock on this machine's devices", "err", err)
			x.mu.Lock()
			x.hogged = x.config.Clock.Now()
			x.mu.Unlock()
		}
	}
	others, err := x.ask(ctx)
	if err != nil {
		return err
	}
	if err := x.fits(s, others); err != nil {
		return err
	}
	containers, err := create(ctx)
	if err != nil {
		return err
	}
	return x.settle(ctx, s, containers)
}

// settle returns nil once what a created launch was granted is its own. Others that came first, or run, keep it. One
// that came later and has not started is waited for: it steps back if it saw ours, but an engine dates a container
// before it lists it, so it may have looked too early, and starts.
func (x *Others) settle(ctx context.Context, s session.Session, containers []string) error {
	others, err := x.ask(ctx)
	if err != nil || len(others) == 0 {
		return err
	}
	first, err := x.firstCreated(ctx, containers)
	if err != nil {
		return err
	}
	for began := time.Now(); ; {
		keep := slices.DeleteFunc(slices.Clone(others),
			func(n Other) bool { return !n.State.Running && !before(n.State, first) })
		if err := x.fits(s, keep); err != nil {
			return err
		}
		taken := x.fits(s, others)
		if taken == nil || time.Since(began) >= yielding {
			return taken
		}
		if err := pace.Wall().Pause(ctx, yieldPause); err != nil {
			return err
		}
		if others, err = x.ask(ctx); err != nil {
			return err
		}
	}
}

// firstCreated is the oldest of a launch's containers.
func (x *Others) firstCreated(ctx context.Context, containers []string) (first engine.State, err error) {
	for _, id := range containers {
		state, err := x.config.Engine.Inspect(ctx, id)
		if err != nil {
			return first, err
		}
		if first.ID == "" || before(state, first) {
			first = state
		}
	}
	return first, nil
}

// before reports whether x came first. Every agent says the same of any two.
func before(x, y engine.State) bool {
	if !x.CreatedAt.Equal(y.CreatedAt) {
		return x.CreatedAt.Before(y.CreatedAt)
	}
	return x.ID < y.ID
}

// fits fails where what a session was granted is others' too.
func (x *Others) fits(s session.Session, others []Other) error {
	if len(others) == 0 {
		return nil
	}
	live, _, err := x.config.Records.Live()
	if err != nil {
		return err
	}
	live = append(slices.DeleteFunc(live, func(l session.Session) bool { return l.ID == s.ID }), s)
	l := New(x.config.Devices.Now(), x.config.Giving, live, others, x.config.Clock.Now())
	if o, taken := l.TakenBy(s.ID); taken {
		return session.NewError(session.CodeDevicesTaken, o.String()+" was given the same device first.",
			"The session waits in line again.")
	}
	return nil
}

// Warning tells of a lock that somebody keeps for too long.
func (x *Others) Warning() (session.Warning, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.hogged.IsZero() || x.config.Clock.Since(x.hogged) > crowdTold {
		return session.Warning{}, false
	}
	return session.Warning{Code: session.CodeLockHeld,
		Title: "Another user's program keeps the lock on this machine's GPUs",
		Text: "Sessions start all the same: what others hold is checked again after each start. A start may take " +
			"longer or be tried twice.", At: x.hogged}, true
}

// Other is a container of another agent that holds devices.
type Other struct {
	engine.State
	Grants []gpu.Grant
}

// Holder names it in ledgers. No session has such an id.
func (o Other) Holder() session.ID { return session.ID("other-" + o.ID) }

// Since is when it began to run, nil where it has not.
func (o Other) Since() *time.Time {
	if o.StartedAt.IsZero() {
		return nil
	}
	return &o.StartedAt
}

// String says whose it is.
func (o Other) String() string {
	return fmt.Sprintf("%s (of %s, another Slipway)", label(o.State, engine.LabelName, "a session"),
		label(o.State, engine.LabelOwner, "somebody"))
}

// label is a label that another program wrote, fit to be shown.
func label(state engine.State, name, otherwise string) string {
	const most = 64
	text := state.Labels[name]
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most])
	}
	if text == "" || !session.IsPrintable(text) {
		return otherwise
	}
	return text
}

// On is what it holds of a device.
func (o Other) On(view gpu.View) (holder session.DeviceHolder, held bool) {
	holder = session.DeviceHolder{Name: o.String(), Owner: label(o.State, engine.LabelOwner, "")}
	for _, holding := range view.Holdings {
		if holding.Holder == string(o.Holder()) {
			held = true
			holder.Share += holding.Grant.Share
			holder.Promised += holding.Grant.Memory
		}
	}
	return holder, held
}
