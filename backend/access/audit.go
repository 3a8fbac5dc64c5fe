package access

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway/backend/rotate"
	"slipway/backend/session"
)

const (
	// securityMost and personMost are from which size on a file of the log is put
	// aside, in bytes; securityFiles and personFiles how many files of it there are.
	// Security events have 40 MiB, what one person does has 8 MiB.
	securityMost  = 8 << 20
	securityFiles = 5
	personMost    = 4 << 20
	personFiles   = 2
	// targetMost is how much of a path or name is written down, in bytes.
	targetMost = 512
)

// Act is one thing that was done.
type Act struct {
	Method  string
	Session session.ID
	Target  string // a terminal, an app, a port, a path, a name: never a secret
	Err     error
	// Security says that the act decides who may reach the agent, or tells of
	// somebody who tried. Such acts are kept apart from all others.
	Security bool
	// Stranger says that anybody on the network can cause it, and as often as they
	// like: it is kept apart from other security events, too.
	Stranger bool
}

// Entry is one line of the log.
type Entry = session.AuditEntry

// Audit is the log of who did what, when and from where: JSON lines that are
// only ever added, in files for their owner alone. Security events have a log of
// their own and so has each person, and those who are not known have one
// together, so that one person cannot erase what others did. What repeats is counted. Its methods
// are safe for concurrent use.
type Audit struct {
	path string // of the security events; the other logs lie in a folder beside it
	now  func() time.Time
	log  *slog.Logger

	mu   sync.Mutex // guards everything below
	logs map[string]*auditLog
	last time.Time // of the last entry
}

// The names of the logs that are not one person's. Those of people are the hashes
// of their names.
const (
	securityLog  = ""
	strangersLog = "strangers"
)

// OpenAudit opens the log whose security events are at a path.
func OpenAudit(path string, now func() time.Time, log *slog.Logger) (*Audit, error) {
	a := &Audit{path: path, now: now, log: log, logs: map[string]*auditLog{}}
	err := errors.Join(os.MkdirAll(a.people(), 0o700), a.of(securityLog).file.Open())
	known, listErr := filepath.Glob(filepath.Join(a.people(), "*"+logSuffix))
	for _, one := range known {
		err = errors.Join(err, a.of(strings.TrimSuffix(filepath.Base(one), logSuffix)).file.Open())
	}
	if err = errors.Join(err, listErr); err != nil {
		return nil, session.WrapError(err, session.CodeAgentInternal, "The log of what is done cannot be opened.",
			"Check the permissions of "+path+".")
	}
	return a, nil
}

// logSuffix ends the names of people's logs.
const logSuffix = ".jsonl"

// people is the folder of people's logs.
func (a *Audit) people() string { return strings.TrimSuffix(a.path, filepath.Ext(a.path)) + ".d" }

// of returns a log by its name; a.mu is held, or nobody else knows a yet.
func (a *Audit) of(name string) *auditLog {
	if a.logs[name] == nil {
		file := &rotate.File{Path: filepath.Join(a.people(), name+logSuffix), Most: personMost, Files: personFiles}
		if name == securityLog {
			file = &rotate.File{Path: a.path, Most: securityMost, Files: securityFiles}
		}
		a.logs[name] = &auditLog{file: file}
	}
	return a.logs[name]
}

// logOf names the log that an act goes to.
func logOf(owner string, act Act) string {
	switch {
	case act.Stranger:
		return strangersLog
	case act.Security:
		return securityLog
	}
	sum := sha256.Sum256([]byte(owner))
	return hex.EncodeToString(sum[:8])
}

// Close ends the log.
func (a *Audit) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var errs []error
	for _, one := range a.logs {
		errs = append(errs, one.settle(), one.file.Close())
	}
	return errors.Join(errs...)
}

// Note writes down what somebody did. A failure to write goes to the agent's own
// log: a full disk does not stop anyone from working.
func (a *Audit) Note(who Identity, act Act) {
	e := Entry{
		Owner: who.Owner, Role: string(who.Role), Client: who.Client, From: who.From,
		Method: act.Method, Session: act.Session, Target: clip(act.Target), Outcome: "ok", Security: act.Security,
	}
	if act.Err != nil {
		e.Outcome = string(session.AsError(act.Err, session.CodeAgentInternal).Code)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	e.At = a.moment()
	if err := a.of(logOf(who.Owner, act)).add(e); err != nil {
		a.log.Error("what was done could not be written down", "method", e.Method, "owner", e.Owner, "session",
			e.Session, "outcome", e.Outcome, "error", err)
	}
}

// moment is the time of an entry, by which it is known from the one before; a.mu
// is held.
func (a *Audit) moment() time.Time {
	at := a.now().UTC()
	if !at.After(a.last) && a.last.Sub(at) < time.Millisecond {
		at = a.last.Add(time.Nanosecond)
	}
	a.last = at
	return at
}

// Read returns the newest entries that are asked for, oldest first.
func (a *Audit) Read(asked session.AuditQuery) ([]Entry, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	entries := []Entry{}
	for _, one := range a.logs {
		err := one.settle()
		if err == nil {
			entries, err = one.read(entries, asked)
		}
		if err != nil {
			return nil, session.WrapError(err, session.CodeAgentInternal, "The log of what was done cannot be read.",
				"Look at "+one.file.Path+".")
		}
		slices.SortStableFunc(entries, func(x, y Entry) int { return x.At.Compare(y.At) })
		entries = slices.Clone(entries[max(0, len(entries)-asked.Limit):])
	}
	return entries, nil
}

func clip(text string) string {
	if len(text) > targetMost {
		return text[:targetMost] + "…"
	}
	return text
}
