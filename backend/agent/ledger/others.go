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

// Several agents may share one machine. Each sees what the others' containers hold by their labels, so no agent needs
// to know another:
//
//   - a plan counts what others hold;
//   - while containers with devices are created, the agent holds a lock of the machine and reads again what others
// hold, since a pull may have taken hours;
//   - afterwards it reads that once more. Of two containers created for the same share, which takes a program that
// ignores or keeps the lock, the later one steps back and the first waits for that. So a share is never allocated twice
// even if the lock fails.

const (
	// LookAgain is the pause between two looks at others while a session waits.
	LookAgain  = 5 * time.Second
	unstarted  = 15 * time.Minute       // for how long a container of others counts that is not started
	yielding   = 10 * time.Second       // within which the later one steps back or starts
	yieldPause = 100 * time.Millisecond // between two looks whether it did
	crowdTold  = 10 * time.Minute       // for how long a lock that could not be acquired is reported
)

// Config configures Others.
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
	hogged time.Time // when the lock could not be acquired; zero: never
}

// NewOthers returns others of which nothing is known yet.
func NewOthers(config Config) *Others { return &Others{config: config} }

func (x *Others) List() []Other {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.list)
}

// ask reads what other agents hold now, and stores it.
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

// Look reads what others hold if a session waits for devices, and reports whether they hold any as far as known.
func (x *Others) Look(ctx context.Context, live []session.Session) bool {
	waits := slices.ContainsFunc(live, func(s session.Session) bool {
		return s.Status == session.Pending && !s.Spec.Accelerator.IsZero()
	})
	if !waits || !x.config.Health.State().Up {
		return false
	}
	list, err := x.ask(ctx)
	if err != nil {
		_ = x.config.Health.Heed(err) // which publishes that the engine does not answer
		list = x.List()
	}
	return len(list) > 0
}

// Create creates the containers of a session with devices by calling create, which returns their ids. It fails with
// engine_create_devices-taken if others hold the devices by now.
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

// settle returns nil once no other agent holds what a created session was granted. Others that came first, or run, keep
// it. It waits for one that came later and has not started: that steps back if it saw ours, but an engine dates a
// container before it lists it, so it may have looked too early, and starts.
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

// before reports whether x came first. All agents agree on that.
func before(x, y engine.State) bool {
	if !x.CreatedAt.Equal(y.CreatedAt) {
		return x.CreatedAt.Before(y.CreatedAt)
	}
	return x.ID < y.ID
}

// fits fails if others hold what a session was granted.
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

// Holder is its name in ledgers. No session has such an id.
func (o Other) Holder() session.ID { return session.ID("other-" + o.ID) }

// Since returns when it started, nil if it has not.
func (o Other) Since() *time.Time {
	if o.StartedAt.IsZero() {
		return nil
	}
	return &o.StartedAt
}

func (o Other) String() string {
	return fmt.Sprintf("%s (of %s, another Slipway)", label(o.State, engine.LabelName, "a session"),
		label(o.State, engine.LabelOwner, "somebody"))
}

// label is a label that another program wrote, if it can be displayed.
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
	held = addHoldings(&holder, view, string(o.Holder()))
	return holder, held
}
