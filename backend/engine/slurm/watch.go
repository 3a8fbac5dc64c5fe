package slurm

import (
	"context"
	"maps"
	"reflect"

	"slipway/backend/engine"
)

// List returns our containers, running or not. It does not ask Slurm, of which it has the last answer.
func (e *Engine) List(ctx context.Context) ([]engine.State, error) {
	states, err := e.look(ctx)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	e.listed = states
	e.mu.Unlock()
	list := make([]engine.State, 0, len(states))
	for _, r := range e.runs.all() {
		for _, k := range r.now().Kernels {
			if state, ok := states[k.Name]; ok {
				list = append(list, state)
			}
		}
	}
	return list, nil
}

// look returns the states of our containers by name.
func (e *Engine) look(ctx context.Context) (map[string]engine.State, error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	v, states := e.jobs.view(), map[string]engine.State{}
	for _, r := range e.runs.all() {
		for _, k := range r.now().Kernels {
			if k.Created.IsZero() || k.Labels[engine.LabelInstance] != e.config.Instance {
				continue
			}
			state, err := e.stateOf(ctx, r, k, v)
			if err != nil {
				return nil, err
			}
			states[k.Name] = state
		}
	}
	return states, ended(ctx)
}

func (e *Engine) Inspect(ctx context.Context, id string) (engine.State, error) {
	if err := ended(ctx); err != nil {
		return engine.State{}, err
	}
	r, k, err := e.runs.find(id)
	if err != nil {
		return engine.State{}, err
	}
	return e.stateOf(ctx, r, k, e.jobs.view())
}

// Watch calls fn for each container of ours that changes, from the last List on, until ctx ends.
func (e *Engine) Watch(ctx context.Context, fn func(engine.State)) error {
	e.mu.Lock()
	before := maps.Clone(e.listed)
	e.mu.Unlock()
	for {
		states, err := e.look(ctx)
		if err != nil {
			return err
		}
		for name, state := range states {
			if last, ok := before[name]; !ok || !reflect.DeepEqual(last, state) {
				fn(state)
			}
		}
		for name, last := range before {
			if _, ok := states[name]; !ok {
				fn(engine.State{ID: last.ID, Name: last.Name, Labels: last.Labels, Gone: true})
			}
		}
		before = states
		if err := e.pause(ctx); err != nil {
			return err
		}
	}
}
