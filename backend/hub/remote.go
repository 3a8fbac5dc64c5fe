package hub

import (
	"context"
	"time"

	"slipway/backend/session"
)

// Connector reaches agents on other machines. The hub decides which and when; how
// they are dialled, installed and paired with is the Connector's business.
type Connector interface {
	// Open makes the way to an agent of the directory. It dials nothing before
	// the Run of what it returns.
	Open(entry Entry, listed Listed) (Remote, error)
	// Probe looks at a machine and tells each finding as a step. It changes
	// nothing there.
	Probe(context.Context, *Work, Entry) error
	// Add brings an agent to a machine, or pairs with the one that is there,
	// and returns entry with what is to be remembered of it. One that fails
	// leaves nothing half done. Where it can tell before it changes anything
	// which agent is there, it asks admit, by the instance as in
	// [session.Machine], and fails as that does.
	Add(ctx context.Context, work *Work, entry Entry, admit func(instance string) error) (Entry, error)
	// Upgrade brings this version to an agent's machine. Its sessions keep running.
	Upgrade(context.Context, *Work, Entry) error
	// Remove gives an agent up: what lets this computer in there is taken back
	// where that is possible. With uninstall its sessions are ended and its
	// files removed.
	Remove(ctx context.Context, work *Work, entry Entry, uninstall bool) error
	// Key is the fingerprint of the key by which agents know this computer; empty:
	// it cannot be read.
	Key() string
	// Rotate changes the key by which agents know this computer, and shows the
	// new one to those that are reached.
	Rotate(context.Context) (Rotation, error)
}

// Listed is how an agent stands in the directory, which may change while it is
// used.
type Listed struct {
	Name func() string // what it is called now
	// Pin is called when the agent proves to have changed its key, and keeps
	// the new one.
	Pin func(fingerprint string) error
	// Distrust is called with every failure of the agent that is one of sending
	// what no agent may send.
	Distrust func(error)
}

// Remote is one agent on another machine with the way to it.
type Remote interface {
	// Agent calls it, also as its admin. While it is not reached every call fails
	// at once with agent_*_unavailable.
	Agent() session.Agent
	// Run keeps it reached until ctx ends.
	Run(context.Context)
	// Link says how it is reached now, and a channel that is closed when that changes.
	Link() (Link, <-chan struct{})
	// Reconnect tries at once and returns when it is reached or this try has
	// failed. It may ask through work.
	Reconnect(context.Context, *Work) error
	// Answer answers the question of the link and returns what is to be
	// remembered as pinned; agent_call_conflict when there is no such question.
	Answer(ctx context.Context, accept bool, found string) (pinned string, err error)

	session.Pairing
}

// LinkState is how an agent is reached.
type LinkState string

// The states of a link. A probing one has gone silent and is being asked for a
// sign of life; one with a question waits for a person.
const (
	LinkOff        LinkState = "off"
	LinkConnecting LinkState = "connecting"
	LinkConnected  LinkState = "connected"
	LinkProbing    LinkState = "probing"
	LinkDown       LinkState = "down"
	LinkQuestion   LinkState = "question"
)

// Link is the way to an agent at one moment. A zero time or length is unknown.
type Link struct {
	State     LinkState
	Since     time.Time
	LastHeard time.Time
	RTT       time.Duration
	Transport string // local, ssh, tls or wss
	Carriers  int
	NextTry   time.Time
	Err       error
	Waits     string // one sentence on what is waited for
	Question  *Question

	Owner, Role string // what we are there, as far as it was told
	Version     string // of the agent
	Upgrade     string // the version that an upgrade would bring; empty: nothing to upgrade
}

// same reports whether two links differ in nothing that a person must learn of
// at once.
func (l Link) same(other Link) bool {
	return l.State == other.State && l.Transport == other.Transport && l.Carriers == other.Carriers &&
		l.Waits == other.Waits &&
		l.NextTry.Equal(other.NextTry) && session.CodeOf(l.Err) == session.CodeOf(other.Err) &&
		l.Version == other.Version && l.Upgrade == other.Upgrade &&
		sameQuestion(l.Question, other.Question)
}

func sameQuestion(a, b *Question) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Found == b.Found && a.Kind == b.Kind
}

// QuestionKind is what a question is about.
type QuestionKind string

// The kinds of questions about an agent that is not what it was.
const (
	QuestionRekeyed QuestionKind = "re-keyed"
	QuestionHostKey QuestionKind = "host-key"
)
