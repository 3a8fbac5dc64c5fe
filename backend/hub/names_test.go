package hub_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"slipway/backend/hub"
	"slipway/backend/session"
)

// named is a request for a session on an agent; empty: any.
func named(name, agent, owner string) hub.LaunchRequest {
	return hub.LaunchRequest{Owner: owner, Spec: session.Spec{Name: name, Image: "a:1",
		Schedule: session.Schedule{Agent: agent}}}
}

// shared is a fleet whose lab is shared with ann, and where the user has another name.
func shared(t *testing.T) *fleet {
	t.Helper()
	f := newFleet(t)
	f.lab.Owner, f.lab.Role = "ada-there", session.RoleAdmin
	f.add(t).SetClients(session.PairedClient{Key: "k", Owner: "ann"}, session.PairedClient{Key: "l", Owner: "bob"})
	return f
}

func TestANameIsOfOneLiveSessionOfAPerson(t *testing.T) {
	f := shared(t)
	must := func(req hub.LaunchRequest) session.Session {
		t.Helper()
		s, err := f.Launch(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	taken := func(req hub.LaunchRequest, where string) {
		t.Helper()
		_, err := f.Launch(t.Context(), req)
		says := where + " is already named " + req.Spec.Name
		if session.CodeOf(err) != session.CodeNameTaken || !strings.Contains(err.Error(), says) {
			t.Errorf("launch: %v, want that %s", err, says)
		}
		p, err := f.Preview(t.Context(), req.Owner, req.Spec, 1)
		if err != nil || !slices.ContainsFunc(p.Errors, func(e session.FieldError) bool {
			return e.Field == "name" && e.Kind == session.KindDuplicate && strings.Contains(e.Message, says)
		}) {
			t.Errorf("preview: %+v, %v, want that %s", p.Errors, err, says)
		}
	}
	one := must(named("train", "local", ""))
	taken(named("train", "lab", ""), "local")
	taken(named("train", "lab", "ada-there"), "local")
	must(named("train", "lab", "ann")) // another person
	if p, err := f.Preview(t.Context(), "bob", named("train", "lab", "").Spec, 1); err != nil || len(p.Errors) > 0 {
		t.Errorf("another person's preview: %+v, %v", p.Errors, err)
	}

	t.Run("it means the user's own session", func(t *testing.T) {
		if _, id, err := f.Find(t.Context(), "train"); err != nil || id != one.ID {
			t.Errorf("%s, %v; want %s", id, err, one.ID)
		}
		for _, owner := range []string{"ann", "bob"} {
			must(named("shared-name", "lab", owner))
		}
		if _, _, err := f.Find(t.Context(), "shared-name"); session.CodeOf(err) != session.CodeSessionAmbiguous {
			t.Errorf("of two others: %v", err)
		}
	})
	t.Run("each of several is checked", func(t *testing.T) {
		must(named("sweep-2", "local", ""))
		p, err := f.Preview(t.Context(), "", named("sweep", "lab", "").Spec, 3)
		if err != nil || len(p.Errors) != 1 || !strings.Contains(p.Errors[0].Message, "already named sweep-2") {
			t.Errorf("preview: %+v, %v", p.Errors, err)
		}
	})
	t.Run("renaming obeys it", func(t *testing.T) {
		other := must(named("tune", "local", ""))
		must(named("there", "lab", ""))
		if _, err := f.Rename(t.Context(), other.ID, "there"); session.CodeOf(err) != session.CodeNameTaken {
			t.Errorf("renamed: %v", err)
		}
		if s, err := f.Rename(t.Context(), other.ID, "moved"); err != nil || s.Name != "moved" {
			t.Errorf("%s, %v", s.Name, err)
		}
		must(named("tune", "lab", ""))
		taken(named("moved", "lab", ""), "local")
	})
	t.Run("an agent that is not reached counts", func(t *testing.T) {
		must(named("remembered", "lab", ""))
		f.connector.Remote(labAddress).SetUp(false)
		f.awaitOnline(t, "lab", false)
		taken(named("remembered", "local", ""), "lab")
		f.connector.Remote(labAddress).SetUp(true)
		f.awaitOnline(t, "lab", true)
	})
	t.Run("the name of an ended session is free", func(t *testing.T) {
		watcher := f.Watch(hub.Cursor{}, false)
		defer watcher.Close()
		next(t, watcher) // the snapshot, which would not tell of a session that has ended before it
		if _, err := f.local.Terminate(t.Context(), one.ID, false); err != nil {
			t.Fatal(err)
		}
		for e := next(t, watcher); e.Session == nil || e.Session.ID != one.ID || e.Session.Status.Live(); {
			e = next(t, watcher)
		}
		must(named("train", "lab", ""))
	})
	t.Run("also of two launches at once", func(t *testing.T) {
		errs := make([]error, 2)
		var group sync.WaitGroup
		for i, agent := range []string{"local", "lab"} {
			group.Go(func() { _, errs[i] = f.Launch(t.Context(), named("at-once", agent, "")) })
		}
		group.Wait()
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Errorf("%v, %v; want one", errs[0], errs[1])
		}
	})
	t.Run("a repeated request is answered", func(t *testing.T) {
		req := named("again", "lab", "")
		req.Key = "key"
		if first := must(req); must(req).ID != first.ID {
			t.Error("another session")
		}
	})
}

func TestOnlyPeopleOfAMachineOwnSessionsThere(t *testing.T) {
	f := shared(t)
	f.local.Put(session.Session{ID: "aaaaaaaaaaaa", Name: "old", Owner: "eve", Status: session.Terminated})
	f.restart(t)
	f.awaitOnline(t, "lab", true)
	f.connector.Remote(labAddress).SetClients(session.PairedClient{Key: "k", Owner: "ann"})
	f.connector.Remote(labAddress).SetLimits(map[string]session.Allowance{"bob": {}, session.DefaultOwner: {}})
	for _, c := range []struct{ agent, owner, people string }{
		{"lab", "nobody", "ada-there, ann, bob."},
		{"lab", "eve", "ada-there, ann, bob."},
		{"local", "nobody", "ada, eve."},
		{"lab", "ann", ""}, {"lab", "bob", ""}, {"lab", "ada-there", ""}, {"local", "eve", ""}, {"local", "ada", ""},
	} {
		req := named("", c.agent, c.owner)
		_, err := f.Launch(t.Context(), req)
		p, previewErr := f.Preview(t.Context(), c.owner, req.Spec, 1)
		if previewErr != nil || (err == nil) != (c.people == "") || (len(p.Errors) == 0) != (c.people == "") {
			t.Errorf("%s on %s: %v, %+v, %v", c.owner, c.agent, err, p.Errors, previewErr)
			continue
		}
		if c.people == "" {
			continue
		}
		for _, wrong := range []session.FieldError{session.AsError(err, "").Fields[0], p.Errors[0]} {
			if wrong.Field != "owner" || wrong.Kind != session.KindNotFound ||
				!strings.HasSuffix(wrong.Hint, c.people) {
				t.Errorf("%s on %s: %+v, want the people %s", c.owner, c.agent, wrong, c.people)
			}
		}
	}
}
