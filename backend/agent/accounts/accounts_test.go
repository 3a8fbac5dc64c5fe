package accounts

import (
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

// clock is a machine's, whose clock on the wall a test sets.
type clock struct {
	origin time.Time
	set    time.Duration
}

func (c *clock) now() gpu.Moment {
	awake := time.Since(c.origin)
	return gpu.Moment{BootID: "boot-1", Boot: awake, Awake: awake, Wall: time.Now().Round(0).Add(c.set)}
}

// bookkeeper keeps the books of one session.
type bookkeeper struct {
	t     *testing.T
	books *Books
	store *store.Store
	clock *clock
	fail  error // of the next changes of the store
	live  []session.Session
	used  time.Duration // counter of the container's CPU time
}

func newBookkeeper(t *testing.T) *bookkeeper {
	k := &bookkeeper{t: t, clock: &clock{origin: time.Now().Add(-time.Hour)}}
	s, err := store.Open(store.Config{Path: filepath.Join(t.TempDir(), "agent.db"),
		Fault: func(string) error { return k.fail }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	k.store = s
	k.reopen()
	began := time.Now()
	k.live = []session.Session{{ID: "abcdefabcdef", Name: "one", Owner: "ada", Agent: "local",
		Spec: session.Spec{Label: "thesis"}, Status: session.Running, Times: session.Times{StartedAt: &began},
		Allocation: session.Allocation{
			Grants:  session.Grants{CPUs: []int{0, 1}},
			Kernels: []session.Kernel{{Name: "main1", Container: "c1"}},
		}}}
	if err := s.Update(func(tx *store.Tx) error { return tx.Create(&k.live[0], "") }); err != nil {
		t.Fatal(err)
	}
	return k
}

// reopen goes on from what is stored, as after a restart.
func (k *bookkeeper) reopen() {
	books, err := Open(k.store, nil, slog.Default())
	if err != nil {
		k.t.Fatal(err)
	}
	if err := books.Resume(k.clock.now(), k.live); err != nil {
		k.t.Fatal(err)
	}
	k.books = books
}

// work lets time pass in steps, in which one of two CPUs is busy for half of it and one request is answered.
func (k *bookkeeper) work(length, step time.Duration) {
	for at := time.Duration(0); at < length; at += step {
		time.Sleep(step)
		k.used += step / 2
		b := k.books
		b.Follow(k.clock.now(), k.live)
		b.Used(k.clock.now().Wall, "abcdefabcdef", "c1", k.used)
		b.Count(k.clock.now().Wall, Asked{Service: "chat", Owner: "ada", Revision: 1}, "", answered(100, 7))
		_ = k.books.Checkpoint(k.clock.now(), false) // a failure is looked at by who caused it
	}
}

func (k *bookkeeper) ask(span session.AccountSpan) (rows []session.Account, sum session.Account) {
	k.t.Helper()
	rows, err := k.books.Read(k.clock.now(), span)
	if err != nil {
		k.t.Fatal(err)
	}
	for _, r := range rows {
		sum.CPUMs, sum.AllocCPUMs = sum.CPUMs+r.CPUMs, sum.AllocCPUMs+r.AllocCPUMs
	}
	return rows, sum
}

func TestAccountsAreToldByBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newBookkeeper(t)
		from := time.Now().Add(-time.Hour)
		k.work(5*time.Hour, 10*time.Minute)
		whole, sum := k.ask(session.AccountSpan{From: from})
		if len(whole) != 1 || sum.AllocCPUMs != 2*5*3600_000 || sum.CPUMs != 5*1800_000 || whole[0].Label != "thesis" ||
			whole[0].Owner != "ada" || whole[0].Kind != kindSession {
			t.Fatalf("%+v", whole)
		}
		hours, hourly := k.ask(session.AccountSpan{From: from, Bucket: time.Hour})
		if len(hours) != 6 || hourly.AllocCPUMs != sum.AllocCPUMs || hourly.CPUMs != sum.CPUMs {
			t.Errorf("%d hours with %+v", len(hours), hourly)
		}
		for _, h := range hours {
			if h.AllocCPUMs > 2*3600_000 || h.Start.Minute() != 0 {
				t.Errorf("an hour of %+v", h)
			}
		}
		if days, daily := k.ask(session.AccountSpan{From: from, Bucket: 24 * time.Hour}); len(days) != 1 ||
			daily.AllocCPUMs != sum.AllocCPUMs {
			t.Errorf("days %+v", days)
		}
		if _, late := k.ask(session.AccountSpan{From: time.Now().Add(-time.Hour),
			To: time.Now()}); late.AllocCPUMs < 2*3600_000 || late.AllocCPUMs > 2*3600_000+2*600_000 {
			t.Errorf("the last hour has %d ms", late.AllocCPUMs)
		}
		_, err := k.books.Read(k.clock.now(), session.AccountSpan{From: time.Now(), To: from})
		if session.CodeOf(err) != "agent_call_invalid" {
			t.Errorf("backwards: %v", err)
		}
	})
}

func TestAClockThatIsSetChangesNoSum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newBookkeeper(t)
		from := time.Now().Add(-24 * time.Hour)
		k.work(2*time.Hour, 10*time.Minute)
		k.clock.set += -90 * time.Minute
		k.work(2*time.Hour, 10*time.Minute)
		k.clock.set += 7 * time.Hour
		k.work(time.Hour, 10*time.Minute)
		if _, sum := k.ask(session.AccountSpan{From: from,
			To: time.Now().Add(24 * time.Hour)}); sum.AllocCPUMs != 2*5*3600_000 || sum.CPUMs != 5*1800_000 {
			t.Errorf("%d of %d ms", sum.CPUMs, sum.AllocCPUMs)
		}
	})
}

func TestAccountsSurviveRestartsAndAStoreThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newBookkeeper(t)
		from := time.Now().Add(-time.Hour)
		k.work(time.Hour, time.Minute)
		k.reopen()
		k.work(time.Hour, time.Minute)
		k.fail = errors.New("the disk is full")
		k.work(time.Hour, time.Minute)
		k.fail = nil
		k.work(time.Minute, time.Minute)
		_, sum := k.ask(session.AccountSpan{From: from})
		if want := (3*time.Hour + time.Minute).Milliseconds(); sum.AllocCPUMs != 2*want || sum.CPUMs != want/2 {
			t.Errorf("%d of %d ms, in truth %d of %d", sum.CPUMs, sum.AllocCPUMs, want/2, 2*want)
		}
		// What was not stored before a crash is measured again from the counters.
		k.fail = errors.New("the machine died")
		k.work(30*time.Minute, time.Minute)
		k.fail = nil
		k.reopen()
		k.work(time.Minute, time.Minute)
		_, sum = k.ask(session.AccountSpan{From: from})
		if want := (3*time.Hour + 32*time.Minute).Milliseconds(); sum.AllocCPUMs != 2*want || sum.CPUMs != want/2 {
			t.Errorf("after a crash %d of %d ms, in truth %d of %d", sum.CPUMs, sum.AllocCPUMs, want/2, 2*want)
		}
	})
}

func TestOldBucketsArePrunedAndDaysKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newBookkeeper(t)
		from := time.Now().Add(-time.Hour)
		k.work(120*24*time.Hour, 6*time.Hour)
		k.live = nil
		k.work(time.Hour, time.Minute)
		count := func(prefix string) (n int) {
			if err := k.store.EachAccount(prefix, prefix+"~",
				func(string, []byte) error { n++; return nil }); err != nil {
				t.Fatal(err)
			}
			return n
		}
		for _, prefix := range []string{keyCPUBucket, keyRequestBucket} {
			if n := count(prefix + string(gpu.SpanMinute)); n > 26*60 {
				t.Errorf("%d minutes are kept of %s", n, prefix)
			}
			if n := count(prefix + string(gpu.SpanHour)); n > 91*24 || n < 4*89 {
				t.Errorf("%d hours are kept of %s", n, prefix)
			}
			if n := count(prefix + string(gpu.SpanDay)); n < 120 {
				t.Errorf("%d days are kept of %s", n, prefix)
			}
		}
		served, err := k.books.ReadServices(k.clock.now(), session.AccountSpan{From: from})
		if err != nil || len(served) != 1 || served[0].Answered != 120*4+60 {
			t.Errorf("in all %+v, %v", served, err)
		}
		if rows, sum := k.ask(session.AccountSpan{From: from}); len(rows) != 1 || sum.AllocCPUMs < 2*120*24*3600_000 ||
			rows[0].Name != "one" {
			t.Errorf("in all %+v", rows)
		}
	})
}

func TestNothingIsCountedWhileAnEndIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newBookkeeper(t)
		k.work(10*time.Second, time.Second)
		end := k.books.Ending(k.live[0].ID)
		k.work(20*time.Second, time.Second) // a slow disk: others are counted meanwhile
		s := k.live[0]
		s.Status, s.TerminatedAt = session.Terminated, &end
		if err := k.store.Update(func(tx *store.Tx) error { return tx.Put(&s) }); err != nil {
			t.Fatal(err)
		}
		k.live = nil
		k.work(2*time.Second, time.Second)
		if _, sum := k.ask(session.AccountSpan{From: time.Now().Add(-time.Hour)}); sum.AllocCPUMs != 20_000 {
			t.Errorf("two CPUs held for 10 s are counted as %d ms", sum.AllocCPUMs)
		}
		if n := len(k.books.seals.at); n > 0 {
			t.Errorf("%d ends are remembered", n)
		}
	})
}

func TestWhoeverRanIsCountedOnce(t *testing.T) {
	ended := func(k *bookkeeper, id session.ID, length time.Duration) session.Session {
		end := time.Now()
		began := end.Add(-length)
		s := k.live[0]
		s.ID, s.Name, s.StartedAt = id, string(id), &began
		err := k.store.Update(func(tx *store.Tx) error {
			if err := tx.Create(&s, ""); err != nil {
				return err
			}
			s.Status, s.TerminatedAt, s.Grants = session.Terminated, &end, k.live[0].Grants
			return tx.Put(&s)
		})
		if err != nil {
			k.t.Fatal(err)
		}
		return s
	}
	of := func(k *bookkeeper, id session.ID) session.Account {
		k.t.Helper()
		rows, _ := k.ask(session.AccountSpan{From: time.Now().Add(-24 * time.Hour)})
		if i := slices.IndexFunc(rows, func(a session.Account) bool { return a.Session == id }); i >= 0 {
			return rows[i]
		}
		return session.Account{}
	}
	for name, test := range map[string]func(*testing.T, *bookkeeper){
		"who ran and ended while the agent was dead": func(t *testing.T, k *bookkeeper) {
			ended(k, "whiledead000", 7*time.Second)
			for range 3 {
				time.Sleep(time.Second)
				k.reopen()
				if got := of(k, "whiledead000"); got.AllocCPUMs != 14_000 || got.Name != "whiledead000" ||
					got.Label != "thesis" {
					t.Errorf("counted as %+v", got)
				}
			}
		},
		"who ended before two samples": func(t *testing.T, k *bookkeeper) {
			s := ended(k, "tooquick0000", 100*time.Millisecond)
			began := s
			began.Status, began.TerminatedAt = session.Running, nil
			k.books.Begin(k.clock.now(), began)
			k.work(10*time.Second, time.Second)
			if got := of(k, "tooquick0000"); got.AllocCPUMs != 200 {
				t.Errorf("counted as %+v", got)
			}
		},
		"who ended before what was asked is answered": func(t *testing.T, k *bookkeeper) {
			old := k.live
			s := ended(k, "answeredlate", 3*time.Second)
			began := s
			began.Status, began.TerminatedAt = session.Running, nil
			b := k.books
			for range 3 { // lists of before and after its end take turns
				b.Follow(k.clock.now(), append([]session.Session{began}, old...))
				time.Sleep(time.Second)
				b.Follow(k.clock.now(), old)
				_ = k.books.Checkpoint(k.clock.now(), false) // its failure shows in what is counted
			}
			if got := of(k, "answeredlate"); got.AllocCPUMs != 6000 {
				t.Errorf("counted as %+v", got)
			}
		},
		"who started after what was asked": func(t *testing.T, k *bookkeeper) {
			k.books.Follow(k.clock.now(), nil)
			before := of(k, k.live[0].ID).AllocCPUMs
			k.work(10*time.Second, time.Second)
			if got := of(k, k.live[0].ID).AllocCPUMs; got != before+20_000 {
				t.Errorf("%d ms more are counted, want 20000", got-before)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newBookkeeper(t)
				k.work(time.Minute, time.Second)
				test(t, k)
			})
		})
	}
}
