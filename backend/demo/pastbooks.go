package demo

import (
	"errors"
	"iter"
	"log/slog"
	"time"

	"slipway/backend/agent/accounts"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

// history is what a machine was used for before anybody kept books of it.
type history struct {
	Agent   string // name of the one that keeps the books
	Dir     string // its data folder
	CPUs    int
	Memory  gpu.Bytes
	Devices []gpu.Device
	// Ended are the sessions, in the order of their starts; each had the machine
	// for itself.
	Ended iter.Seq[endedSession]
}

// endedSession is a session that has ended, with what its machine measured while it ran.
type endedSession struct {
	ID        session.ID
	Launch    session.LaunchRequest
	At        time.Time // of the launch
	Container string    // engine's id
	Pinned    string    // its image by digest
	// Took tells how long each step of its preparation, its start and its end
	// took. A pull that took no time was not needed.
	Took func(step string) time.Duration
	Ran  time.Duration
	// Asked is why somebody ended it. Empty: it ended by itself, as ExitCode and
	// OOM say.
	Asked    session.Reason
	ExitCode int
	OOM      bool
	Log      func(started time.Time) []logLine
	CPU      time.Duration // that it used in all, evenly
	// Samples are those of the machine's devices while the session ran, in one
	// boot: the first at its start, the last after its end.
	Samples func(session.Session) iter.Seq[gpu.Sample]
}

// logLine is a line that a session wrote some time after its start.
type logLine struct {
	After time.Duration
	Text  string
}

// store writes the records, the histories, the logs and the accounts of sessions
// that ended before anybody kept books, by the rules by which an agent would have
// kept them. No agent has the store open. Where the books would not balance it
// fails, and stores nothing.
func (h history) store(s *store.Store, log *slog.Logger) error {
	books, err := accounts.Open(s, nil, log)
	if err != nil {
		return err
	}
	var last gpu.Moment
	err = s.Update(func(tx *store.Tx) error {
		for one := range h.Ended {
			ended, err := h.write(tx, one)
			if err != nil {
				return err
			}
			last = bookSession(books, ended, one)
		}
		return errors.Join(books.Check()...)
	})
	if err != nil || last == (gpu.Moment{}) {
		return err
	}
	return books.Checkpoint(last, true)
}

// bookSession keeps the books of one session from its first sample to its last, and
// returns the moment of that.
func bookSession(books *accounts.Books, ended session.Session, one endedSession) (at gpu.Moment) {
	started, over := *ended.StartedAt, false
	length := ended.TerminatedAt.Sub(started)
	begun := false
	for sample := range one.Samples(ended) {
		at = sample.At
		if !begun {
			books.Book(sample)
			books.Follow(at, []session.Session{ended})
			bookCPU(books, at.Wall, ended, 0)
			begun = true
			continue
		}
		if !over {
			gone := min(at.Wall.Sub(started), length)
			bookCPU(books, at.Wall, ended, time.Duration(float64(one.CPU)*gone.Seconds()/length.Seconds()))
		}
		books.Book(sample)
		if !over && !at.Wall.Before(*ended.TerminatedAt) {
			books.Follow(at, nil)
			over = true
		}
	}
	return at
}

// bookCPU books the CPU time of a session that used it evenly over its kernels.
func bookCPU(books *accounts.Books, wall time.Time, s session.Session, used time.Duration) {
	for _, kernel := range s.Kernels {
		books.Used(wall, s.ID, kernel.Container, used/time.Duration(len(s.Kernels)))
	}
}
