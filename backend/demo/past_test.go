package demo

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

// relived is what a store holds of the past of a machine.
type relived struct {
	sessions []session.Session
	phases   map[session.ID][]session.Phase
	logs     map[session.ID]string
	rows     map[string]string
	gpus     gpu.State
}

func relive(t *testing.T, m Machine, now time.Time) relived {
	t.Helper()
	dir := t.TempDir()
	books, err := store.Open(store.Config{Path: filepath.Join(dir, "agent.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer books.Close()
	m.Time = Time{Speed: 1, Real: time.Now(), Shown: now}
	for range 2 { // the second time it is there already
		if err := AddPast(m, dir, books); err != nil {
			t.Fatal(err)
		}
	}
	if problems, err := books.Check(); err != nil || len(problems) > 0 {
		t.Errorf("the store: %q, %v", problems, err)
	}
	r := relived{rows: map[string]string{}, phases: map[session.ID][]session.Phase{}, logs: map[session.ID]string{}}
	if _, err := books.Account("gpu/state", &r.gpus); err != nil {
		t.Fatal(err)
	}
	if errs := gpu.NewAccounts(r.gpus).Check(); len(errs) > 0 {
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
	for _, s := range r.sessions {
		if r.phases[s.ID], err = books.History(s.ID); err != nil {
			t.Fatal(err)
		}
		log, err := os.ReadFile(filepath.Join(dir, "logs", string(s.ID), "main1.log"))
		if err != nil {
			t.Fatal(err)
		}
		r.logs[s.ID] = string(log)
	}
	return r
}

func TestThePastBalancesAndEndedYesterday(t *testing.T) {
	now := time.Date(2026, 5, 20, 15, 0, 0, 0, time.UTC)
	o := Options{Seed: 3}
	ends := map[session.Reason]int{}
	for _, m := range []Machine{Workstation(o), Lab(o)} {
		t.Run(m.Name, func(t *testing.T) {
			past := relive(t, m, now)
			if len(past.sessions) < 15 {
				t.Errorf("%d sessions", len(past.sessions))
			}
			devices, err := m.devices()
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range past.sessions {
				if !s.TerminatedAt.Before(now.Truncate(24*time.Hour)) || s.CreatedAt.Before(now.AddDate(0, 0, -31)) {
					t.Errorf("%s ran from %s to %s", s.Name, s.CreatedAt, s.TerminatedAt)
				}
				for _, g := range s.Grants.GPUs {
					if !slices.ContainsFunc(devices, func(d gpu.Device) bool { return d.UUID == g.Device }) {
						t.Errorf("%s held %s, which the machine has not", s.Name, g.Device)
					}
				}
				checkCourse(t, s, past.phases[s.ID])
				checkLog(t, s, past.logs[s.ID])
				ends[s.Reason]++
			}
			past.checkRows(t)
		})
	}
	if len(ends) != 5 {
		t.Errorf("sessions ended in %d ways: %v", len(ends), ends)
	}
}

// checkCourse looks whether the history of a session leads from its launch to
// its end.
func checkCourse(t *testing.T, s session.Session, phases []session.Phase) {
	t.Helper()
	steps := map[session.PhaseName]string{
		session.PhaseSchedule: "order validate choose grant", session.PhasePrepare: "image pull",
		session.PhaseStart: "network create start guest", session.PhaseTerminate: "stop logs remove network",
	}
	at, status := s.CreatedAt, session.Pending
	for _, p := range phases {
		names := make([]string, len(p.Steps))
		for i, step := range p.Steps {
			names[i] = step.Step
			if step.StartedAt.Before(at) || step.EndedAt.Before(step.StartedAt) || step.EndedAt.After(p.UpdatedAt) {
				t.Errorf("%s: %s of %s is from %s to %s", s.Name, step.Step, p.Phase, step.StartedAt, step.EndedAt)
			}
			at = *step.EndedAt
		}
		if p.From != status || p.Result != session.OutcomeSuccess || strings.Join(names, " ") != steps[p.Phase] {
			t.Errorf("%s: %+v follows %s", s.Name, p, status)
		}
		status = p.To
	}
	if len(phases) != len(steps) || status != s.Status || s.ExitCode == nil || s.Pinned == "" ||
		s.TerminatedAt.Before(at) {
		t.Errorf("%d phases, then %s: %+v", len(phases), status, s)
	}
	switch s.Reason {
	case session.ReasonFinished, session.ReasonUser:
		if s.Error != nil || s.Result == session.ResultFailure {
			t.Errorf("%s: %+v", s.Name, s)
		}
	case session.ReasonTaskFailed, session.ReasonTaskTimeout, session.ReasonOOM:
		if s.Error == nil || s.Error.Hint == "" || s.Result != session.ResultFailure {
			t.Errorf("%s: %+v", s.Name, s)
		}
	default:
		t.Errorf("%s ended for the reason %q", s.Name, s.Reason)
	}
}

// checkLog looks whether a log has been written while its session ran, and ends
// as the session did.
func checkLog(t *testing.T, s session.Session, log string) {
	t.Helper()
	if s.Spec.Type == session.Interactive && log == "" {
		return
	}
	at, lines := *s.StartedAt, strings.Split(strings.TrimSpace(log), "\n")
	for _, line := range lines {
		stamp, text, _ := strings.Cut(line, " ")
		said, err := time.Parse(time.RFC3339Nano, stamp)
		if err != nil || text == "" || said.Before(at) || said.After(*s.TerminatedAt) {
			t.Fatalf("%s wrote %q between %s and %s: %v", s.Name, line, at, s.TerminatedAt, err)
		}
		at = said
	}
	last, want := lines[len(lines)-1], map[session.Reason]string{session.ReasonTaskFailed: "CUDA out of memory",
		session.ReasonOOM: "Killed"}[s.Reason]
	if !strings.Contains(last, want) {
		t.Errorf("%s ended for the reason %s, its log with %q", s.Name, s.Reason, last)
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
		if c.AllocGPUMs < want-1 || c.AllocGPUMs > want+1 {
			t.Errorf("%s held %d GPU-ms, not %d", s.Name, c.AllocGPUMs, want)
		}
		if share > 0 && (c.BusyGPUMs == 0 || c.EnergyDyn == 0 || c.GapMs > 0) {
			t.Errorf("%s: %+v", s.Name, c)
		}
	}
}
