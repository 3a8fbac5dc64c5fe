package docker

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"

	"slipway/backend/engine"
	"slipway/backend/engine/docker/daemon"
	"slipway/backend/session"
)

// List returns our containers, running or not. The first List also removes what removed containers left behind.
func (e *Engine) List(ctx context.Context) ([]engine.State, error) {
	ctx, cancel := e.daemon.Brief(ctx)
	defer cancel()
	began := time.Now()
	found, err := e.daemon.API.ContainerList(ctx, container.ListOptions{All: true, Filters: e.mine()})
	if err != nil {
		return nil, daemon.Failure(ctx, err)
	}
	states, err := e.inspectAll(ctx, found)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	sweep := !e.swept
	e.swept, e.listedAt = true, began
	e.mu.Unlock()
	all := slices.Clone(states)
	states = slices.DeleteFunc(states, func(s engine.State) bool { return !e.isMine(s) })
	if sweep {
		e.reservations.sweep(ctx, all)
		e.sweep(ctx, states)
		e.DropUnnamed(ctx)
	}
	return states, nil
}

func (e *Engine) Others(ctx context.Context) ([]engine.State, error) {
	ctx, cancel := e.daemon.Brief(ctx)
	defer cancel()
	facts, err := e.daemon.Facts(ctx)
	if err != nil {
		return nil, err
	}
	selection := filters.NewArgs(filters.Arg("label", engine.LabelInstance), filters.Arg("label", engine.LabelGrants))
	states := []container.ContainerState{container.StateCreated, container.StateRunning, container.StatePaused}
	if !facts.Podman { // which refuses words that it does not know
		states = append(states, container.StateRestarting)
	}
	for _, status := range states {
		selection.Add("status", status)
	}
	found, err := e.daemon.API.ContainerList(ctx, container.ListOptions{All: true, Filters: selection})
	if err != nil {
		return nil, daemon.Failure(ctx, err)
	}
	found = slices.DeleteFunc(found, func(c container.Summary) bool {
		return c.Labels[engine.LabelInstance] == e.config.Instance || !strings.Contains(c.Labels[engine.LabelGrants],
			`"gpus"`)
	})
	others, err := e.inspectAll(ctx, found)
	return slices.DeleteFunc(others, func(s engine.State) bool { return s.Labels[engine.LabelInstance] == "" }), err
}

// isMine reports whether this agent made a container for a session; others may have our label too, see [labelsOf].
func (e *Engine) isMine(s engine.State) bool {
	return s.Labels[engine.LabelInstance] == e.config.Instance && !e.reservations.has(s.Name)
}

func (e *Engine) mine() filters.Args {
	return filters.NewArgs(filters.Arg("label", engine.LabelInstance+"="+e.config.Instance))
}

// inspectAll inspects containers and leaves out those that no longer exist.
func (e *Engine) inspectAll(ctx context.Context, found []container.Summary) ([]engine.State, error) {
	return daemon.Each(found, daemon.IsGone, func(c container.Summary) (engine.State, error) {
		return e.Inspect(ctx, c.ID)
	})
}

// sweep removes files and volumes of removed containers, left by a killed process, but none in use here.
func (e *Engine) sweep(ctx context.Context, states []engine.State) {
	used := map[string]bool{}
	for _, s := range states {
		used[s.Name], used[homeVolume(s.Labels)] = true, true
	}
	warn := func(what string, err error) {
		if err != nil {
			e.daemon.Log.Warn(what, "error", err)
		}
	}
	facts, err := e.daemon.Facts(ctx)
	if err != nil {
		warn("old containers' files stay", err)
		return
	}
	names, err := e.kernels.names(facts.ID)
	warn("old containers' files stay", err)
	for _, name := range names {
		if !used[name] {
			warn("an old container's files stay", e.kernels.sweep(name))
		}
	}
	// Docker refuses to remove a volume that a new container uses.
	warn("old volumes stay", e.removeVolumes(ctx, engine.LabelInstance+"="+e.config.Instance, used))
	warn("old trials stay", e.SweepTrials(ctx))
	warn("old networks stay", e.SweepNetworks(ctx, states))
}

func (e *Engine) Inspect(ctx context.Context, id string) (engine.State, error) {
	ctx, cancel := e.daemon.Brief(ctx)
	defer cancel()
	c, err := e.daemon.API.ContainerInspect(ctx, id)
	if err != nil {
		return engine.State{}, daemon.ContainerFailure(ctx, id, err)
	}
	s := stateOf(c)
	if s.Labels[engine.LabelInstance] != e.config.Instance {
		return s, nil
	}
	if taken := e.kernels.labels(s.Name); taken != nil {
		s.Labels = taken
	}
	return s, nil
}

func stateOf(c container.InspectResponse) engine.State {
	s := engine.State{ID: c.ID, Name: strings.TrimPrefix(c.Name, "/")}
	if c.Config != nil {
		s.Labels = labelsOf(s.Name, c.Config.Labels)
	}
	if c.State == nil {
		return s
	}
	s.Running = c.State.Running
	s.Created = c.State.Status == container.StateCreated
	s.OOMKilled = c.State.OOMKilled
	s.Error = c.State.Error
	s.CreatedAt = stateTime(c.Created)
	s.StartedAt, s.FinishedAt = stateTime(c.State.StartedAt), stateTime(c.State.FinishedAt)
	if !s.Running && !s.Created {
		s.ExitCode = c.State.ExitCode
	}
	return s
}

// stateTime reads Docker's time, which has the year 1 for never.
func stateTime(text string) time.Time {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || at.Year() < 1970 {
		return time.Time{}
	}
	return at
}

// watched are the events that change an [engine.State].
var watched = []events.Action{events.ActionCreate, events.ActionStart, events.ActionDie, events.ActionOOM,
	events.ActionDestroy, events.ActionRename}

// Watch calls fn for each container of ours that changes, from shortly before the last List, so that a caller that
// lists and then watches misses nothing. A removed container is reported once more, as Gone.
func (e *Engine) Watch(ctx context.Context, fn func(engine.State)) error {
	// Events uses the API version before the client has negotiated it, unless a call was answered already.
	if _, err := e.daemon.Facts(ctx); err != nil {
		return err
	}
	selection := e.mine()
	selection.Add("type", string(events.ContainerEventType))
	for _, action := range watched {
		selection.Add("event", string(action))
	}
	e.mu.Lock()
	since := e.listedAt
	e.mu.Unlock()
	options := events.ListOptions{Filters: selection}
	if !since.IsZero() && time.Since(since) < time.Minute {
		options.Since = since.Add(-2 * time.Second).Format(time.RFC3339Nano) // so that it misses nothing
	}
	listening, stop := context.WithCancel(ctx)
	defer stop()
	messages, errs := e.daemon.API.Events(listening, options)
	for {
		select {
		case message := <-messages:
			state, err := e.changed(ctx, message)
			if err != nil {
				return err
			}
			if e.isMine(state) {
				fn(state)
			}
		case err := <-errs:
			if err == nil && ctx.Err() == nil {
				err = session.AsError(daemon.Unavailable(context.Canceled), session.CodeEngineUnavailable)
			}
			return daemon.Failure(ctx, cmp.Or(err, ctx.Err()))
		}
	}
}

func (e *Engine) changed(ctx context.Context, message events.Message) (engine.State, error) {
	id := message.Actor.ID
	state, err := e.Inspect(ctx, id)
	if daemon.IsGone(err) {
		name := message.Actor.Attributes["name"]
		return engine.State{ID: id, Name: name, Labels: labelsOf(name, message.Actor.Attributes), Gone: true}, nil
	}
	return state, err
}
