package store

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"slipway/backend/session"
)

func TestAccountsChangeTogetherOrNotAtAll(t *testing.T) {
	fail := ""
	path := filepath.Join(t.TempDir(), "agent.db")
	s, err := Open(Config{Path: path, Fault: func(point string) error {
		if point == fail {
			return errors.New("the machine died")
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { s.Close() }()
	put := func(n int) error {
		return s.Update(func(tx *Tx) error {
			for _, key := range []string{"state", "row/a"} {
				if err := tx.PutAccount(key, n); err != nil {
					return err
				}
			}
			return nil
		})
	}
	var n int
	if found, err := s.Account("state", &n); found || err != nil {
		t.Errorf("before anything was kept: %t, %v", found, err)
	}
	if err := put(1); err != nil {
		t.Fatal(err)
	}
	fail = "commit"
	if err := put(2); err == nil {
		t.Error("a failed commit was kept quiet")
	}
	fail = ""
	s.Close()
	if s, err = Open(Config{Path: path}); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"state", "row/a"} {
		if found, err := s.Account(key, &n); !found || err != nil || n != 1 {
			t.Errorf("%s is %d (%t, %v)", key, n, found, err)
		}
	}
	var text string
	if _, err := s.Account("state", &text); session.CodeOf(err) != session.CodeStoreRead {
		t.Errorf("a number read as a text: %v", err)
	}
}

func TestAccountsAreReadAndPrunedByRange(t *testing.T) {
	s, err := Open(Config{Path: filepath.Join(t.TempDir(), "agent.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	keys := []string{"hour/01", "hour/02", "hour/03", "minute/01", "state"}
	prune := func(first, last string, limit int) (n int) {
		if err := s.Update(func(tx *Tx) (err error) {
			n, err = tx.PruneAccounts(first, last, limit)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := prune("a", "z", 10); n != 0 {
		t.Errorf("%d removed from nothing", n)
	}
	if err := s.Update(func(tx *Tx) error {
		for _, key := range keys {
			if err := tx.PutAccount(key, key); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	read := func(first, last string) (found []string) {
		if err := s.EachAccount(first, last,
			func(key string, _ []byte) error { found = append(found, key); return nil }); err != nil {
			t.Fatal(err)
		}
		return found
	}
	if found := read("hour/02", "hour/~"); !slices.Equal(found, keys[1:3]) {
		t.Errorf("read %v", found)
	}
	if n := prune("hour/", "hour/03", 1); n != 1 {
		t.Errorf("%d removed at a limit of 1", n)
	}
	if n := prune("hour/", "hour/03", 10); n != 1 {
		t.Errorf("%d removed of 1", n)
	}
	if found := read("", "~"); !slices.Equal(found, keys[2:]) {
		t.Errorf("left are %v", found)
	}
	if problems, err := s.Check(); err != nil || len(problems) > 0 {
		t.Errorf("audit: %v %v", problems, err)
	}
}
