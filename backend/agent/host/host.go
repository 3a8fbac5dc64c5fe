// Package host holds what the rooms of an agent share: its name and owner, engine, records, clock, log and news.
package host

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"slipway/backend/agent/health"
	"slipway/backend/agent/records"
	"slipway/backend/engine"
	"slipway/backend/pace"
	"slipway/backend/session"
)

// Host is embedded in the configuration of rooms. It is complete once the agent is open.
type Host struct {
	Agent    string // its name
	Owner    string // the agent's own person, its admin
	UID, GID int    // of that person
	Engine   engine.Engine
	Records  *records.Records
	Health   *health.Watch
	Limits   Limits
	Clock    *pace.Clock
	Log      *slog.Logger
	News
}

// News publishes changes.
type News interface {
	Watched() bool // whether there are watchers
	Publish(e session.Event)
	PublishMachine()                     // the machine, as it is now
	PublishSession(s session.Session)    // new findings on a session, if anybody watches
	PublishBoard(live []session.Session) // who holds which device, as it is now
	PlanAgain()                          // what can start may have changed
}

// Limits are the times after which a step counts as failed. Zero fields have defaults.
type Limits struct {
	Call      time.Duration   // any short call to the engine; 30 s
	PullStall time.Duration   // a pull without progress; 5 min
	Commit    time.Duration   // to make an image of a session; 1 h
	Remove    time.Duration   // to remove an image, or to measure all of them; 5 min
	Pull      time.Duration   // a pull as a whole; 6 h
	Create    time.Duration   // 2 min
	Start     time.Duration   // 2 min
	Guest     time.Duration   // until the guest is ready; 1 min
	Prepare   time.Duration   // all attempts at preparing; 12 h
	Launch    time.Duration   // all attempts at starting; 15 min
	Grace     time.Duration   // between asking a session to end and killing it; 10 s
	Logs      time.Duration   // to copy a log; 1 min
	Reconcile time.Duration   // between two comparisons of records and containers; 1 min
	Stray     time.Duration   // before a container without a record is removed; 5 min
	Backoff   []time.Duration // pauses between attempts; 1, 2, 4, 8 s
}

func (l Limits) WithDefaults() Limits {
	for _, field := range []struct {
		value *time.Duration
		zero  time.Duration
	}{
		{&l.Call, 30 * time.Second}, {&l.Pull, 6 * time.Hour}, {&l.PullStall, 5 * time.Minute},
		{&l.Commit, time.Hour}, {&l.Remove, 5 * time.Minute},
		{&l.Create, 2 * time.Minute}, {&l.Start, 2 * time.Minute}, {&l.Guest, time.Minute},
		{&l.Prepare, 12 * time.Hour}, {&l.Launch, 15 * time.Minute}, {&l.Grace, 10 * time.Second},
		{&l.Logs, time.Minute}, {&l.Reconcile, time.Minute}, {&l.Stray, 5 * time.Minute},
	} {
		*field.value = cmp.Or(*field.value, field.zero)
	}
	if len(l.Backoff) == 0 {
		l.Backoff = []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}
	}
	return l
}

// Pause returns the pause after the given attempt, counted from 1.
func (l Limits) Pause(attempt int) time.Duration {
	return l.Backoff[min(max(attempt, 1), len(l.Backoff))-1]
}

// Lasting reports whether a failure would occur again at the next attempt.
func Lasting(code session.Code) bool {
	return slices.Contains([]session.Code{session.CodePullNotFound, session.CodePullForbidden, session.CodeNoImage,
		session.CodeImageForbidden, session.CodeEngineInvalid, session.CodeEngineUnsupported, session.CodeDiskFull,
		session.CodeStartFailed, session.CodeGuestExited, session.CodeGuestVersion, session.CodeFolderChanged,
		session.CodeFolderConflict, session.CodeMountForbidden, session.CodeInvalid}, code)
}

// EndSession ends a RUNNING session for a reason of Slipway's.
type EndSession func(id session.ID, ending Ending) (session.Session, error)

// Ending says how and why a session is ended.
type Ending struct {
	Reason session.Reason
	Cause  *session.Cause
	Park   bool                       // it is parked, if it can be; see [session.Moves]
	Still  func(session.Session) bool // decides in the transaction; nil: it is ended
}

// Wait waits for a timer, which it stops, for a signal on wake or for the end of ctx.
func Wait(ctx context.Context, timer *time.Timer, wake <-chan struct{}) {
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-ctx.Done():
	}
}
