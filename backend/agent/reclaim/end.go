package reclaim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"slipway/backend/agent/host"
	"slipway/backend/agent/records"
	"slipway/backend/idle"
	"slipway/backend/pace"
	"slipway/backend/session"
)

func checkers() []session.IdleChecker {
	return []session.IdleChecker{session.CheckLifetime, session.CheckNetwork, session.CheckUse, session.CheckLimit}
}

const lastCall = time.Minute // before the end, terminals are notified once more

// announce adds warnings of near ends and removes others. It reports whether it stored, and so published, the session.
func (w *Watch) announce(ctx context.Context, s session.Session, verdicts []idle.Verdict, now time.Time) bool {
	wanted := map[session.Code]session.Warning{}
	for _, v := range verdicts {
		if v.Warn {
			code := v.Check.Checker.Code()
			wanted[code] = session.Warning{Code: code, Title: "About to be reclaimed",
				Text: fmt.Sprintf("It is ended as %s at %s UTC unless it is kept. %s", v.Reason,
					v.Check.ExpiresAt.UTC().Format("15:04:05"), v.Check.Message)}
			w.tellTerminals(ctx, s, v, now)
		}
	}
	var over []session.Code
	for _, checker := range checkers() {
		code := checker.Code()
		told := slices.ContainsFunc(s.Warnings, func(w session.Warning) bool { return w.Code == code })
		_, still := wanted[code]
		switch {
		case told && still:
			delete(wanted, code)
		case told:
			over = append(over, code)
		}
	}
	if len(wanted)+len(over) == 0 {
		return false
	}
	return w.config.Records.Warn(w.config.Log, s.ID, func(d *records.Draft) {
		for _, code := range over {
			d.Unwarn(code, "")
		}
		for _, w := range wanted {
			d.Warn(w)
		}
	})
}

// tellTerminals shows a banner in the session's terminals when an end is announced, and once more a minute before it.
func (w *Watch) tellTerminals(ctx context.Context, s session.Session, v idle.Verdict, now time.Time) {
	left := v.Check.ExpiresAt.Sub(now)
	last := left <= lastCall
	if left >= time.Minute {
		left = left.Round(time.Minute)
	}
	w.mu.Lock()
	k := w.of(s.ID)
	toldLast, told := k.last[v.Check.Checker]
	k.last[v.Check.Checker] = toldLast || last
	if told && (toldLast || !last) {
		w.mu.Unlock()
		return
	}
	k.bannerAt = w.config.Clock.Now()
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	text := fmt.Sprintf("slipway: this session is ended as %s in %s unless it is kept: slipway keep %s 4h", v.Reason,
		session.Duration(left).Words(), s.Name)
	for _, kernel := range s.Kernels {
		client := w.config.Guest(s.ID, kernel.Name)
		if client == nil {
			continue
		}
		if err := client.Notice(ctx, text); err != nil {
			w.config.Log.Debug("terminals could not show the warning about the end", "session", s.ID, "err", err)
		}
	}
}

// end ends an idle session and reports whether it did, unless it was kept meanwhile.
func (w *Watch) end(s session.Session, v idle.Verdict) bool {
	cause := session.Because(session.CodeReclaimed, session.Say("reclaimed", v.Said), session.Say("reclaimedHint"))
	ended, err := w.config.EndSession(s.ID, host.Ending{Reason: v.Reason, Cause: cause, Park: w.policyOf(s).Park,
		Still: func(now session.Session) bool {
			return now.KeepUntil == nil || s.KeepUntil != nil && now.KeepUntil.Equal(*s.KeepUntil)
		}})
	if err != nil {
		w.config.Log.Warn("an idle session was not ended", "session", s.ID, "err", err)
	}
	return err == nil && ended.Status == session.Terminating
}

// Keep keeps a session for a time, 0: not any more. A time limit that ends it earlier is extended first. It fails with
// session_update_invalid or session_update_conflict, or with what is said against the extension.
func (w *Watch) Keep(ctx context.Context, id session.ID, length session.Duration) (session.Session, error) {
	if err := session.CheckKeep(length); err != nil {
		return session.Session{}, err
	}
	if err := w.extend(ctx, id, time.Duration(length)); err != nil {
		return session.Session{}, err
	}
	s, err := w.config.Records.Change(id, func(d *records.Draft) error {
		if d.Status != session.Running {
			return session.NewError(session.CodeSessionConflict, "The session is "+string(d.Status)+", not RUNNING.",
				"Only a running session can be kept from being reclaimed.")
		}
		d.KeepUntil = nil
		if length > 0 {
			d.KeepUntil = new(d.Now.Add(time.Duration(length)))
		}
		for _, checker := range checkers() {
			d.Unwarn(checker.Code(), "")
		}
		return nil
	})
	if err != nil {
		return session.Session{}, err
	}
	w.mu.Lock()
	clear(w.of(id).announced)
	clear(w.of(id).last)
	w.mu.Unlock()
	pace.Signal(w.notify)
	return s, nil
}

// extend extends the time limit of a session that is to run for so long from now on.
func (w *Watch) extend(ctx context.Context, id session.ID, length time.Duration) error {
	s, err := w.config.Records.Get(id)
	if err != nil || w.config.TimeLimit == nil {
		return err
	}
	end := w.config.Clock.Now().Add(length)
	if until := w.config.TimeLimit.Until(s); until.IsZero() || !until.Before(end) {
		return nil
	}
	return w.config.TimeLimit.Extend(ctx, s, end)
}

// SimulateIdle returns what a policy would have done to a session. Data of an ended one is kept only for a while.
func (w *Watch) SimulateIdle(_ context.Context, id session.ID,
	policy session.IdlePolicy) (session.IdleSimulation, error) {
	if wrong := policy.Validate(""); len(wrong) > 0 {
		return session.IdleSimulation{}, session.Refused(session.CodeSessionInvalid, wrong...)
	}
	s, err := w.config.Records.Get(id)
	if err != nil {
		return session.IdleSimulation{}, err
	}
	if s.StartedAt == nil {
		return session.IdleSimulation{}, session.NewError(session.CodeSessionConflict, "The session has not run yet.",
			"Ask again when it runs.")
	}
	now := w.config.Moment().Wall
	if s.TerminatedAt != nil {
		now = *s.TerminatedAt
	}
	var series idle.Series
	w.mu.Lock()
	if k := w.known[id]; k != nil {
		series = k.series.Clone()
	}
	w.mu.Unlock()
	return idle.Simulate(policy, idle.Facts{Type: s.Spec.Type, StartedAt: *s.StartedAt, Series: &series}, now), nil
}
