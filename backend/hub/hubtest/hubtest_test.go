package hubtest_test

import (
	"context"
	"testing"
	"time"

	"slipway/backend/hub/hubtest"
	"slipway/backend/session"
	"slipway/backend/session/agenttest"
)

// What the agent of tests answers from its records, every agent answers in the same way.
func TestAgentKeepsItsPromises(t *testing.T) {
	agenttest.Run(t, func(t *testing.T) session.Agent {
		a := hubtest.New("lab")
		a.SetImages(session.Image{Refs: []string{"python:3.12"}})
		go move(t.Context(), a)
		return a.Agent()
	}, agenttest.Options{Image: "python:3.12", Records: true})
}

// move moves each session that is launched by one status at a time, until it runs, or has ended if it is a batch
// session.
func move(ctx context.Context, a *hubtest.Agent) {
	next := map[session.Status]session.Status{session.Pending: session.Scheduled, session.Scheduled: session.Preparing,
		session.Preparing: session.Prepared, session.Prepared: session.Creating, session.Creating: session.Running}
	ends := map[session.Status]session.Status{session.Running: session.Terminating,
		session.Terminating: session.Terminated}
	step := func(known session.Session) {
		if later := known.Spec.NotBefore; known.Status.Terminal() || known.Held ||
			later != nil && later.After(time.Now()) {
			return
		}
		a.Change(known.ID, func(s *session.Session) {
			if to, ok := next[s.Status]; ok {
				s.Status = to
			} else if to, ok := ends[s.Status]; ok && s.Spec.Type == session.Batch {
				s.Status = to
				if to.Terminal() {
					s.TerminatedAt = new(time.Now())
				}
			}
		})
	}
	_ = a.Watch(ctx, session.Cursor{}, func(e session.Event) error { // it ends with ctx
		switch {
		case e.Session != nil:
			step(*e.Session)
		case e.Reset != nil: // what was launched before the watch began
			for _, s := range e.Reset.Sessions {
				step(s)
			}
		}
		return nil
	})
}
