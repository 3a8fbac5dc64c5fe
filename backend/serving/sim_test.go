package serving

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// plan makes one plan of the world, checks it, and carries it out.
func (w *world) plan() Decision {
	s := w.snapshot()
	d := Plan(s, w.now)
	w.check(s, d)
	if w.faults && w.chance(60) {
		w.crash()
		return d // before anything was stored
	}
	w.store(d)
	if w.faults && w.chance(60) {
		w.crash()
		return d // before anything was done
	}
	w.carry(d)
	return d
}

// check holds the promises of a decision against the snapshot, by its own sums.
func (w *world) check(s Snapshot, d Decision) {
	if len(d.Refused) > 0 {
		w.errorf("refused: %q", d.Refused)
	}
	if w.plans++; w.plans%16 == 0 && !reflect.DeepEqual(s, w.snapshot()) {
		w.errorf("the snapshot was changed")
	}
	for i := range s.Services {
		before, after := s.Services[i], d.Services[i]
		w.checkCounts(before, after)
		h := w.services[i]
		if after.State == Failed && h.failures < giveUp {
			w.errorf("%s gave up after %d failures", after.Name, h.failures)
		}
		if after.Sleeping.Asleep && !before.Sleeping.Asleep {
			busy := before.Traffic.Waiting
			for _, r := range before.Replicas {
				busy += r.Outstanding
			}
			if busy > 0 {
				w.errorf("%s sleeps with %d requests", after.Name, busy)
			}
		}
		s.Services[i].Record = after.Record
	}
	again := Plan(s, w.now)
	same := slices.Equal(again.Launches, d.Launches) && slices.Equal(again.Drains, d.Drains) &&
		slices.Equal(again.Terminations, d.Terminations)
	if !same {
		w.errorf("planned again, it asks for something else:\n%+v\n%+v", d, again)
	}
	for i, o := range again.Services {
		if o.Changed {
			w.errorf("planned again, the record changes from\n%+v to\n%+v", d.Services[i].Record, o.Record)
		}
	}
}

func (w *world) checkCounts(s Service, o Outcome) {
	healthy, staying, leaving := 0, 0, map[int]bool{}
	for _, m := range o.Members {
		if leaving[m.Attempt] = m.leaves(); !m.leaves() {
			staying++
		}
	}
	for _, r := range s.Replicas {
		if r.Phase == Healthy && !leaving[r.Attempt] {
			healthy++
		}
	}
	if staying > o.Scaling.Target+1 {
		w.errorf("%s has %d replicas and wants %d", o.Name, staying, o.Scaling.Target)
	}
	if o.State.Answers() != (healthy > 0) || o.State == Ready && healthy < o.Scaling.Target ||
		o.State == Degraded && healthy >= o.Scaling.Target {
		w.errorf("%s is %s with %d of %d healthy", o.Name, o.State, healthy, o.Scaling.Target)
	}
	text := reasonOf(o)
	inEnglishAlone := slices.ContainsFunc(o.Said, func(p session.Phrase) bool { return p.Say == "" })
	if !strings.HasSuffix(text, ".") || strings.Contains(text, "  ") || inEnglishAlone {
		w.errorf("%s is %s: %q, %+v", o.Name, o.State, text, o.Said)
	}
}

// converges lets all faults stop and expects that soon nothing changes any more.
func (w *world) converges() {
	w.faults, w.free = false, w.free+100*gpu.GiB
	for _, b := range w.boxes {
		b.hung, b.refuses = false, false
		if b.end == nil && b.ready.IsZero() && !b.runs.IsZero() {
			b.ready = w.now
		}
		b.dies = time.Time{}
	}
	for _, h := range w.services {
		clear(h.bad)
		h.record, h.waiting, h.settings.Rules = h.record.TryAgain(), 0, nil
	}
	for range 120 {
		w.now = w.now.Add(time.Second)
		w.advance()
		w.look()
		w.plan()
	}
	w.now = w.now.Add(time.Second)
	w.advance()
	w.look()
	d := Plan(w.snapshot(), w.now)
	for i, o := range d.Services {
		settled := o.State == Stopped || o.State == Asleep || o.State == Ready && o.Updating == 0
		if o.Changed || !settled {
			w.errorf("%s does not settle: %s, %s\n%+v\n%+v", o.Name, o.State, reasonOf(o),
				w.services[i].record, o.Record)
		}
	}
	if len(d.Launches)+len(d.Drains)+len(d.Terminations) > 0 {
		w.errorf("it still acts: %+v", d)
	}
}

// TestManyHistories plays histories with all kinds of faults, and crashes between a plan and its actions.
func TestManyHistories(t *testing.T) {
	count := 200
	if testing.Short() {
		count = 40
	}
	states, crashes, rolledBack, asked := map[State]int{}, 0, 0, 0
	for seed := range uint64(count) {
		w := history(t, seed, func(h *hosted) {
			if states[h.state]++; h.record.Rejected != nil {
				rolledBack++
			}
			if h.record.Sleeping.For != "" {
				asked++
			}
		})
		crashes += w.crashes
	}
	t.Logf("%d crashes; services seen: %v, %d rolled back, %d asleep for another", crashes, states, rolledBack, asked)
	for _, state := range []State{Deploying, Ready, Degraded, Unreachable, Asleep, Updating, Stopping, Stopped,
		Failed} {
		if states[state] == 0 {
			t.Errorf("no service was ever %s: the simulation is too easy", state)
		}
	}
	if rolledBack == 0 || asked == 0 {
		t.Error("the simulation is too easy")
	}
}

// history plays one history with faults, then without.
func history(t *testing.T, seed uint64, seen func(*hosted)) *world {
	w := newWorld(seed, 1+int(seed%3), gpu.Bytes(2+seed%9)*gpu.GiB)
	w.shuffleSettings()
	for range 100 {
		w.now = w.now.Add(w.seconds(0, 1) + 200*time.Millisecond)
		w.people()
		w.advance()
		w.misfortune()
		w.look()
		w.requests(5)
		w.plan()
		for _, h := range w.services {
			seen(h)
		}
		if len(w.wrong) > 0 {
			t.Fatalf("seed %d: %s", seed, strings.Join(w.wrong, "\n"))
		}
	}
	w.converges()
	if len(w.wrong) > 0 {
		t.Fatalf("seed %d, after the faults: %s", seed, strings.Join(w.wrong, "\n"))
	}
	return w
}

func FuzzHistories(f *testing.F) {
	for _, seed := range []uint64{1, 448, 1 << 40} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { history(t, seed, func(*hosted) {}) })
}

func (w *world) shuffleSettings() {
	for _, h := range w.services {
		if w.chance(2) {
			h.settings.Sleep = Sleep{After: sec(w.r.IntN(3) * 4), May: w.chance(2)}
		}
		if w.chance(3) {
			h.settings.Rules = []session.ScalingRule{{Source: session.FromRouter, Metric: session.MetricOutstanding,
				ScaleUp:   new(1.5),
				ScaleDown: new(0.5), Window: sec(3), Cooldown: sec(2), MaxReplicas: 4}}
		}
		h.bad[1] = []string{"", "", "", "crashes", "never healthy", "dies later"}[w.r.IntN(6)]
	}
}

// TestAnUpdateWithRoomNeverLosesAReplica updates services that are up to good and bad revisions, with requests under
// way and crashes of the agent, on a machine with room: as many as wanted stay healthy throughout, and after a
// roll-back of a revision that never came up they are the same.
func TestAnUpdateWithRoomNeverLosesAReplica(t *testing.T) {
	count := 90
	if testing.Short() {
		count = 40
	}
	for seed := range uint64(count) {
		w := newWorld(seed, 1, 100*gpu.GiB)
		h := w.services[0]
		w.faults = false
		for range 30 {
			w.now = w.now.Add(500 * time.Millisecond)
			w.advance()
			w.look()
			w.plan()
		}
		before := w.healthy()
		bad := []string{"", "crashes", "never healthy"}[seed%3]
		h.latest, h.bad[2], h.record = 2, bad, h.record.Update(2)
		for range 400 {
			w.now = w.now.Add(500 * time.Millisecond)
			w.advance()
			w.look()
			w.requests(4)
			w.plan()
			if n := len(w.healthy()); n < h.settings.Replicas {
				w.errorf("%d of %d are healthy", n, h.settings.Replicas)
			}
			if len(w.wrong) > 0 {
				t.Fatalf("seed %d: %s", seed, strings.Join(w.wrong, "\n"))
			}
		}
		after := w.healthy()
		switch {
		case bad == "" && (h.record.Revision != 2 || h.record.Previous != 1 || h.record.Updating != 0):
			t.Errorf("seed %d: not updated: %+v", seed, h.record)
		case bad != "" && (h.record.Rejected == nil || h.record.Revision != 1 || !slices.Equal(before, after)):
			t.Errorf("seed %d: not rolled back to %v: %v\n%+v", seed, before, after, h.record)
		}
	}
}

func (w *world) healthy() (ids []session.ID) {
	for _, b := range w.boxes {
		if r := w.memory[b.id]; r != nil && r.Phase == Healthy {
			ids = append(ids, b.id)
		}
	}
	return ids
}

// TestTwoServicesShareOneDevice lets requests for two services alternate on a machine that has room for one: each is
// answered, and none is cut.
func TestTwoServicesShareOneDevice(t *testing.T) {
	w := newWorld(1, 2, gpu.GiB)
	w.faults = false
	for i, h := range w.services {
		h.need, h.settings = gpu.GiB, Settings{Replicas: 1, Sleep: Sleep{May: true}}
		if i == 1 {
			h.record.Sleeping.Asleep = true
		}
	}
	answered, next := 0, 0
	for range 3000 {
		w.now = w.now.Add(250 * time.Millisecond)
		w.advance()
		w.look()
		under := 0
		for _, b := range w.boxes {
			under += len(b.requests)
		}
		if h := w.services[next%2]; under == 0 && w.services[0].waiting+w.services[1].waiting == 0 {
			h.waiting, h.last = 1, w.now
			next++
			answered++
		}
		w.dispatch()
		w.plan()
	}
	if len(w.wrong) > 0 || answered < 20 {
		t.Errorf("%d answered: %s", answered, strings.Join(w.wrong, "\n"))
	}
	t.Log(fmt.Sprint(answered, " answered, ", len(w.boxes), " launches"))
}

// dispatch is what the router does with requests that wait, when nobody new comes or leaves.
func (w *world) dispatch() {
	for _, b := range w.boxes {
		if r := w.memory[b.id]; b.end == nil && r != nil && r.Phase == Healthy && b.of.waiting > 0 {
			b.requests, b.of.last = append(b.requests, w.now.Add(w.seconds(0, 15))), w.now
			b.of.waiting--
		}
	}
}
