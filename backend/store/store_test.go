package store

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"syscall"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"slipway/backend/session"
	"slipway/gpu"
)

var update = flag.Bool("update", false, "write the database of the current schema to testdata")

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func open(t *testing.T, path string, fault func(string) error) *Store {
	t.Helper()
	s, err := Open(Config{Path: path, Fault: fault})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func fresh(t *testing.T) *Store { return open(t, filepath.Join(t.TempDir(), "agent.db"), nil) }

func pending(id string) session.Session {
	return session.Session{ID: session.ID(id), Name: "name-" + id, Owner: "ada", Status: session.Pending,
		End: session.End{Result: session.ResultUndefined}, CreatedAt: now,
		Spec: session.Spec{Type: session.Interactive, Image: "debian",
			Resources: session.Resources{CPU: 1, Memory: gpu.GiB}}}
}

func create(t *testing.T, s *Store, record session.Session, key string) session.Session {
	t.Helper()
	if err := s.Update(func(tx *Tx) error { return tx.Create(&record, key) }); err != nil {
		t.Fatal(err)
	}
	return record
}

// move brings a session to a status through the table, with what it needs.
func move(t *testing.T, s *Store, id session.ID, statuses ...session.Status) session.Session {
	t.Helper()
	var record session.Session
	err := s.Update(func(tx *Tx) (err error) {
		if record, err = tx.Get(id); err != nil {
			return err
		}
		for _, status := range statuses {
			record.Status = status
			if status.Terminal() {
				record.TerminatedAt, record.Reason = &now, session.ReasonUser
			}
			if err := tx.Put(&record); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return record
}

func sound(t *testing.T, s *Store) {
	t.Helper()
	if problems, err := s.Check(); err != nil || len(problems) > 0 {
		t.Errorf("audit: %q, %v", problems, err)
	}
}

func TestWhatIsStoredIsThereAfterReopening(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dir", "agent.db")
	s := open(t, path, nil)
	want := create(t, s, pending("aaaaaaaaaaaa"), "key")
	instance := s.Instance()
	s.Close()
	s = open(t, path, nil)
	got, err := s.Get(want.ID)
	if err != nil || !reflect.DeepEqual(got, want) || s.Instance() != instance || len(instance) != 16 {
		t.Errorf("got %+v, %v, instance %s", got, err, s.Instance())
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	sound(t, s)
}

func TestOneFileHasOneUser(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.db")
	open(t, path, nil)
	if _, err := Open(Config{Path: path}); session.CodeOf(err) != session.CodeStoreLocked {
		t.Errorf("a second user got %v", err)
	}
}

func TestDamagedFileIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.db")
	if err := os.WriteFile(path, make([]byte, 1<<16), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Config{Path: path}); session.CodeOf(err) != session.CodeStoreFailed {
		t.Errorf("got %v", err)
	}
}

func TestUnknownSessionIsNotFound(t *testing.T) {
	s := fresh(t)
	if _, err := s.Get("nobody"); session.CodeOf(err) != session.CodeSessionNotFound {
		t.Errorf("Get: %v", err)
	}
	if _, err := s.History("nobody"); session.CodeOf(err) != session.CodeSessionNotFound {
		t.Errorf("History: %v", err)
	}
}

func TestKeyLeadsToTheFirstLaunch(t *testing.T) {
	s := fresh(t)
	first := create(t, s, pending("aaaaaaaaaaaa"), "wish")
	got, found, err := s.ByKey("ada", "wish")
	if err != nil || !found || got.ID != first.ID {
		t.Errorf("got %v %v %v", got.ID, found, err)
	}
	if _, found, err := s.ByKey("bob", "wish"); found || err != nil {
		t.Errorf("another owner's key leads to it: %v", err)
	}
	second := pending("bbbbbbbbbbbb")
	if err := s.Update(func(tx *Tx) error {
		return tx.Create(&second,
			"wish")
	}); session.CodeOf(err) != session.CodeStoreConflict {
		t.Errorf("the key was taken twice: %v", err)
	}
	sound(t, s)
}

func TestNamesAreUniqueAmongLiveSessionsOfAnOwner(t *testing.T) {
	s := fresh(t)
	first := create(t, s, pending("aaaaaaaaaaaa"), "")
	second := pending("bbbbbbbbbbbb")
	second.Name = first.Name
	err := s.Update(func(tx *Tx) error { return tx.Create(&second, "") })
	var e *session.Error
	if !errors.As(err, &e) || e.Code != session.CodeNameTaken || len(e.Fields) != 1 || e.Fields[0].Field != "name" {
		t.Fatalf("got %v", err)
	}
	second.Owner = "bob"
	create(t, s, second, "")
	move(t, s, first.ID, session.Cancelled)
	third := pending("cccccccccccc")
	third.Name = first.Name
	third = create(t, s, third, "")
	err = s.Update(func(tx *Tx) error {
		third.Name = "another"
		return tx.Put(&third)
	})
	if err != nil {
		t.Fatal(err)
	}
	fourth := pending("dddddddddddd")
	fourth.Name = first.Name
	create(t, s, fourth, "")
	sound(t, s)
}

func TestPutComparesRevisionsAndStatuses(t *testing.T) {
	s := fresh(t)
	old := create(t, s, pending("aaaaaaaaaaaa"), "")
	put := func(r session.Session) error { return s.Update(func(tx *Tx) error { return tx.Put(&r) }) }
	now := old
	now.Name = "renamed"
	if err := put(now); err != nil {
		t.Fatal(err)
	}
	if err := put(now); session.CodeOf(err) != session.CodeStoreConflict {
		t.Errorf("an outdated record was stored: %v", err)
	}
	now, _ = s.Get(old.ID)
	now.Status = session.Running
	if err := put(now); session.CodeOf(err) != session.CodeStoreTransition {
		t.Errorf("PENDING became RUNNING: %v", err)
	}
	move(t, s, old.ID, session.Cancelled)
	now, _ = s.Get(old.ID)
	now.Status = session.Pending
	if err := put(now); session.CodeOf(err) != session.CodeStoreTransition {
		t.Errorf("a terminal status was left: %v", err)
	}
	sound(t, s)
}

func TestBooksMoveWithQueueAndGrantsOnly(t *testing.T) {
	s := fresh(t)
	books := func() uint64 { b, _ := s.Books(); return b }
	record := create(t, s, pending("aaaaaaaaaaaa"), "")
	b := books()
	if b == 0 {
		t.Error("a new session is not in the books")
	}
	change := func(what string, moves bool, fn func(*session.Session)) {
		t.Helper()
		record, _ = s.Get(record.ID)
		fn(&record)
		if err := s.Update(func(tx *Tx) error { return tx.Put(&record) }); err != nil {
			t.Fatal(what, err)
		}
		if moved := books() != b; moved != moves {
			t.Errorf("%s: moved %v", what, moved)
		}
		b = books()
	}
	change("rename", false, func(r *session.Session) { r.Name = "other" })
	change("grants", true, func(r *session.Session) {
		r.Status, r.Grants = session.Scheduled, session.Grants{CPUs: []int{1}, Memory: gpu.GiB}
	})
	change("status", false, func(r *session.Session) { r.Status = session.Preparing })
	change("back to the queue", true, func(r *session.Session) {
		r.Status, r.Grants = session.Pending,
			session.Grants{}
	})
	change("end", true, func(r *session.Session) {
		r.Status, r.TerminatedAt, r.Reason = session.Cancelled, &now, session.ReasonUser
	})
	if err := s.Update(func(tx *Tx) error { return tx.Expect(b) }); err != nil {
		t.Error(err)
	}
	err := s.Update(func(tx *Tx) error { return tx.Expect(b - 1) })
	if session.CodeOf(err) != session.CodeStoreConflict {
		t.Errorf("outdated books pass: %v", err)
	}
	sound(t, s)
}

func fill(t testing.TB, s *Store, finished, live int) {
	t.Helper()
	const batch = 500
	for from := 0; from < finished+live; from += batch {
		err := s.Update(func(tx *Tx) error {
			for i := from; i < min(from+batch, finished+live); i++ {
				r := pending(fmt.Sprintf("s%011d", i))
				if i < finished {
					r.Status, r.TerminatedAt, r.Reason = session.Terminated, &now, session.ReasonUser
				}
				if err := tx.Create(&r, fmt.Sprintf("key%d", i)); err != nil {
					return err
				}
				if err := tx.PutPhase(&session.Phase{Session: r.ID, Phase: session.PhaseSchedule,
					Attempts: 1}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func ids(list []session.Session) []string {
	got := []string{}
	for _, s := range list {
		got = append(got, string(s.ID[8:]))
	}
	return got
}

func TestListsNewestFirstInPages(t *testing.T) {
	s := fresh(t)
	fill(t, s, 5, 3)
	move(t, s, "s00000000006", session.Cancelled)
	for _, c := range []struct {
		filter session.Filter
		want   []string
	}{
		{session.Filter{}, []string{"0007", "0006", "0005", "0004", "0003", "0002", "0001", "0000"}},
		{session.Filter{Live: true, Finished: true, Limit: 2, Offset: 1}, []string{"0006", "0005"}},
		{session.Filter{Live: true}, []string{"0007", "0005"}},
		{session.Filter{Finished: true, Limit: 3}, []string{"0006", "0004", "0003"}},
		{session.Filter{Finished: true, Offset: 5}, []string{"0000"}},
		{session.Filter{Offset: 100}, []string{}},
	} {
		got, err := s.List(c.filter)
		if err != nil || !reflect.DeepEqual(ids(got), c.want) {
			t.Errorf("%+v: got %v, %v, want %v", c.filter, ids(got), err, c.want)
		}
	}
	live, _, err := s.Live()
	if err != nil || !reflect.DeepEqual(ids(live), []string{"0005", "0007"}) {
		t.Errorf("live in the order of arrival: %v, %v", ids(live), err)
	}
	sound(t, s)
}

func TestPageOfTenThousand(t *testing.T) {
	s := fresh(t)
	fill(t, s, 10_000, 5)
	page, err := s.List(session.Filter{Finished: true, Limit: 100, Offset: 9_000})
	if err != nil || len(page) != 100 { // how long it takes is measured by the benchmark
		t.Errorf("%d sessions, %v", len(page), err)
	}
	sound(t, s)
}

func TestPurgeRemovesTheOldestAndAllOfTheirs(t *testing.T) {
	s := fresh(t)
	fill(t, s, 10, 1)
	var removed []session.Session
	err := s.Update(func(tx *Tx) (err error) {
		removed, err = purge(tx, 6, 3)
		return err
	})
	if err != nil || len(removed) != 3 || removed[0].ID != "s00000000000" {
		t.Fatalf("removed %v, %v", removed, err)
	}
	if _, found, _ := s.ByKey("ada", "key0"); found {
		t.Error("the key of a purged session is kept")
	}
	if _, err := s.Get(removed[2].ID); session.CodeOf(err) != session.CodeSessionNotFound {
		t.Errorf("a purged session is there: %v", err)
	}
	if err := s.Update(func(tx *Tx) (err error) { removed, err = purge(tx, 6, 100); return err }); err != nil ||
		len(removed) != 1 {
		t.Errorf("then %v, %v", removed, err)
	}
	if n, err := s.Finished(); n != 6 || err != nil {
		t.Errorf("%d are kept, %v", n, err)
	}
	sound(t, s)
}

// purge removes what is too much by the books of one change.
func purge(tx *Tx, keep, limit int) ([]session.Session, error) {
	ids, err := surplus(tx.tx, keep, limit)
	if err != nil {
		return nil, err
	}
	return tx.Purge(ids)
}

func TestWhatIsPurgedIsOfWhoeverHasMost(t *testing.T) {
	s := fresh(t)
	fill(t, s, 30, 0)
	err := s.Update(func(tx *Tx) error {
		for i := range 9 { // the newest, so that by age alone theirs would be the last to go
			r := pending(fmt.Sprintf("t%011d", i))
			r.Owner = []string{"ann", "bob", "bob"}[i%3]
			r.Status, r.TerminatedAt, r.Reason = session.Terminated, &now, session.ReasonUser
			if err := tx.Create(&r, ""); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for keep, want := range map[int]map[string]int{38: {"ada": 29, "bob": 6, "ann": 3},
		15: {"ada": 6, "bob": 6, "ann": 3}, 10: {"ada": 3, "bob": 4, "ann": 3}} {
		ids, err := s.Surplus(keep, 100)
		left := map[string]int{"ada": 30, "bob": 6, "ann": 3}
		for _, id := range ids {
			r, err := s.Get(id)
			if err != nil {
				t.Fatal(err)
			}
			left[r.Owner]--
		}
		if err != nil || !maps.Equal(left, want) {
			t.Errorf("of %d there stay %v, not %v; %v", keep, left, want, err)
		}
		if ids[0] != "s00000000000" {
			t.Errorf("the first to go is %s", ids[0])
		}
	}
}

func TestPurgeKeepsWhatHasAContainer(t *testing.T) {
	s := fresh(t)
	fill(t, s, 4, 0)
	var removed []session.Session
	err := s.Update(func(tx *Tx) error {
		for _, id := range []session.ID{"s00000000000", "s00000000002"} {
			r, err := tx.Get(id)
			if err != nil {
				return err
			}
			r.EndImage = &session.EndImage{State: session.WorkFailed, Kept: true}
			if err := tx.Put(&r); err != nil {
				return err
			}
		}
		var err error
		removed, err = purge(tx, 1, 100)
		return err
	})
	if err != nil || len(removed) != 2 || removed[0].ID != "s00000000001" || removed[1].ID != "s00000000003" {
		t.Errorf("removed %v, %v", removed, err)
	}
	if n, err := s.Finished(); n != 2 || err != nil {
		t.Errorf("%d are kept, %v", n, err)
	}
	sound(t, s)
}

func TestPhasesKeepTheirOrder(t *testing.T) {
	s := fresh(t)
	record := create(t, s, pending("aaaaaaaaaaaa"), "")
	err := s.Update(func(tx *Tx) error {
		for i := range 12 {
			if err := tx.PutPhase(&session.Phase{Session: record.ID, Phase: session.PhaseName(fmt.Sprint(i)),
				Attempts: 1}); err != nil {
				return err
			}
		}
		phases, err := tx.Phases(record.ID)
		if err != nil {
			return err
		}
		phases[3].Attempts = 2
		return tx.PutPhase(&phases[3])
	})
	if err != nil {
		t.Fatal(err)
	}
	phases, err := s.History(record.ID)
	if err != nil || len(phases) != 12 || phases[11].Phase != "11" || phases[3].Attempts != 2 {
		t.Errorf("%+v, %v", phases, err)
	}
	sound(t, s)
}

func TestFailureStoresNothing(t *testing.T) {
	for point, stored := range map[string]bool{"begin": false, "commit": false, "committed": true} {
		t.Run(point, func(t *testing.T) {
			var fail error
			s := open(t, filepath.Join(t.TempDir(), "agent.db"), func(at string) error {
				if at == point {
					return fail
				}
				return nil
			})
			create(t, s, pending("aaaaaaaaaaaa"), "")
			fail = fmt.Errorf("write: %w", syscall.ENOSPC)
			record := pending("bbbbbbbbbbbb")
			if err := s.Update(func(tx *Tx) error { return tx.Create(&record, "key") }); session.CodeOf(
				err) != session.CodeDiskFull || !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("a full disk is %v", err)
			}
			fail = nil
			if _, err := s.Get(record.ID); (err == nil) != stored {
				t.Errorf("stored: %v", err)
			}
			sound(t, s)
		})
	}
}

func TestPanicInAnUpdateStoresNothing(t *testing.T) {
	s := fresh(t)
	func() {
		defer func() { _ = recover() }()
		record := pending("aaaaaaaaaaaa")
		_ = s.Update(func(tx *Tx) error {
			if err := tx.Create(&record, ""); err != nil {
				t.Error(err)
			}
			panic("dead")
		})
	}()
	create(t, s, pending("aaaaaaaaaaaa"), "")
	sound(t, s)
}

func TestCheckFindsWhatIsWrong(t *testing.T) {
	for name, spoil := range map[string]func(*bolt.Tx) error{
		"record gone": func(tx *bolt.Tx) error { return tx.Bucket(bucketSessions).Delete([]byte("aaaaaaaaaaaa")) },
		"index gone":  func(tx *bolt.Tx) error { return tx.Bucket(bucketLive).Delete(numberKey(1)) },
		"index double": func(tx *bolt.Tx) error {
			return tx.Bucket(bucketFinished).Put(numberKey(1),
				[]byte("aaaaaaaaaaaa"))
		},
		"name gone": func(tx *bolt.Tx) error {
			return tx.Bucket(bucketNames).
				Delete(pair("ada", "name-aaaaaaaaaaaa"))
		},
		"key astray": func(tx *bolt.Tx) error {
			return tx.Bucket(bucketKeys).Put(pair("ada", "other"), []byte("aaaaaaaaaaaa"))
		},
		"key gone": func(tx *bolt.Tx) error { return tx.Bucket(bucketKeys).Delete(pair("ada", "key")) },
		"phase astray": func(tx *bolt.Tx) error {
			return tx.Bucket(bucketPhases).Put([]byte("nobody/1"),
				[]byte("{}"))
		},
		"record garbled": func(tx *bolt.Tx) error {
			return tx.Bucket(bucketSessions).Put([]byte("aaaaaaaaaaaa"),
				[]byte("{"))
		},
		"miscounted": func(tx *bolt.Tx) error { return (&Tx{tx}).count(3) },
		"CPU promised twice": func(tx *bolt.Tx) error {
			for i, id := range []string{"bbbbbbbbbbbb", "cccccccccccc"} {
				r := pending(id)
				r.Status, r.Grants.CPUs = session.Scheduled, []int{0, i + 1}
				if err := (&Tx{tx}).Create(&r, ""); err != nil {
					return err
				}
			}
			return nil
		},
		"grants while pending": func(tx *bolt.Tx) error {
			r := pending("bbbbbbbbbbbb")
			r.Grants.Memory = 1
			return (&Tx{tx}).Create(&r, "")
		},
		"an end without a reason": func(tx *bolt.Tx) error {
			r := pending("bbbbbbbbbbbb")
			r.Status = session.Failed
			return (&Tx{tx}).Create(&r, "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := fresh(t)
			create(t, s, pending("aaaaaaaaaaaa"), "key")
			sound(t, s)
			if err := s.db.Update(spoil); err != nil {
				t.Fatal(err)
			}
			if problems, err := s.Check(); err != nil || len(problems) == 0 {
				t.Errorf("nothing was found: %v", err)
			}
		})
	}
}

func TestRandomChangesStaySound(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	path := filepath.Join(t.TempDir(), "agent.db")
	die := 0
	fault := func(string) error {
		if die--; die == 0 {
			return errors.New("dead")
		}
		return nil
	}
	s := open(t, path, fault)
	next := 0
	for range 400 {
		die = r.IntN(12)
		_ = s.Update(func(tx *Tx) error {
			for range 1 + r.IntN(4) {
				if err := randomChange(tx, r, &next); err != nil {
					return err
				}
			}
			return nil
		})
		if r.IntN(40) == 0 {
			s.Close()
			s = open(t, path, fault)
		}
	}
	sound(t, s)
	if next < 100 {
		t.Errorf("only %d sessions were made", next)
	}
}

func randomChange(tx *Tx, r *rand.Rand, next *int) error {
	switch r.IntN(4) {
	case 0:
		*next++
		s := pending(fmt.Sprintf("r%011d", *next))
		s.Name = fmt.Sprintf("name-%d", r.IntN(20))
		return tx.Create(&s, fmt.Sprint("k", *next))
	case 1:
		_, err := purge(tx, 10, 2)
		return err
	}
	s, err := tx.Get(session.ID(fmt.Sprintf("r%011d", 1+r.IntN(*next+1))))
	if err != nil {
		return err
	}
	if s.Status == session.Pending && r.IntN(2) == 0 {
		s.Status = session.Scheduled
	} else {
		s.Status, s.TerminatedAt, s.Reason = session.Cancelled, &now, session.ReasonUser
	}
	if err := tx.Put(&s); err != nil {
		return err
	}
	return tx.PutPhase(&session.Phase{Session: s.ID, Phase: session.PhaseSchedule, Attempts: 1})
}

func TestShelf(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hub.db")
	shelf, err := OpenShelf(path)
	if err != nil {
		t.Fatal(err)
	}
	value := map[string]int{"untouched": 1}
	if found, err := shelf.Load("settings", &value); found || err != nil || value["untouched"] != 1 {
		t.Errorf("nothing saved: %v %v %v", found, err, value)
	}
	if err := shelf.Save("settings", map[string]int{"a": 2}); err != nil {
		t.Fatal(err)
	}
	if err := shelf.Save("bad", func() {}); session.CodeOf(err) != session.CodeStoreWrite {
		t.Errorf("what JSON cannot hold: %v", err)
	}
	if err := shelf.Close(); err != nil {
		t.Fatal(err)
	}
	if shelf, err = OpenShelf(path); err != nil {
		t.Fatal(err)
	}
	defer shelf.Close()
	value = nil
	if found, err := shelf.Load("settings", &value); !found || err != nil || value["a"] != 2 {
		t.Errorf("saved: %v %v %v", found, err, value)
	}
	var number int
	if _, err := shelf.Load("settings", &number); session.CodeOf(err) != session.CodeStoreRead {
		t.Errorf("another type: %v", err)
	}
}

func BenchmarkUpdate(b *testing.B) {
	s, err := Open(Config{Path: filepath.Join(b.TempDir(), "agent.db")})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	fill(b, s, 10_000, 1)
	for b.Loop() {
		err := s.Update(func(tx *Tx) error {
			r, err := tx.Get("s00000010000")
			if err != nil {
				return err
			}
			return tx.Put(&r)
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkListPage(b *testing.B) {
	s, err := Open(Config{Path: filepath.Join(b.TempDir(), "agent.db")})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	fill(b, s, 10_000, 5)
	for b.Loop() {
		if _, err := s.List(session.Filter{Finished: true, Limit: 100, Offset: 9_000}); err != nil {
			b.Fatal(err)
		}
	}
}
