package services

import (
	"slices"
	"testing"
	"time"

	"slipway/backend/serving"
	"slipway/backend/session"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func served() kept {
	return kept{Name: "llama", Wish: session.ServiceWish{Replicas: 1}, Revisions: []session.Revision{{Number: 1}},
		Plan: serving.Record{Revision: 1, Scaling: serving.Scaling{Set: 1, Target: 1}}}
}

// sentences are what the events of a change say.
// plainly is a sentence that exists only in English.
func plainly(text string) session.Phrase { return session.Phrase{Text: text} }

func sentences(c change) (all []string) {
	c.now = noon
	after, happened := c.told()
	if happened != (len(after.Events) > len(c.after.Events)) {
		all = append(all, "something happened?")
	}
	for _, e := range after.Events[:len(after.Events)-len(c.after.Events)] {
		text := string(e.Kind) + ": " + e.Message
		if e.Why != "" {
			text += " (" + e.Why + ")"
		}
		all = append(all, text)
	}
	slices.Reverse(all)
	return all
}

func TestEventsTellWhatChanged(t *testing.T) {
	const id = session.ID("aaaaaaaaaaaa")
	replicas := []*replica{{Replica: serving.Replica{ID: id, Attempt: 3, Phase: serving.Ended,
		End: &serving.End{Said: plainly("The server ended with exit code 3.")}}}}
	seen := serving.Member{Attempt: 3, Revision: 1, Seen: true}
	for name, test := range map[string]struct {
		before, after func(*kept)
		change        change
		want          []string
	}{
		"a person wants more": {after: func(k *kept) { k.Wish.Replicas = 3 }, change: change{person: true},
			want: []string{"scaled: From 1 to 3 replicas."}},
		"a person stops it": {after: func(k *kept) { k.Wish.Replicas, k.Plan.Stopping = 0, true },
			change: change{person: true}},
		"it has stopped": {change: change{state: session.ServiceStopped}, want: []string{"stopped: It stopped."}},
		"a person starts it": {before: func(k *kept) { k.Wish.Replicas, k.Plan.Stopping = 0, true },
			change: change{person: true}, want: []string{"started: It was started."}},
		"a person tries again": {before: func(k *kept) { k.Plan.Failures.Count = 5 }, change: change{person: true},
			want: []string{"started: It tries again, as requested."}},
		"a person returns": {before: func(k *kept) { k.Plan.Revision = 4 },
			after:  func(k *kept) { k.Plan.Revision, k.Plan.Updating = 4, 2 },
			change: change{person: true}, want: []string{"update: A return to revision 2 was requested."}},
		"a person cancels": {before: func(k *kept) { k.Plan.Updating = 2 }, change: change{person: true},
			want: []string{"update: The update to revision 2 was cancelled."}},
		"a rule": {after: func(k *kept) {
			k.Plan.Scaling = serving.Scaling{Set: 1, Target: 2, At: noon, Metric: "outstanding", Value: 8.5}
		}, want: []string{"scaled: From 1 to 2 replicas. (By a rule: outstanding was 8.5.)"}},
		"another service": {after: func(k *kept) {
			k.Plan.Sleeping = serving.Sleeping{Asleep: true, For: "x", Name: "other"}
		}, want: []string{"asleep: It sleeps. (other needed its devices.)"}},
		"an update": {before: func(k *kept) { k.Plan.Updating = 2 }, after: func(k *kept) { k.Plan.Revision = 2 },
			want: []string{"updated: Revision 2 serves."}},
		"a crash": {before: func(k *kept) { k.Plan.Members = []serving.Member{seen} },
			after: func(k *kept) { k.Plan.Failures.Count = 2 },
			change: change{replicas: replicas, state: session.ServiceUnreachable,
				why: []session.Phrase{plainly("0 of 1 replica is healthy.")}},
			want: []string{
				"failure: Replica llama-3 of revision 1 failed. " +
					"(The server ended with exit code 3. 2 failures in a row.)",
				"unreachable: No replica answers. (0 of 1 replica is healthy.)"}},
		"a replica that is too slow": {before: func(k *kept) { k.Plan.Members = []serving.Member{seen} },
			after: func(k *kept) {
				k.Plan.Failures = serving.Failures{Count: 1, Last: plainly("It did not become healthy in 60 s.")}
				slow := seen
				slow.Drained, slow.Deadline = noon, noon
				k.Plan.Members = []serving.Member{slow}
			},
			want: []string{"failure: Replica llama-3 of revision 1 failed. (It did not become healthy in 60 s.)"}},
		"a replica that was asked to end": {before: func(k *kept) {
			leaves := seen
			leaves.Drained, leaves.Deadline = noon, noon.Add(time.Minute)
			k.Plan.Members = []serving.Member{leaves}
		}, change: change{replicas: replicas}, want: []string{"ended: Replica llama-3 ended."}},
		"nothing": {after: func(k *kept) { k.Plan.Attempt = 7 }},
	} {
		t.Run(name, func(t *testing.T) {
			c := test.change
			c.before, c.after = served(), served()
			for of, set := range map[*kept]func(*kept){&c.before: test.before, &c.after: test.after} {
				if set != nil {
					set(of)
				}
			}
			if got := sentences(c); !slices.Equal(got, test.want) {
				t.Errorf("it tells %q, want %q", got, test.want)
			}
		})
	}
}

func TestAStateIsToldOnce(t *testing.T) {
	k := served()
	for _, state := range []session.ServiceState{"READY", "READY", "UPDATING", "READY", "DEGRADED", "DEPLOYING",
		"READY"} {
		k, _ = change{before: k, after: k, state: state, now: noon}.told()
	}
	var kinds []session.EventKind
	for _, e := range k.Events {
		kinds = append(kinds, e.Kind)
	}
	if want := []session.EventKind{"ready", "degraded", "ready"}; !slices.Equal(kinds, want) {
		t.Errorf("the states are told as %q, want %q", kinds, want)
	}
}

func TestOnlyTheNewestEventsAreStored(t *testing.T) {
	k := served()
	for i := range 2 * session.MaxServiceEvents {
		more := k
		more.Wish.Replicas = 2 + i
		k, _ = change{before: k, after: more, person: true, now: noon}.told()
	}
	if n := len(k.Events); n != session.MaxServiceEvents || k.Events[0].Message != "From 100 to 101 replicas." {
		t.Errorf("%d events are stored, the newest is %+v", n, k.Events[0])
	}
}
