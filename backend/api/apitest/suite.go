// Package apitest has the suite that every control plane must pass: the real one, and what stands in for it in tests.
package apitest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/client"
	"slipway/backend/session"
)

// Plane is a control plane under test. Its only machine is called local and has no sessions at first.
type Plane struct {
	URL   string // http://127.0.0.1:PORT
	Token string
	// Put makes a session of the machine be as given, but for its revision.
	Put func(session.Session)
}

// patience is how long one thing may take.
const patience = 2 * time.Minute

// Run checks control planes. start starts one for each case and sees to stopping it.
func Run(t *testing.T, start func(t *testing.T) Plane) {
	for name, check := range map[string]func(*world){
		"nothing is answered without the token":      (*world).guarded,
		"lists have live sessions, or all on demand": (*world).lists,
		"a session is found by its id and its name":  (*world).finds,
		"a stream tells what is there, then changes": (*world).follows,
		"what fails says so in a problem":            (*world).problems,
	} {
		t.Run(name, func(t *testing.T) {
			plane := start(t)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			t.Cleanup(cancel)
			check(&world{Plane: plane, t: t, ctx: ctx, client: client.New(plane.URL, plane.Token)})
		})
	}
}

type world struct {
	Plane
	t      *testing.T
	ctx    context.Context //nolint:containedctx // that of one case
	client *client.Client
}

// sessions are one that ran, one that runs under its name, and one that waits, from the oldest to the newest.
func (w *world) sessions() []session.Session {
	at := func(hours int) time.Time { return time.Date(2026, 5, 1, hours, 0, 0, 0, time.UTC) }
	started, ended := at(1), at(2)
	spec := session.Spec{Image: "python:3.12", Type: session.Interactive}
	none := session.End{Result: session.ResultUndefined}
	all := []session.Session{
		{ID: "aaaaaaaaaaaa", Name: "train", Status: session.Terminated, Spec: spec, CreatedAt: at(0),
			End:   session.End{Result: session.ResultSuccess, Reason: session.ReasonUser},
			Times: session.Times{StartedAt: &started, TerminatedAt: &ended}},
		{ID: "bbbbbbbbbbbb", Name: "train", Status: session.Running, Spec: spec, End: none, CreatedAt: at(3),
			Times: session.Times{StartedAt: &started}},
		{ID: "cccccccccccc", Name: "later", Status: session.Pending, Spec: spec, End: none, CreatedAt: at(4)},
	}
	for i := range all {
		all[i].Agent = "local"
	}
	return all
}

// put has the sessions there, and waits until the control plane knows.
func (w *world) put(all []session.Session) {
	w.t.Helper()
	next := w.stream()
	seen := map[session.ID]bool{}
	for _, s := range all {
		w.Put(s)
	}
	for len(seen) < len(all) {
		for _, s := range next() {
			seen[s.ID] = true
		}
	}
}

// stream opens a stream of events; next returns the sessions that its next event tells of.
func (w *world) stream() (next func() []api.Session) {
	w.t.Helper()
	stream, err := w.client.Dial(w.ctx, route.Events.Target())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { stream.Close() })
	deadline, _ := w.ctx.Deadline()
	if err := stream.SetReadDeadline(deadline); err != nil {
		w.t.Fatal(err)
	}
	return func() []api.Session {
		w.t.Helper()
		var event api.Event
		if err := stream.ReadJSON(&event); err != nil {
			w.t.Fatal(err)
		}
		switch {
		case event.Snapshot != nil:
			return event.Snapshot.Sessions
		case event.Session != nil:
			return []api.Session{*event.Session}
		}
		return nil
	}
}

func (w *world) guarded() {
	for _, token := range []string{"", "x" + w.Token, w.Token + "x"} {
		stranger := client.New(w.URL, token)
		for name, call := range map[string]func() error{
			"a list":    func() error { return route.Sessions.Call(w.ctx, stranger, nil) },
			"a session": func() error { return route.Session.At("aaaaaaaaaaaa").Call(w.ctx, stranger, nil) },
			"events":    func() error { _, err := stranger.Dial(w.ctx, route.Events.Target()); return err },
		} {
			w.refused(name+" with the token "+token, call(), session.CodeLoginRequired)
		}
	}
}

// refused checks that a call was refused with a code, and its status.
func (w *world) refused(what string, err error, code session.Code) session.Error {
	w.t.Helper()
	refused, ok := errors.AsType[*client.Refused](err)
	if !ok || refused.Problem.Code != code || refused.Status != code.Status() || refused.Problem.Message == "" {
		w.t.Errorf("%s: %v", what, err)
		return session.Error{}
	}
	return refused.Problem
}

func (w *world) lists() {
	all := w.sessions()
	w.put(all)
	for state, want := range map[string][]session.ID{
		"":         {"cccccccccccc", "bbbbbbbbbbbb", "aaaaaaaaaaaa"},
		"all":      {"cccccccccccc", "bbbbbbbbbbbb", "aaaaaaaaaaaa"},
		"live":     {"cccccccccccc", "bbbbbbbbbbbb"},
		"finished": {"aaaaaaaaaaaa"},
	} {
		list, err := route.Sessions.With("state", state).Ask(w.ctx, w.client)
		var got []session.ID
		for _, s := range list {
			got = append(got, s.ID)
		}
		if err != nil || !slices.Equal(got, want) {
			w.t.Errorf("state=%s lists %v, %v", state, got, err)
		}
	}
}

func (w *world) finds() {
	all := w.sessions()
	w.put(all)
	for ref, want := range map[string]session.Session{
		"aaaaaaaaaaaa": all[0], "bbbbbbbbbbbb": all[1], "later": all[2], "train": all[1], // the one that is alive
	} {
		got, err := route.Session.At(ref).Ask(w.ctx, w.client)
		if err != nil || got.ID != want.ID || got.Status != want.Status || got.Agent != "local" ||
			got.Image != want.Spec.Image || got.Type != want.Spec.Type || !got.CreatedAt.Equal(want.CreatedAt) {
			w.t.Errorf("%s is %+v, %v", ref, got, err)
		}
	}
}

func (w *world) follows() {
	all := w.sessions()
	w.put(all)
	next := w.stream()
	if there := next(); len(there) != len(all) {
		w.t.Fatalf("it begins with %+v", there)
	}
	running := all[2]
	running.Status = session.Running
	ended := all[1]
	ended.Status, ended.End = session.Terminated, all[0].End
	for _, change := range []session.Session{running, ended} {
		w.Put(change)
		for {
			told := next()
			if len(told) == 0 { // of something else
				continue
			}
			if len(told) != 1 || told[0].ID != change.ID || told[0].Status != change.Status {
				w.t.Fatalf("%s became %s, and %+v was told", change.ID, change.Status, told)
			}
			break
		}
		if got, err := route.Session.At(string(change.ID)).Ask(w.ctx, w.client); err != nil ||
			got.Status != change.Status {
			w.t.Errorf("then %s is %s, %v", change.ID, got.Status, err)
		}
	}
}

func (w *world) problems() {
	w.put(w.sessions())
	for _, ref := range []string{"dddddddddddd", "nothing"} {
		problem := w.refused(ref, route.Session.At(ref).Call(w.ctx, w.client, nil), session.CodeSessionNotFound)
		if problem.Hint == "" {
			w.t.Errorf("%s: there is no hint in %+v", ref, problem)
		}
	}
	problem := w.refused("a state that is none",
		route.Sessions.With("state", "dreaming").Call(w.ctx, w.client, nil), session.CodeRequestInvalid)
	if len(problem.Fields) != 1 || problem.Fields[0].Field != "state" {
		w.t.Errorf("a state that is none: %+v", problem)
	}
}
