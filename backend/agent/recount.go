package agent

import (
	"errors"
	"iter"
	"log/slog"
	"time"

	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

// Ended is a session that has ended, with what its machine measured while it ran.
type Ended struct {
	Session session.Session // of a terminal status, with StartedAt and TerminatedAt
	CPU     time.Duration   // that it used in all, evenly
	// Samples are those of the machine's devices, in one boot: the first at the
	// start, the last after the end.
	Samples iter.Seq[gpu.Sample]
}

// Recount writes the records and the accounts of sessions that ended before
// anybody kept books, in the order of their starts, as an agent would have kept
// them. No agent has the store open. It fails, and writes nothing, where the
// books would not balance.
func Recount(s *store.Store, ended iter.Seq[Ended], log *slog.Logger) error {
	books, err := openAccounts(s, nil, log)
	if err != nil {
		return err
	}
	var last gpu.Moment
	var records []session.Session
	for one := range ended {
		last = books.relive(one)
		records = append(records, one.Session)
	}
	if len(records) == 0 {
		return nil
	}
	if err := errors.Join(books.check()...); err != nil {
		return err
	}
	if err := books.checkpoint(last, memory{}); err != nil {
		return err
	}
	return s.Update(func(tx *store.Tx) error {
		for _, record := range records {
			if err := tx.Create(&record, ""); err != nil {
				return err
			}
		}
		return nil
	})
}

// relive keeps the books of one session from its first sample to its last, and
// returns the moment of that.
func (b *accounts) relive(one Ended) (at gpu.Moment) {
	started, over := *one.Session.StartedAt, false
	length := one.Session.TerminatedAt.Sub(started)
	begun := false
	for sample := range one.Samples {
		at = sample.At
		if !begun {
			b.book(sample)
			b.begin(at, one.Session)
			b.cpu(at.Wall, one, 0)
			begun = true
			continue
		}
		if !over {
			gone := min(at.Wall.Sub(started), length)
			b.cpu(at.Wall, one, time.Duration(float64(one.CPU)*gone.Seconds()/length.Seconds()))
		}
		b.book(sample)
		if !over && !at.Wall.Before(*one.Session.TerminatedAt) {
			b.end(at, at, one.Session.ID)
			over = true
		}
	}
	return at
}

// cpu books the CPU time of a session that used it evenly over its kernels.
func (b *accounts) cpu(wall time.Time, one Ended, used time.Duration) {
	for _, kernel := range one.Session.Kernels {
		b.used(wall, one.Session.ID, kernel.Container, used/time.Duration(len(one.Session.Kernels)))
	}
}
