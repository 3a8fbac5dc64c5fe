package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"slipway/backend/engine"
	"slipway/backend/pace"
	"slipway/backend/session"
	"slipway/gpu"
)

// Several agents may share one machine: those of several people, or two of one
// person. Each sees what the others' containers hold by their labels, which the
// engine keeps for all of them, so no agent needs to know another:
//
//   - a plan counts what others hold;
//   - while containers with devices are created, a lock of the machine is held
//     and what others hold is looked at anew, since a pull may have taken hours;
//   - when they are there, it is looked at once more: of two that were created
//     for the same share, which needs somebody who ignores or hogs the lock, the
//     later one steps back, and the first starts once it has. So no lock is
//     trusted with the promise that two sessions never get the same.

const (
	// codeTaken says that what a session was to get is another agent's by now.
	codeTaken = session.Code("engine_create_devices-taken")
	// lookAgain is how soon others are looked at again while somebody waits.
	lookAgain = 5 * time.Second
	// unstarted is how long a container of others counts that was created and is
	// not started: an agent that died in between leaves one for ever.
	unstarted = 15 * time.Minute
	// yielding is how long the later one is given to step back or to start.
	yielding = 10 * time.Second
	// yieldPause is between two looks at whether it did.
	yieldPause = 100 * time.Millisecond
	// crowdTold is how long people are told that the lock was kept from us.
	crowdTold = 10 * time.Minute
)

// neighbours is what other agents hold, as last seen.
type neighbours struct {
	mu     sync.Mutex // guards everything below
	list   []neighbour
	hogged time.Time // when the lock could not be had; zero: never
}

// neighbour is a container of another agent that holds devices.
type neighbour struct {
	state  engine.State
	grants []gpu.Grant
}

// holder names a neighbour in ledgers. No session has such an id.
func (n neighbour) holder() session.ID { return session.ID("other-" + n.state.ID) }

// since is when it began to run, nil where it has not.
func (n neighbour) since() *time.Time {
	if n.state.StartedAt.IsZero() {
		return nil
	}
	return &n.state.StartedAt
}

// String says whose it is.
func (n neighbour) String() string {
	return fmt.Sprintf("%s (of %s, another Slipway)", label(n.state, engine.LabelName, "a session"),
		label(n.state, engine.LabelOwner, "somebody"))
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

// on is what a neighbour holds of a device.
func (n neighbour) on(view gpu.View) (holder session.DeviceHolder, held bool) {
	holder = session.DeviceHolder{Name: n.String(), Owner: label(n.state, engine.LabelOwner, "")}
	for _, holding := range view.Holdings {
		if holding.Holder == string(n.holder()) {
			held = true
			holder.Share += holding.Grant.Share
			holder.Promised += holding.Grant.Memory
		}
	}
	return holder, held
}

func (a *Agent) neighbours() []neighbour {
	a.around.mu.Lock()
	defer a.around.mu.Unlock()
	return slices.Clone(a.around.list)
}

// askOthers asks what other agents hold now, and remembers it.
func (a *Agent) askOthers(ctx context.Context) ([]neighbour, error) {
	var states []engine.State
	err := engine.Within(ctx, a.limits.Call, "list", func(ctx context.Context) (err error) {
		states, err = a.engine.Others(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	var list []neighbour
	for _, state := range states {
		var grants session.Grants
		if json.Unmarshal([]byte(state.Labels[engine.LabelGrants]), &grants) != nil || len(grants.GPUs) == 0 {
			continue
		}
		if slices.ContainsFunc(grants.GPUs, func(g gpu.Grant) bool { return g.Share < 0 || g.Memory < 0 }) {
			continue // no agent writes that
		}
		if state.Created && a.clock.Since(state.CreatedAt) > unstarted {
			continue
		}
		list = append(list, neighbour{state: state, grants: grants.GPUs})
	}
	a.around.mu.Lock()
	a.around.list = list
	a.around.mu.Unlock()
	return slices.Clone(list), nil
}

// lookAround looks what others hold where somebody waits for devices. It reports
// whether others hold any. What cannot be asked stays as it was last seen: what
// is created later is checked again.
func (a *Agent) lookAround(ctx context.Context, live []session.Session) bool {
	waits := slices.ContainsFunc(live, func(s session.Session) bool {
		return s.Status == session.Pending && !s.Spec.Accelerator.IsZero()
	})
	if !waits || !a.health.State().Up {
		return false
	}
	list, err := a.askOthers(ctx)
	if err != nil {
		_ = a.heed(err) // it is told of where the engine does not answer
		list = a.neighbours()
	}
	return len(list) > 0
}

// createAmongOthers creates the containers of a session with devices. It fails
// with engine_create_devices-taken where others hold them by now.
func (a *Agent) createAmongOthers(ctx context.Context, s session.Session,
	create func(context.Context) (containers []string, err error)) error {
	if a.config.Alone != nil {
		release, err := a.config.Alone(ctx)
		switch {
		case err == nil:
			defer release()
		case ctx.Err() != nil:
			return context.Cause(ctx)
		default:
			a.log.Warn("another program keeps the lock on this machine's devices", "err", err)
			a.around.mu.Lock()
			a.around.hogged = a.clock.Now()
			a.around.mu.Unlock()
		}
	}
	others, err := a.askOthers(ctx)
	if err != nil {
		return err
	}
	if err := a.fitsBeside(s, others); err != nil {
		return err
	}
	containers, err := create(ctx)
	if err != nil {
		return err
	}
	return a.settle(ctx, s, containers)
}

// settle returns nil once what a created launch was granted is its own. Others
// that came first, or run, keep it. One that came later and has not started is
// waited for: it steps back if it saw ours, but an engine dates a container
// before it lists it, so it may have looked too early, and starts.
func (a *Agent) settle(ctx context.Context, s session.Session, containers []string) error {
	others, err := a.askOthers(ctx)
	if err != nil || len(others) == 0 {
		return err
	}
	first, err := a.firstCreated(ctx, containers)
	if err != nil {
		return err
	}
	for began := time.Now(); ; {
		keep := slices.DeleteFunc(slices.Clone(others), func(n neighbour) bool {
			return !n.state.Running &&
				!before(n.state, first)
		})
		if err := a.fitsBeside(s, keep); err != nil {
			return err
		}
		taken := a.fitsBeside(s, others)
		if taken == nil || time.Since(began) >= yielding {
			return taken
		}
		if err := pace.Wall().Pause(ctx, yieldPause); err != nil {
			return err
		}
		if others, err = a.askOthers(ctx); err != nil {
			return err
		}
	}
}

// firstCreated is the oldest of a launch's containers.
func (a *Agent) firstCreated(ctx context.Context, containers []string) (first engine.State, err error) {
	for _, id := range containers {
		state, err := a.engine.Inspect(ctx, id)
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

// fitsBeside checks that nothing that a session was granted is others' too, be
// it all of a device, an instance, or more shares or memory than there is.
func (a *Agent) fitsBeside(s session.Session, others []neighbour) error {
	if len(others) == 0 {
		return nil
	}
	live, _, err := a.store.Live()
	if err != nil {
		return err
	}
	grants := map[string][]gpu.Grant{string(s.ID): s.Grants.GPUs}
	for _, other := range live {
		if other.ID != s.ID && other.Status.HoldsResources() && len(other.Grants.GPUs) > 0 {
			grants[string(other.ID)] = other.Grants.GPUs
		}
	}
	for _, n := range others {
		grants[string(n.holder())] = n.grants
	}
	for _, view := range gpu.Restore(a.devices.now().Devices, a.config.Giving, grants).Free() {
		mine := slices.ContainsFunc(view.Holdings, func(h gpu.Holding) bool { return h.Holder == string(s.ID) })
		if view.Over == "" || !mine {
			continue
		}
		for _, n := range others {
			if _, held := n.on(view); held {
				return &session.Error{Code: codeTaken, Message: n.String() + " was given the same device first.",
					Hint: "The session waits in line again."}
			}
		}
	}
	return nil
}

// crowdWarning tells of a lock that somebody keeps for too long.
func (a *Agent) crowdWarning() (session.Warning, bool) {
	a.around.mu.Lock()
	defer a.around.mu.Unlock()
	if a.around.hogged.IsZero() || a.clock.Since(a.around.hogged) > crowdTold {
		return session.Warning{}, false
	}
	return session.Warning{Code: "agent_devices_lock-held",
		Title: "Another user's program keeps the lock on this machine's GPUs",
		Text: "Sessions start all the same: what others hold is checked again after each start. A start may take " +
			"longer or be tried twice.", At: a.around.hogged}, true
}
