package access

import (
	"context"
	"slices"

	"slipway/backend/session"
)

// Watch implements [session.Activity]. Events about what is others' do not come.
func (v *view) Watch(ctx context.Context, after session.Cursor, fn func(session.Event) error) error {
	mine := map[session.ID]bool{}
	return v.agent.Watch(ctx, after, func(e session.Event) error {
		told, err := v.event(ctx, mine, e)
		if err != nil || told == nil {
			return err
		}
		return fn(*told)
	})
}

// event is e as it is told; nil where it is not. mine caches which sessions are
// one's own.
func (v *view) event(ctx context.Context, mine map[session.ID]bool, e session.Event) (*session.Event, error) {
	switch {
	case e.Reset != nil:
		reset, err := v.reset(ctx, *e.Reset)
		if err != nil {
			return nil, err
		}
		e.Reset = &reset
	case e.Session != nil:
		if v.anothers(*e.Session) {
			return nil, nil
		}
	case e.Removed != nil:
		if !v.all && e.Owner != v.who.Owner {
			return nil, nil
		}
		delete(mine, *e.Removed)
	case e.Machine != nil:
		machine := v.machine(*e.Machine)
		e.Machine = &machine
	case e.Devices != nil:
		board := v.board(*e.Devices)
		e.Devices = &board
	case e.Usage != nil:
		if e.Usage = v.usage(ctx, mine, e.Usage); len(e.Usage) == 0 {
			return nil, nil
		}
	default: // of a kind that nobody has said who may see
		if !v.all {
			return nil, nil
		}
	}
	return &e, nil
}

// reset is the whole state as it is shown. The newest sessions of all may hold
// few of one's own, so these are asked for.
func (v *view) reset(ctx context.Context, r session.Reset) (session.Reset, error) {
	r.Machine = v.machine(r.Machine)
	if r.Devices != nil {
		board := v.board(*r.Devices)
		r.Devices = &board
	}
	if v.all {
		return r, nil
	}
	r.Sessions = nil
	for _, filter := range []session.Filter{{Live: true}, {Finished: true, Limit: session.ResetFinished}} {
		list, err := v.List(ctx, filter)
		if err != nil {
			return r, err
		}
		r.Sessions = append(r.Sessions, list...)
	}
	return r, nil
}

// usage is the samples of one's own sessions.
func (v *view) usage(ctx context.Context, mine map[session.ID]bool, samples []session.Usage) []session.Usage {
	if v.all {
		return samples
	}
	return slices.DeleteFunc(slices.Clone(samples), func(u session.Usage) bool {
		own, known := mine[u.Session]
		if !known {
			own = v.own(ctx, u.Session) == nil
			mine[u.Session] = own
		}
		return !own
	})
}
