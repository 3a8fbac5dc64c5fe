package serving

import (
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// ID identifies a service. The name of a service that was deleted may be used again, its ID is not.
type ID string

// Snapshot is everything that a plan depends on.
type Snapshot struct {
	Services []Service
}

// Service is one service as it is now.
type Service struct {
	Record
	Settings
	Replicas []Replica // all live ones, and ended ones as long as the record has a member of their attempt
	Traffic  Traffic
	// Room is whether one more replica of the wanted revision, see [Record.Wanted], could start now. While a replica is
	// queued, it is whether that one could.
	Room  bool
	Lacks gpu.Bytes // of device memory, if there is no room; 0 if something else is short
}

// Settings are what a person may change without a new revision. Replicas stay when they change.
type Settings struct {
	Replicas int `json:"replicas"` // at least 1
	// for requests under way on a drained replica; 0: [DefaultGrace]
	Grace session.Duration      `json:"grace,omitempty"`
	Rules []session.ScalingRule `json:"rules,omitempty"`
	Sleep Sleep                 `json:"sleep,omitzero"`
}

// DefaultGrace is how long a drained replica may finish its requests.
const DefaultGrace = 10 * time.Minute

func (s Settings) grace() time.Duration {
	if s.Grace > 0 {
		return time.Duration(s.Grace)
	}
	return DefaultGrace
}

// Record is what is stored of a service. Only [Plan] and its own methods change it.
type Record struct {
	ID       ID         `json:"id"`
	Name     string     `json:"name"`
	Revision int        `json:"revision"`           // the one that serves; from 1
	Previous int        `json:"previous,omitempty"` // the one before it; 0: none
	Updating int        `json:"updating,omitempty"` // the one that replaces Revision; 0: none
	Rejected *Rejection `json:"rejected,omitempty"` // the last update, if it was rolled back
	Attempt  int        `json:"attempt,omitempty"`  // number of the last launch
	Members  []Member   `json:"members,omitempty"`  // the launches that have not ended, in their order
	Failures Failures   `json:"failures,omitzero"`
	Scaling  Scaling    `json:"scaling,omitzero"`
	Sleeping Sleeping   `json:"sleeping,omitzero"`
	Served   bool       `json:"served,omitempty"` // has been healthy since it was deployed, started or woken
	Stopping bool       `json:"stopping,omitempty"`
}

// Member is one launch and its replica.
type Member struct {
	Attempt  int       `json:"attempt"`
	Revision int       `json:"revision"`
	Seen     bool      `json:"seen,omitempty"`    // a snapshot had its replica
	Passed   bool      `json:"passed,omitempty"`  // has been healthy
	Healthy  time.Time `json:"healthy,omitzero"`  // since when, if it was healthy when last seen
	Drained  time.Time `json:"drained,omitzero"`  // since when it gets no requests because it leaves; zero: it stays
	Deadline time.Time `json:"deadline,omitzero"` // when it is terminated whatever is under way, if it leaves
}

func (m Member) leaves() bool { return !m.Drained.IsZero() }

// Failures are the failures in a row of one revision. Replicas that fail together count once.
type Failures struct {
	Revision int            `json:"revision"`
	Count    int            `json:"count"`
	Attempt  int            `json:"attempt"` // the last launch before the last failure that counted
	Next     time.Time      `json:"next"`    // no launch before
	Last     session.Phrase `json:"last"`    // what happened, in a sentence
	Log      []string       `json:"log,omitempty"`
}

// Rejection is an update that was rolled back.
type Rejection struct {
	Revision int            `json:"revision"`
	At       time.Time      `json:"at"`
	Reason   session.Phrase `json:"reason"` // in a sentence
	Log      []string       `json:"log,omitempty"`
}

// Scaling is how many replicas a service wants.
type Scaling struct {
	Set    int       `json:"set"`              // [Settings].Replicas when Target was last set from it
	Target int       `json:"target"`           // wanted while it is awake
	At     time.Time `json:"at,omitzero"`      // when a rule changed Target last
	Metric string    `json:"metric,omitempty"` // of that rule
	Value  float64   `json:"value,omitempty"`  // of the metric then
	Low    []Low     `json:"low,omitempty"`    // the rules that would scale down
}

// Low is a rule whose value has been below its threshold since a time.
type Low struct {
	Rule  string    `json:"rule"`
	Since time.Time `json:"since"`
}

// Sleeping is whether a service sleeps.
type Sleeping struct {
	Asleep bool      `json:"asleep,omitempty"`
	Since  time.Time `json:"since,omitzero"` // of sleep, or awake
	For    ID        `json:"for,omitempty"`  // the service that got its devices; empty: it was idle
	Name   string    `json:"name,omitempty"` // the name of that service
}

// Wanted is the revision that new replicas have.
func (r Record) Wanted() int {
	if r.Updating > 0 {
		return r.Updating
	}
	return r.Revision
}

// New returns the record of a service that is deployed for the first time.
func New(id ID, name string) Record {
	return Record{ID: id, Name: name, Revision: 1}
}

// Update replaces the revision, also while another update is under way. Updating to the revision that serves cancels an
// update.
func (r Record) Update(revision int) Record {
	r.Updating = revision
	if revision == r.Revision {
		r.Updating = 0
	}
	r.Rejected, r.Failures = nil, Failures{}
	return r
}

// TryAgain launches replicas again after [Failed], or before the next attempt is due.
func (r Record) TryAgain() Record {
	r.Failures = Failures{}
	return r
}

// Stop drains and terminates all replicas.
func (r Record) Stop() Record {
	r.Stopping = true
	return r
}

// Start starts a service that was stopped, or wakes one that sleeps.
func (r Record) Start(now time.Time) Record {
	if r.Stopping || r.Sleeping.Asleep {
		r.Served, r.Sleeping = false, Sleeping{Since: now}
	}
	r.Stopping, r.Failures = false, Failures{}
	return r
}

// Decision is what happens next. The caller stores the records that changed, then carries out the actions: drains, then
// terminations, then launches. An action that fails needs no answer, the next plan repeats it. A launch that can never
// succeed is reported as an ended replica of its attempt.
type Decision struct {
	Services     []Outcome // in the order of the snapshot
	Drains       []Drain
	Terminations []Termination
	Launches     []Launch
	// Refused are actions that the audit took back. There are none unless Plan is wrong.
	Refused []string
}

// Outcome is what is decided about one service.
type Outcome struct {
	Record
	Changed bool // the record differs from that of the snapshot
	State   State
	Said    []session.Phrase // why, in sentences with numbers
	Rules   []session.RuleState
}

// Launch starts a session of a service. A service never launches two sessions with the same attempt.
type Launch struct {
	Service  ID
	Revision int
	Attempt  int
}

// Drain takes a replica out of the router. Requests under way continue.
type Drain struct {
	Service ID
	Replica session.ID
	Attempt int
}

// Termination ends the session of a replica: SIGTERM, and SIGKILL after Grace.
type Termination struct {
	Service ID
	Replica session.ID
	Attempt int
	Grace   time.Duration
}
