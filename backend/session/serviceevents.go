package session

import "time"

// ServiceEvent is something that happened to a service.
type ServiceEvent struct {
	At      time.Time `json:"at"`
	Kind    EventKind `json:"kind"`
	Message string    `json:"message"`           // what happened, in a sentence
	Said    []Phrase  `json:"said,omitempty"`    // Message for other languages
	Why     string    `json:"why,omitempty"`     // in sentences
	Because []Phrase  `json:"because,omitempty"` // Why for other languages; nil: only in English
	Session ID        `json:"session,omitempty"` // the replica that it is about
}

// EventKind is what kind of event happened to a service.
type EventKind string

// The kinds of events of a service.
const (
	EventCreated    EventKind = "created"
	EventUpdate     EventKind = "update"      // a person asked for another revision
	EventUpdated    EventKind = "updated"     // all replicas have it
	EventRolledBack EventKind = "rolled-back" // it did not become healthy
	EventLaunched   EventKind = "launched"    // a replica
	EventEnded      EventKind = "ended"       // a replica, as it was asked to
	EventFailure    EventKind = "failure"     // of a replica
	EventScaled     EventKind = "scaled"      // by a person or a rule
	EventAsleep     EventKind = "asleep"
	EventWoken      EventKind = "woken"
	EventStarted    EventKind = "started" // by a person, or tried again
	EventReady      EventKind = "ready"
	EventDegraded   EventKind = "degraded"
	EventLost       EventKind = "unreachable"
	EventGaveUp     EventKind = "failed"
	EventStopped    EventKind = "stopped"
)

// MaxServiceEvents is how many events of a service are stored, the newest ones.
const MaxServiceEvents = 50
