package hub

import (
	"context"
	"time"

	"slipway/backend/session"
)

// Connector reaches agents on other machines. The hub decides which and when; the Connector dials, installs and pairs.
type Connector interface {
	// Open returns the connection to an agent of the directory, which dials nothing before its Run.
	Open(entry Entry, listed Listed) (Remote, error)
	// Probe checks a machine without changing it, and reports each finding as a step.
	Probe(context.Context, *Work, Entry) error
	// Add installs an agent on a machine, or pairs with the one that is there, and returns the entry to store. If it
	// fails, it leaves nothing half done. If it can tell beforehand which agent is there, it calls admit with the
	// agent's instance, as in [session.Machine], and returns its error.
	Add(ctx context.Context, work *Work, entry Entry, admit func(instance string) error) (Entry, error)
	// Upgrade upgrades an agent to this version. Its sessions keep running.
	Upgrade(context.Context, *Work, Entry) error
	// Remove revokes this computer's access if possible. Uninstall also ends the sessions and removes the files.
	Remove(ctx context.Context, work *Work, entry Entry, uninstall bool) error
	// Key returns the fingerprint of this computer's key; empty: it cannot be read.
	Key() string
	// Rotate changes this computer's key and tells the agents that are reached. Its result has ids of entries.
	Rotate(context.Context) (Rotation, error)
}

// Listed is the entry of an agent in the directory, which may change while it is used.
type Listed struct {
	Name func() string // returns its current name
	// Pin stores the new key of an agent that has proved the change.
	Pin func(fingerprint string) error
	// Distrust is called with every failure that is due to invalid data of the agent.
	Distrust func(error)
}

// Remote is one agent on another machine and the connection to it.
type Remote interface {
	// Agent returns its client. While it is not reached, calls fail at once with agent_*_unavailable.
	Agent() session.Agent
	// Run keeps it connected until ctx ends.
	Run(context.Context)
	// Link returns the state of the connection, and a channel that is closed when that changes.
	Link() (Link, <-chan struct{})
	// Reconnect connects now and returns when this attempt has succeeded or failed. It may ask through work.
	Reconnect(context.Context, *Work) error
	// Answer answers the question of the link and returns the key to pin. Another question: agent_call_conflict.
	Answer(ctx context.Context, accept bool, found string) (pinned string, err error)

	session.Pairing
}

// LinkState is how an agent is reached.
type LinkState string

// The states of a link. One that is probing has a silent peer and asks for a sign of life; one with a question waits
// for a person.
const (
	LinkOff        LinkState = "off"
	LinkConnecting LinkState = "connecting"
	LinkConnected  LinkState = "connected"
	LinkProbing    LinkState = "probing"
	LinkDown       LinkState = "down"
	LinkQuestion   LinkState = "question"
)

// Link is the state of the connection to an agent. A zero time or duration is unknown.
type Link struct {
	State     LinkState
	Since     time.Time
	LastHeard time.Time
	RTT       time.Duration
	Transport string // local, ssh, tls or wss
	Carriers  int
	NextTry   time.Time
	Err       error
	Waits     string // what it waits for, one sentence
	Question  *Question

	Owner, Role string // the user's name and role there, if known
	Version     string // of the agent
	Upgrade     string // available version; empty: nothing to upgrade
}

// same reports whether two links differ in nothing that must be shown at once.
func (l Link) same(other Link) bool {
	asked, otherAsked := l.Question, other.Question
	return l.State == other.State && l.Transport == other.Transport && l.Carriers == other.Carriers &&
		l.Waits == other.Waits && l.NextTry.Equal(other.NextTry) && l.Version == other.Version &&
		l.Upgrade == other.Upgrade && session.CodeOf(l.Err) == session.CodeOf(other.Err) &&
		(asked == otherAsked || asked != nil && otherAsked != nil && asked.Found == otherAsked.Found &&
			asked.Kind == otherAsked.Kind)
}

// QuestionKind is what a question is about.
type QuestionKind string

// The kinds of questions about an agent whose key has changed.
const (
	QuestionRekeyed QuestionKind = "re-keyed"
	QuestionHostKey QuestionKind = "host-key"
)
