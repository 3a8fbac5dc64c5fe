// Package records holds the sessions of a machine and changes them: in transactions, by versions, with a history.
package records

import (
	"errors"
	"sync"
	"time"

	"slipway/backend/pace"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

// Config configures records. Its functions are called after a change.
type Config struct {
	Store *store.Store
	Clock *pace.Clock
	Ended func(session.ID) time.Time            // returns when a session that ends now has ended
	Peak  func(session.ID) gpu.Bytes            // returns the most memory that a session has used; nil: unknown
	Tell  func(versions []session.Session)      // publishes the stored versions of a session
	Dress func(session.Session) session.Session // adds to a session what is known but not stored
	// Trouble is called when changes begin to fail because the disk is full or broken, and when they succeed again.
	Trouble func()
}

// Records are the store with the rules of its changes.
type Records struct {
	*store.Store
	config Config

	mu        sync.Mutex     // guards everything below
	trouble   *session.Error // of the last change that was tried, if it could not be stored
	troubleAt time.Time
}

// New returns the records of a store.
func New(config Config) *Records { return &Records{Store: config.Store, config: config} }

// ErrUnchanged rolls back an update that changes nothing, which then succeeds: storing it would sync the disk.
var ErrUnchanged = errors.New("nothing changed")

// Change applies fn to a session in one transaction and publishes the result. If fn fails, nothing is stored.
func (r *Records) Change(id session.ID, fn func(*Draft) error) (session.Session, error) {
	var d *Draft
	err := r.Update(func(tx *store.Tx) error {
		s, err := tx.Get(id)
		if err != nil {
			return err
		}
		d = r.Draft(tx, s)
		if err := fn(d); err != nil {
			return err
		}
		if err := d.save(); err != nil {
			return err
		}
		if !d.wrote {
			return ErrUnchanged
		}
		return nil
	})
	if err != nil {
		return session.Session{}, err
	}
	r.config.Tell(d.versions)
	return r.config.Dress(d.Session), nil
}

func (r *Records) Tell(versions []session.Session) { r.config.Tell(versions) }

func (r *Records) Draft(tx *store.Tx, s session.Session) *Draft {
	return &Draft{Session: s, Now: r.config.Clock.Now().UTC(), tx: tx, ended: r.config.Ended, peak: r.config.Peak,
		stored: s}
}

// Update makes one change of the store. While changes fail because the disk is full or broken, there is a warning.
func (r *Records) Update(fn func(*store.Tx) error) error {
	err := r.Store.Update(fn)
	var trouble *session.Error
	switch code := session.CodeOf(err); {
	case errors.Is(err, ErrUnchanged):
		return nil
	case code == session.CodeDiskFull || code == session.CodeStoreWrite:
		trouble = session.AsError(err, code)
	case err != nil:
		return err // refused for its content, or not attempted
	}
	r.mu.Lock()
	news := (r.trouble == nil) != (trouble == nil)
	if news {
		r.troubleAt = r.config.Clock.Now().UTC()
	}
	r.trouble = trouble
	r.mu.Unlock()
	if news {
		r.config.Trouble()
	}
	return err
}

func (r *Records) Warning() (session.Warning, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.trouble == nil {
		return session.Warning{}, false
	}
	return session.Warning{Code: r.trouble.Code, Title: "Changes cannot be stored",
		Text: r.trouble.Message + " " + r.trouble.Hint, At: r.troubleAt}, true
}

// Create stores a new session with the first row of its history.
func Create(tx *store.Tx, s *session.Session, key string) error {
	if err := tx.Create(s, key); err != nil {
		return err
	}
	return tx.PutPhase(&session.Phase{Session: s.ID, Phase: session.PhaseSchedule, Result: session.OutcomeRunning,
		From: session.Pending, To: session.Scheduled, Attempts: 1, CreatedAt: s.CreatedAt, UpdatedAt: s.CreatedAt})
}

// NewSession returns a session as launched at a time on an agent of the given name.
func NewSession(req session.LaunchRequest, id session.ID, agent string, at time.Time) session.Session {
	spec := req.Spec.WithDefaults()
	if spec.Name == "" {
		spec.Name = session.RandomName()
	}
	priority := session.DefaultPriority
	if spec.Priority != nil {
		priority = *spec.Priority
	}
	if !session.ValidID(string(req.Launch)) {
		req.Launch = ""
	}
	return session.Session{
		ID: id, Name: spec.Name, Owner: req.Owner, Agent: agent, Spec: spec,
		Resolved: session.Resolved{Priority: priority, ByAdmin: req.ByAdmin, Launch: req.Launch},
		Status:   session.Pending, End: session.End{Result: session.ResultUndefined}, CreatedAt: at,
	}
}
