package demo

import (
	"encoding/json"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"slipway/backend/agent"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

// relived is what a store holds of the past of a machine.
type relived struct {
	sessions []session.Session
	rows     map[string]string
	gpus     gpu.State
}

func relive(t *testing.T, m Machine, now time.Time) relived {
	t.Helper()
	books, err := store.Open(store.Config{Path: filepath.Join(t.TempDir(), "agent.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer books.Close()
	past, err := Past(m, now)
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Recount(books, past, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	if problems, err := books.Check(); err != nil || len(problems) > 0 {
		t.Errorf("the store: %q, %v", problems, err)
	}
	r := relived{rows: map[string]string{}}
	if _, err := books.Account("gpu/state", &r.gpus); err != nil {
		t.Fatal(err)
	}
	if errs := gpu.NewAccounts(gpu.AccountsConfig{}, r.gpus).Check(); len(errs) > 0 {
		t.Errorf("the books: %v", errs)
	}
	err = books.EachAccount("gpu/row/", "gpu/row0", func(key string, data []byte) error {
		r.rows[key] = string(data)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.sessions, err = books.List(session.Filter{}); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestThePastBalancesAndIsThatOfTheSeed(t *testing.T) {
	now := time.Date(2026, 5, 20, 15, 0, 0, 0, time.UTC)
	o := Options{Seed: 3}
	for _, m := range []Machine{Workstation(o), Lab(o)} {
		t.Run(m.Name, func(t *testing.T) {
			first, second := relive(t, m, now), relive(t, m, now)
			if len(first.sessions) < 15 {
				t.Errorf("%d sessions", len(first.sessions))
			}
			for i, s := range first.sessions {
				if s.TerminatedAt.After(now) || s.CreatedAt.Before(now.AddDate(0, 0, -pastDays-1)) {
					t.Errorf("%s ran from %s to %s", s.Name, s.CreatedAt, s.TerminatedAt)
				}
				if i < len(second.sessions) && s.ID != second.sessions[i].ID {
					t.Errorf("%s is %s, and then %s", s.Name, s.ID, second.sessions[i].ID)
				}
			}
			for key, row := range first.rows {
				if second.rows[key] != row {
					t.Errorf("%s: %s, and then %s", key, row, second.rows[key])
				}
			}
			first.checkRows(t)
		})
	}
}

// checkRows looks whether each session that held a device has a row that says so,
// and for how long.
func (r relived) checkRows(t *testing.T) {
	t.Helper()
	held := map[string]gpu.Counters{}
	for key, text := range r.rows {
		var row gpu.Row
		if err := json.Unmarshal([]byte(text), &row); err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		sum := held[row.Session]
		sum.Add(row.Counters)
		held[row.Session] = sum
	}
	for _, s := range r.sessions {
		var share gpu.Share
		for _, g := range s.Grants.GPUs {
			share += g.Share
		}
		c, want := held[string(s.ID)], int64(share)*s.TerminatedAt.Sub(*s.StartedAt).Milliseconds()/1000
		if c.AllocGPUMs != want {
			t.Errorf("%s held %d GPU-ms, not %d", s.Name, c.AllocGPUMs, want)
		}
		if share > 0 && (c.BusyGPUMs == 0 || c.EnergyDyn == 0 || c.GapMs > 0) {
			t.Errorf("%s: %+v", s.Name, c)
		}
	}
}
