package store

import (
	"testing"
	"time"

	"slipway/backend/session"
)

func TestASessionIsMovedOnceAndRemembered(t *testing.T) {
	s := fresh(t)
	create(t, s, pending("aaaaaaaaaaaa"), "key")
	create(t, s, pending("bbbbbbbbbbbb"), "")
	move := func(id, to session.ID, at time.Time) (gone session.Session, err error) {
		err = s.Update(func(tx *Tx) (err error) {
			gone, err = tx.Move(id, to, at)
			return err
		})
		return gone, err
	}
	if gone, err := move("aaaaaaaaaaaa", "cccccccccccc", now); err != nil || gone.ID != "aaaaaaaaaaaa" {
		t.Fatalf("moved %+v, %v", gone, err)
	}
	if gone, err := move("aaaaaaaaaaaa", "cccccccccccc", now); err != nil || gone.ID != "" {
		t.Errorf("moved again: %+v, %v", gone, err)
	}
	if _, err := move("aaaaaaaaaaaa", "dddddddddddd", now); session.CodeOf(err) != session.CodeSessionConflict {
		t.Errorf("moved to two: %v", err)
	}
	if _, err := s.Get("aaaaaaaaaaaa"); session.CodeOf(err) != session.CodeSessionNotFound {
		t.Errorf("it is still there: %v", err)
	}
	live, _, err := s.Live()
	if err != nil || len(live) != 1 {
		t.Errorf("%d sessions are live, %v", len(live), err)
	}
	sound(t, s)
	again := pending("eeeeeeeeeeee")
	again.Name = "name-aaaaaaaaaaaa" // whose name is free
	if err := s.Update(func(tx *Tx) error {
		repeated := again
		return tx.Create(&repeated, "key")
	}); session.CodeOf(err) != session.CodeSessionConflict {
		t.Errorf("launched again with the key of the one that was moved: %v", err)
	}
	again.From = "cccccccccccc"
	create(t, s, again, "key") // it comes back
	if one, found, err := s.ByKey(again.Owner, "key"); err != nil || !found || one.ID != again.ID {
		t.Errorf("the key leads to %+v, %v, %v", one, found, err)
	}
	sound(t, s)
	if _, err := move("eeeeeeeeeeee", "cccccccccccc", now.Add(movesKept+time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := move("aaaaaaaaaaaa", "cccccccccccc", now); session.CodeOf(err) != session.CodeSessionNotFound {
		t.Errorf("an old move is remembered: %v", err)
	}
	sound(t, s)
	if _, err := move("bbbbbbbbbbbb", "cccccccccccc", now.Add(3*movesKept)); err != nil {
		t.Fatal(err)
	}
	create(t, s, pending("ffffffffffff"), "key") // of which nothing is known any more
	sound(t, s)
}

func TestWhatCannotBeMovedStays(t *testing.T) {
	s := fresh(t)
	create(t, s, pending("aaaaaaaaaaaa"), "")
	dependent := pending("bbbbbbbbbbbb")
	dependent.DependsOn = []session.ID{"aaaaaaaaaaaa"}
	create(t, s, dependent, "")
	create(t, s, pending("cccccccccccc"), "")
	move(t, s, "cccccccccccc", session.Scheduled)
	for _, id := range []session.ID{"aaaaaaaaaaaa", "cccccccccccc"} {
		err := s.Update(func(tx *Tx) error {
			_, err := tx.Move(id, "dddddddddddd", now)
			return err
		})
		if session.CodeOf(err) != session.CodeSessionConflict {
			t.Errorf("%s was moved: %v", id, err)
		}
	}
	sound(t, s)
}
