package launch

import (
	"context"
	"strconv"

	"slipway/backend/engine"
	"slipway/backend/pace"
	"slipway/backend/session"
)

// ContainerChanged passes a change of a container on to its session.
func (r *Runner) ContainerChanged(state engine.State) {
	if c := r.courseOf(session.ID(state.Labels[engine.LabelSession])); c != nil && !state.Running {
		pace.Signal(c.poke)
	}
}

// Reconcile compares the engine's containers with the records: it starts a
// course for every placed session that has none, makes those look whose
// container is not running, removes what no session needs and adopts what no
// record knows. Doing it again does no harm.
func (r *Runner) Reconcile(ctx context.Context) error {
	since := r.leftovers.since()
	states, err := engine.Ask(ctx, r.config.Limits.Call, "list", r.config.Engine.List)
	if err != nil {
		return err
	}
	running := map[session.ID]int{}
	var remove, halt []engine.State
	unknown := map[string]bool{}
	family := map[session.ID][]engine.State{}
	for _, state := range states {
		id := session.ID(state.Labels[engine.LabelSession])
		family[id] = append(family[id], state)
	}
	for _, state := range states {
		id := session.ID(state.Labels[engine.LabelSession])
		s, err := r.config.Records.Get(id)
		switch {
		case session.CodeOf(err) == session.CodeSessionNotFound:
			unknown[state.ID] = true
			if keep, err := r.leftovers.stray(state, family[id]); err != nil {
				return err
			} else if !keep {
				remove = append(remove, state)
			}
		case err != nil:
			return err
		case needed(s, state):
			if state.Running {
				running[id]++
			}
		case s.KeepsContainer() && state.ID == s.Container():
			if state.Running {
				halt = append(halt, state)
			}
		default:
			remove = append(remove, state)
		}
	}
	r.leftovers.forgetStrays(unknown)
	r.leftovers.set(since, append(r.leftovers.remove(ctx, remove), r.leftovers.halt(ctx, halt)...))
	if err := r.networks.sweep(ctx); err != nil {
		return err
	}
	return r.resume(ctx, running)
}

// resume starts the courses of placed sessions, and pokes those of which a
// container does not run.
func (r *Runner) resume(ctx context.Context, running map[session.ID]int) error {
	live, _, err := r.config.Records.Live()
	if err != nil {
		return err
	}
	for _, s := range live {
		if s.Status == session.Pending {
			continue
		}
		c := r.courseOf(s.ID)
		if c == nil {
			r.Start(ctx, s.ID)
		} else if s.Status == session.Running && running[s.ID] < len(s.Kernels) {
			pace.Signal(c.poke)
		}
	}
	return nil
}

// needed reports whether a container is the one that its session has now. One
// of an ended session, of one that is back in the queue, or of an earlier
// attempt is not.
func needed(s session.Session, state engine.State) bool {
	return s.Status.HoldsResources() && state.Labels[engine.LabelAttempt] == strconv.Itoa(s.Attempt)
}
