package launch

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"slipway/backend/engine"
	"slipway/backend/scheduler"
	"slipway/backend/session"
	"slipway/backend/store"
)

// ContainerChanged passes a change of a container on to its session.
func (r *Runner) ContainerChanged(state engine.State) {
	if c := r.courseOf(session.ID(state.Labels[engine.LabelSession])); c != nil && !state.Running {
		signal(c.poke)
	}
}

// Reconcile compares the engine's containers with the records: it starts a
// course for every placed session that has none, makes those look whose
// container is not running, removes what no session needs and adopts what no
// record knows. Doing it again does no harm.
func (r *Runner) Reconcile(ctx context.Context) error {
	since := r.leftSince()
	var states []engine.State
	err := engine.Within(ctx, r.config.Limits.Call, "list", func(ctx context.Context) (err error) {
		states, err = r.config.Engine.List(ctx)
		return err
	})
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
		case session.CodeOf(err) == store.CodeNotFound:
			unknown[state.ID] = true
			if keep, err := r.stray(state, family[id]); err != nil {
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
	r.forgetStrays(unknown)
	r.setLeft(since, append(r.removeStates(ctx, remove), r.haltStates(ctx, halt)...))
	if err := r.config.Networks.Sweep(ctx); err != nil {
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
			signal(c.poke)
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

// removeStates removes containers that no session needs and returns those that
// it could not remove. They are tried again at the next comparison.
func (r *Runner) removeStates(ctx context.Context, states []engine.State) (left []engine.State) {
	for _, state := range states {
		err := engine.Within(ctx, r.config.Limits.Call, "remove",
			func(ctx context.Context) error { return r.config.Engine.Remove(ctx, state.ID) })
		if err != nil {
			r.config.Log.Warn("a container that no session needs could not be removed", "container", state.Name,
				"err", err)
			left = append(left, state)
			continue
		}
		r.config.Log.Info("removed a container that no session needs", "container", state.Name)
	}
	return left
}

// haltStates stops containers that ended sessions keep, and returns those that
// run on.
func (r *Runner) haltStates(ctx context.Context, states []engine.State) (left []engine.State) {
	for _, state := range states {
		err := engine.Within(ctx, r.config.Limits.Call+r.config.Limits.Grace, "stop",
			func(ctx context.Context) error { return r.config.Engine.Stop(ctx, state.ID, r.config.Limits.Grace) })
		if err != nil {
			r.config.Log.Warn("a container that is kept could not be stopped", "container", state.Name, "err", err)
			left = append(left, state)
		}
	}
	return left
}

// held is what a container goes on using that no session needs and that could
// not be removed. Nobody else is given that.
type held struct {
	promise scheduler.Promise
	number  uint64 // of the end that left it behind, 0 where a comparison found it
}

// leftSince returns the number of the last end that left something behind.
func (r *Runner) leftSince() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.leftEnds
}

// setLeft takes note of what a comparison could not remove. What was left behind
// after the comparison began, at since, is not known to it and stays.
func (r *Runner) setLeft(since uint64, states []engine.State) {
	left := map[string]held{}
	for _, state := range states {
		p := scheduler.Promise{Session: session.ID("left-" + state.ID), Name: state.Name + " (left behind)",
			Owner: state.Labels[engine.LabelOwner]}
		if state.Running && json.Unmarshal([]byte(state.Labels[engine.LabelGrants]), &p.Grants) == nil {
			left[state.ID] = held{promise: p}
		}
	}
	r.mu.Lock()
	for key, h := range r.left {
		if h.number > since {
			left[key] = h
		}
	}
	fewer := len(left) < len(r.left)
	r.left = left
	r.mu.Unlock()
	if fewer {
		r.config.Machine.PlanAgain()
	}
}

// leaveBehind takes note that a session ends whose containers could not be
// removed, until the next comparison tells which of them run.
func (r *Runner) leaveBehind(s session.Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leftEnds++
	r.left[string(s.ID)] = held{number: r.leftEnds, promise: scheduler.Promise{Session: "left-" + s.ID,
		Name: s.Name + " (left behind)", Owner: s.Owner, Grants: s.Grants}}
}

// Left is what containers hold that no session needs.
func (r *Runner) Left() []scheduler.Promise {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []scheduler.Promise
	for _, key := range slices.Sorted(maps.Keys(r.left)) {
		list = append(list, r.left[key].promise)
	}
	return list
}

// stray deals with a container of ours that no record knows: running ones of a
// session are adopted from their labels, others are kept for a while and then
// removed. It reports whether it is to be kept. family is all containers of the
// same session.
func (r *Runner) stray(state engine.State, family []engine.State) (keep bool, err error) {
	if state.Running {
		if s, ok := adopted(state, family, r.config.Clock.Now()); ok {
			return true, r.adopt(s)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	since, seen := r.strays[state.ID]
	if !seen {
		r.strays[state.ID] = r.config.Clock.Now()
		return true, nil
	}
	return r.config.Clock.Since(since) < r.config.Limits.Stray, nil
}

func (r *Runner) forgetStrays(unknown map[string]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.strays {
		if !unknown[id] {
			delete(r.strays, id)
		}
	}
}

// adopted makes a record from the labels of a running container and of those of
// the same session and attempt that run too. It reports false where the labels
// are not those of a session.
func adopted(state engine.State, family []engine.State, now time.Time) (session.Session, bool) {
	labels := state.Labels
	attempt, err := strconv.Atoi(labels[engine.LabelAttempt])
	if err != nil || !session.ValidID(labels[engine.LabelSession]) {
		return session.Session{}, false
	}
	var kernels []session.Kernel
	for _, other := range family {
		if !other.Running || other.Labels[engine.LabelAttempt] != labels[engine.LabelAttempt] {
			continue
		}
		k := session.Kernel{Name: kernelOf(other), Hostname: kernelOf(other), Container: other.ID,
			Status: session.Running}
		if json.Unmarshal([]byte(other.Labels[engine.LabelGrants]), &k.Grants) != nil {
			return session.Session{}, false
		}
		kernels = append(kernels, k)
	}
	slices.SortFunc(kernels, func(x, y session.Kernel) int { // main1, sub1, sub2 …
		return cmp.Or(cmp.Compare(x.Name[0], y.Name[0]), cmp.Compare(len(x.Name), len(y.Name)),
			cmp.Compare(x.Name, y.Name))
	})
	var total session.Grants
	for _, k := range kernels {
		total.CPUs, total.GPUs = append(total.CPUs, k.Grants.CPUs...), append(total.GPUs, k.Grants.GPUs...)
		total.Memory += k.Grants.Memory
	}
	started := state.StartedAt.UTC()
	s := session.Session{
		ID: session.ID(labels[engine.LabelSession]), Name: labels[engine.LabelName], Owner: labels[engine.LabelOwner],
		Agent:   labels[engine.LabelAgent],
		SpecKey: labels[engine.LabelSpec], Status: session.Running, Result: session.ResultUndefined, Grants: total,
		Attempt: attempt, Priority: session.DefaultPriority,
		Spec: session.Spec{
			Type: session.Interactive, Name: labels[engine.LabelName],
			Resources: session.Resources{CPU: len(kernels[0].Grants.CPUs), Memory: kernels[0].Grants.Memory},
		},
		Kernels:   kernels,
		CreatedAt: started, ScheduledAt: &started, StartedAt: &started,
		Warnings: []session.Warning{{Code: "session_adopt_no-record", Title: "Adopted without a record",
			Text: "Slipway had lost the record of this session and took it up again from its containers; what it was " +
				"launched with is known only in part.", At: now.UTC()}},
	}
	if len(kernels) > 1 {
		s.Spec.Cluster = len(kernels)
	}
	var folders []session.FolderMount
	// else it has none, or an older version made it
	if json.Unmarshal([]byte(labels[engine.LabelFolders]), &folders) == nil {
		s.Folders = folders
	}
	return s, true
}

func (r *Runner) adopt(s session.Session) error {
	err := r.config.Records.Update(func(tx *store.Tx) error {
		err := tx.Create(&s, "")
		if session.CodeOf(err) == store.CodeNameTaken {
			s.Name = "adopted-" + string(s.ID)
			err = tx.Create(&s, "")
		}
		return err
	})
	if err != nil {
		return err
	}
	r.config.Log.Info("adopted a running session without a record", "session", s.ID, "name", s.Name)
	r.config.Records.Tell([]session.Session{s})
	return nil
}
