package launch

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"slipway/backend/agent/host"
	"slipway/backend/engine"
	"slipway/backend/pace"
	"slipway/backend/scheduler"
	"slipway/backend/session"
	"slipway/backend/store"
)

// leftovers are containers that no session needs: those that could not be removed, and those without a record.
type leftovers struct {
	host host.Host

	ends atomic.Uint64 // counts ends that left something behind

	mu     sync.Mutex           // guards everything below
	strays map[string]time.Time // containers without a record, by id, since when
	held   map[string]held      // what containers use that no session needs
}

// held is what a container still uses that no session needs. It is not allocated to anybody.
type held struct {
	promise scheduler.Promise
	number  uint64 // of the end that left it behind, 0 if a comparison found it
}

// remove removes containers that no session needs and returns those that stay, for the next comparison.
func (l *leftovers) remove(ctx context.Context, states []engine.State) (left []engine.State) {
	return l.each(ctx, states, "remove", l.host.Limits.Call, l.host.Engine.Remove)
}

// halt stops containers that ended sessions keep, and returns those that still run.
func (l *leftovers) halt(ctx context.Context, states []engine.State) (left []engine.State) {
	return l.each(ctx, states, "stop", l.host.Limits.Call+l.host.Limits.Grace,
		func(ctx context.Context, id string) error { return l.host.Engine.Stop(ctx, id, l.host.Limits.Grace) })
}

func (l *leftovers) each(ctx context.Context, states []engine.State, what string, limit time.Duration,
	do func(ctx context.Context, id string) error) (left []engine.State) {
	for _, state := range states {
		err := engine.Within(ctx, limit, what, func(ctx context.Context) error { return do(ctx, state.ID) })
		if err != nil {
			l.host.Log.Warn("a container that no session needs stays", "container", state.Name, "call", what,
				"err", err)
			left = append(left, state)
			continue
		}
		l.host.Log.Info("removed a container without a session", "container", state.Name, "call", what)
	}
	return left
}

// set stores what a comparison, which began at since, could not remove, and drops strays that are not unknown.
func (l *leftovers) set(since uint64, unknown map[string]bool, states []engine.State) {
	left := map[string]held{}
	for _, state := range states {
		p := scheduler.Promise{Session: session.ID("left-" + state.ID), Name: state.Name + " (left behind)",
			Owner: state.Labels[engine.LabelOwner]}
		if state.Running && json.Unmarshal([]byte(state.Labels[engine.LabelGrants]), &p.Grants) == nil {
			left[state.ID] = held{promise: p}
		}
	}
	l.mu.Lock()
	maps.DeleteFunc(l.strays, func(id string, _ time.Time) bool { return !unknown[id] })
	for key, h := range l.held {
		if h.number > since {
			left[key] = h
		}
	}
	fewer := len(left) < len(l.held)
	l.held = left
	l.mu.Unlock()
	if fewer {
		l.host.PlanAgain()
	}
}

// leaveBehind notes that the containers of a session could not be removed, until the next comparison.
func (l *leftovers) leaveBehind(s session.Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[string(s.ID)] = held{number: l.ends.Add(1), promise: scheduler.Promise{Session: "left-" + s.ID,
		Name: s.Name + " (left behind)", Owner: s.Owner, Grants: s.Grants}}
}

// Left is what containers use that no session needs.
func (r *Runner) Left() (list []scheduler.Promise) {
	l := r.leftovers
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(l.held)) {
		list = append(list, l.held[key].promise)
	}
	return list
}

// stray handles a container of this agent without a record: a running one of a session is adopted from its labels,
// another is kept for a while. It reports whether to keep it. family are all containers of the session.
func (l *leftovers) stray(state engine.State, family []engine.State) (keep bool, err error) {
	if state.Running {
		if s, ok := adopted(state, family, l.host.Clock.Now()); ok {
			return true, l.adopt(s)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	since, seen := l.strays[state.ID]
	if !seen {
		l.strays[state.ID] = l.host.Clock.Now()
		return true, nil
	}
	return l.host.Clock.Since(since) < l.host.Limits.Stray, nil
}

// adopted makes a record from the labels of a session's running containers of one attempt. It reports false if they are
// not those of a session.
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
		total = total.Plus(k.Grants)
	}
	started := state.StartedAt.UTC()
	adopted := session.Warning{Code: session.CodeAdopted, Title: "Adopted without a record",
		Text: "Slipway had lost the record of this session and took it up again from its containers; what it was " +
			"launched with is known only in part.", At: now.UTC()}
	s := session.Session{
		ID: session.ID(labels[engine.LabelSession]), Name: labels[engine.LabelName], Owner: labels[engine.LabelOwner],
		Agent:      labels[engine.LabelAgent],
		Resolved:   session.Resolved{Priority: session.DefaultPriority},
		Status:     session.Running,
		Progress:   session.Progress{Attempt: attempt, Warnings: []session.Warning{adopted}},
		Allocation: session.Allocation{Grants: total, Kernels: kernels},
		End:        session.End{Result: session.ResultUndefined},
		Spec: session.Spec{
			Type: session.Interactive, Name: labels[engine.LabelName],
			Resources: session.Resources{CPU: len(kernels[0].Grants.CPUs), Memory: kernels[0].Grants.Memory},
		},
		CreatedAt: started, Times: session.Times{ScheduledAt: &started, StartedAt: &started},
	}
	if len(kernels) > 1 {
		s.Spec.Cluster = len(kernels)
	}
	var folders []session.FolderMount
	// Else it has none, or an older version made it.
	if json.Unmarshal([]byte(labels[engine.LabelFolders]), &folders) == nil {
		s.Folders = folders
	}
	return s, true
}

func (l *leftovers) adopt(s session.Session) error {
	err := l.host.Records.Update(func(tx *store.Tx) error {
		err := tx.Create(&s, "")
		if session.CodeOf(err) == session.CodeNameTaken {
			s.Name = "adopted-" + string(s.ID)
			err = tx.Create(&s, "")
		}
		return err
	})
	if err != nil {
		return err
	}
	l.host.Log.Info("adopted a running session without a record", "session", s.ID, "name", s.Name)
	l.host.Records.Tell([]session.Session{s})
	return nil
}

// ContainerChanged passes a change of a container on to its session.
func (r *Runner) ContainerChanged(state engine.State) {
	if c := r.courseOf(session.ID(state.Labels[engine.LabelSession])); c != nil && !state.Running {
		pace.Signal(c.poke)
	}
}

// Reconcile compares the engine's containers with the records: it starts missing courses of placed sessions, has those
// look whose container does not run, removes what no session needs and adopts what has no record. It can be repeated.
func (r *Runner) Reconcile(ctx context.Context) error {
	since := r.leftovers.ends.Load()
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
	r.leftovers.set(since, unknown, append(r.leftovers.remove(ctx, remove), r.leftovers.halt(ctx, halt)...))
	if err := r.networks.sweep(ctx); err != nil {
		return err
	}
	return r.resume(ctx, running)
}

// resume starts the courses of placed sessions, and signals those of which a container does not run.
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

// needed reports whether a session has this container now, rather than had it at an earlier attempt or before its end.
func needed(s session.Session, state engine.State) bool {
	return s.Status.HoldsResources() && state.Labels[engine.LabelAttempt] == strconv.Itoa(s.Attempt)
}
