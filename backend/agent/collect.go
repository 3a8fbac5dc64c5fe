package agent

import (
	"context"
	"errors"
	"slices"
	"time"

	"slipway/backend/agent/accounts"
	"slipway/backend/session"
)

const (
	// devicesOften is how often devices are sampled while somebody watches, a
	// session holds one or waits for one: the guard must see an overshoot within
	// two samples. devicesSeldom is for devices that nobody uses; the drivers'
	// own buffers reach back twice as far.
	devicesOften  = 2 * time.Second
	devicesSeldom = 5 * time.Second
	// devicesPatience is how long one sample may take.
	devicesPatience = 5 * time.Second
)

// runDevices finds the devices, samples them and keeps the accounts until ctx
// ends. A last checkpoint is made then.
func (a *Agent) runDevices(ctx context.Context) {
	if live, err := a.store.LiveSessions(); err == nil { // else it is said again
		a.recallAlarms(live)
	}
	for ctx.Err() == nil {
		timer := a.clock.Often(a.collect(ctx))
		select {
		case <-timer.C:
		case <-a.devices.changed:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	if a.accounts.Active() {
		_ = a.checkpoint(true) // it has said so
	}
}

// collect does one round and returns when the next is due.
func (a *Agent) collect(ctx context.Context) time.Duration {
	live, err := a.store.LiveSessions()
	if err != nil {
		a.log.Warn("devices cannot be accounted for", "err", err)
		return devicesSeldom
	}
	a.look(ctx, live)
	// Who ended is told first, with the moment of the end; what was used until
	// then is in the sample.
	a.accounts.Follow(a.devices.moment(), live)
	any := a.devices.any()
	if any {
		a.sampleDevices(ctx, live)
	}
	a.tellLosses(live)
	if a.accounts.Active() && a.accounts.Due(a.devices.moment()) {
		_ = a.checkpoint(false) // it has said so, and is tried again
	}
	watched := a.stream.watched()
	a.tellBoard(live, any, watched)
	return min(a.devicesInterval(live, any, watched), a.accounts.Soon())
}

// tellBoard publishes the devices as they are now. That there are none, and
// why, is told once to whoever watches.
func (a *Agent) tellBoard(live []session.Session, any, watched bool) {
	if !watched || !any && a.noneTold == a.devices.now().Text {
		if !watched {
			a.noneTold = ""
		}
		return
	}
	board := a.board(live)
	a.stream.publish(session.Event{Devices: &board})
	a.noneTold = ""
	if !any {
		a.noneTold = board.Text
	}
}

// devicesInterval is when the next sample is due.
func (a *Agent) devicesInterval(live []session.Session, any, watched bool) time.Duration {
	used := slices.ContainsFunc(live, func(s session.Session) bool {
		return len(s.Grants.GPUs) > 0 || s.Status == session.Pending && !s.Spec.Accelerator.IsZero()
	})
	switch {
	case any && (watched || used):
		return devicesOften
	case any:
		return devicesSeldom
	case len(live) > 0:
		return accounts.CheckpointEvery
	}
	return inventoryEvery
}

// sampleDevices takes one sample and hands it to everybody who lives by it: the
// accounts, the queue's second book, the guard and the idle checks.
func (a *Agent) sampleDevices(ctx context.Context, live []session.Session) {
	limited, cancel := context.WithTimeout(ctx, devicesPatience)
	defer cancel()
	sample, err := a.devices.source.Sample(limited)
	if err != nil {
		if ctx.Err() == nil && a.devices.lose(err) {
			a.log.Warn("devices cannot be sampled", "err", err)
			a.rouse() // nothing of them is given until they can be
		}
		return
	}
	report := a.accounts.Book(sample)
	if report.Stale {
		return
	}
	if a.devices.keep(sample, report.Live) {
		a.rouse()
	}
	a.guardDevices(sample, live)
	a.reclaim.DevicesUsed(sample.At, live, report.Live)
}

// resumeAccounts goes on with the accounts, and with what is stored beside them.
func (a *Agent) resumeAccounts() error {
	live, err := a.store.LiveSessions()
	if err != nil {
		return err
	}
	now := a.devices.moment()
	last, _, err := a.accounts.LastCheckpoint()
	if err == nil {
		err = errors.Join(a.reclaim.Resume(now, last, live), a.devices.resume(a.store))
	}
	if err != nil {
		a.log.Warn("idle checks and device histories begin anew", "err", err)
	}
	a.accounts.Add(a.reclaim)
	a.accounts.Add(a.devices)
	return a.accounts.Resume(now, live)
}

func (a *Agent) Accounts(_ context.Context, span session.AccountSpan) ([]session.Account, error) {
	return a.accounts.Read(a.devices.moment(), span)
}

// checkpoint stores the accounts as they are, and what else is to outlive the
// agent: all of it, or what is due.
func (a *Agent) checkpoint(all bool) error { return a.accounts.Checkpoint(a.devices.moment(), all) }
