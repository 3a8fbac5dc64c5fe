package simulated_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/backend/session"
)

// kindsOf returns the kinds of events, oldest first.
func kindsOf(events []session.ServiceEvent) (kinds []session.EventKind) {
	for _, e := range slices.Backward(events) {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// holds reports whether kinds has all of want in their order, with others between them.
func holds(kinds []session.EventKind, want ...session.EventKind) bool {
	for _, kind := range kinds {
		if len(want) > 0 && kind == want[0] {
			want = want[1:]
		}
	}
	return len(want) == 0
}

func TestAServiceTellsWhatHappenedToIt(t *testing.T) {
	t.Parallel()
	m := open(t)
	const name = "teller"
	wish := session.ServiceWish{Replicas: 1, Public: true}
	m.deploy(name, wish, 0)
	ready := m.await(name, is(session.ServiceReady))
	want := []session.EventKind{session.EventCreated, session.EventLaunched, session.EventReady}
	if got := kindsOf(ready.Events); !slices.Equal(got, want) {
		t.Errorf("once it is ready, it tells %q, want %q", got, want)
	}
	launched := ready.Events[1]
	if launched.Session != ready.Live[0].Session || launched.Message != "Replica teller-1 of revision 1 was launched." {
		t.Errorf("the launch is told as %+v", launched)
	}

	bad := ready.Revisions[0].Spec
	broken := *bad.Serving
	broken.Command = []string{"sh", "-c", "exit 3"}
	bad.Serving = &broken
	_, err := m.DeployService(t.Context(), session.DeployRequest{Name: name, Spec: bad, ServiceWish: wish})
	if err != nil {
		t.Fatal(err)
	}
	rolledBack := func(e session.ServiceEvent) bool { return e.Kind == session.EventRolledBack }
	back := m.await(name, func(s session.Service) bool { return slices.ContainsFunc(s.Events, rolledBack) })
	if got := kindsOf(back.Events); !holds(got, session.EventUpdate, session.EventFailure, session.EventRolledBack) {
		t.Errorf("after a bad revision it tells %q", got)
	}
	e := back.Events[slices.IndexFunc(back.Events, rolledBack)]
	if e.Message != "Revision 2 was rolled back." || !strings.Contains(e.Why, "5 times in a row") {
		t.Errorf("the roll-back is told as %+v", e)
	}
	if !slices.ContainsFunc(back.Events, func(e session.ServiceEvent) bool {
		return e.Kind == session.EventFailure && e.Why == "The server ended with exit code 3. 4 failures in a row."
	}) {
		t.Errorf("the failures are told as %+v", back.Events)
	}

	sleep := session.Duration(2 * time.Minute)
	if _, err := m.ChangeService(t.Context(), name, session.ServiceChange{Sleep: &sleep}); err != nil {
		t.Fatal(err)
	}
	asleep := m.await(name, func(s session.Service) bool {
		return s.State == session.ServiceAsleep && len(s.Live) == 0
	})
	if got := kindsOf(asleep.Events); !holds(got, session.EventRolledBack, session.EventAsleep, session.EventEnded) {
		t.Errorf("asleep, it tells %q", got)
	}
	m.get(name)
	woken := m.await(name, is(session.ServiceReady))
	if got := kindsOf(woken.Events); !holds(got, session.EventAsleep, session.EventWoken, session.EventReady) {
		t.Errorf("awake again, it tells %q", got)
	}
}
