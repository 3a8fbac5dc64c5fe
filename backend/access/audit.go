package access

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net"
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
	// securityMost and personMost are from which size on a file of the log is put aside, in bytes; securityFiles and
	// personFiles how many files of it there are. Security events have 40 MiB, what one person does has 8 MiB.
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
	// Security says that the act decides who may reach the agent, or tells of somebody who tried. Such acts are kept
	// apart from all others.
	Security bool
	// Stranger says that anybody on the network can cause it, and as often as they like: it is kept apart from other
	// security events, too.
	Stranger bool
}

// Entry is one line of the log.
type Entry = session.AuditEntry

// Audit is the log of who did what, when and from where: JSON lines that are only ever added, in files for their owner
// alone. Security events have a log of their own and so has each person, and those who are not known have one together,
// so that one person cannot erase what others did. What repeats is counted. Its methods are safe for concurrent use.
type Audit struct {
	path string // of the security events; the other logs lie in a folder beside it
	now  func() time.Time
	log  *slog.Logger

	mu   sync.Mutex // guards everything below
	logs map[string]*auditLog
	last time.Time // of the last entry
}

// The names of the logs that are not one person's. Those of people are the hashes of their names.
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

// Note writes down what somebody did. A failure to write goes to the agent's own log: a full disk does not stop anyone
// from working.
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

// moment is the time of an entry, by which it is known from the one before; a.mu is held.
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

const (
	// repeatsFor is how long what repeats is only counted, from its first on.
	repeatsFor = time.Minute
	// maxRepeats is how many different acts are remembered for that.
	maxRepeats = 256
)

// auditLog is the log of security events or of one person. Audit guards it.
type auditLog struct {
	file    *rotate.File
	repeats map[repeated]*repeat
	order   []repeated // of repeats, oldest first
}

// repeated is what is the same in acts that repeat. What was refused is so whatever it was asked of: or each of many
// names would be a line.
type repeated struct {
	owner, client, host, method, outcome, target string
	session                                      session.ID
}

func repeatedOf(e Entry) repeated {
	host, _, err := net.SplitHostPort(e.From)
	if err != nil {
		host = e.From
	}
	r := repeated{e.Owner, e.Client, host, e.Method, e.Outcome, e.Target, e.Session}
	if e.Outcome != "ok" {
		r.target, r.session = "", ""
	}
	if e.Owner == "" {
		r.client = "" // anybody has as many keys as they like
	}
	return r
}

// repeat are acts like one that was written down, with the last of them.
type repeat struct {
	since time.Time
	count int
	last  Entry
}

// add writes an entry down, or counts it where one like it was written lately.
func (l *auditLog) add(e Entry) error {
	like := repeatedOf(e)
	var err error
	for len(l.order) > 0 {
		over := e.At.Sub(l.repeats[l.order[0]].since).Abs() >= repeatsFor
		if full := len(l.order) >= maxRepeats && l.repeats[like] == nil; !over && !full {
			break
		}
		err = errors.Join(err, l.close(l.order[0]))
	}
	if known := l.repeats[like]; known != nil {
		known.count, known.last = known.count+1, e
		return err
	}
	if l.repeats == nil {
		l.repeats = map[repeated]*repeat{}
	}
	l.repeats[like], l.order = &repeat{since: e.At}, append(l.order, like)
	return errors.Join(err, l.write(e))
}

// close writes how often something was repeated; like is the first of order.
func (l *auditLog) close(like repeated) error {
	err := l.tell(l.repeats[like])
	delete(l.repeats, like)
	l.order = l.order[1:]
	return err
}

// tell writes how often something was repeated since that was written last.
func (l *auditLog) tell(r *repeat) error {
	if r.count == 0 {
		return nil
	}
	if r.count > 1 {
		r.last.Count = r.count
	}
	r.count = 0
	return l.write(r.last)
}

// settle writes what was only counted.
func (l *auditLog) settle() error {
	var errs []error
	for _, like := range l.order {
		errs = append(errs, l.tell(l.repeats[like]))
	}
	return errors.Join(errs...)
}

func (l *auditLog) write(e Entry) error {
	line, err := json.Marshal(e)
	if err == nil {
		_, err = l.file.Write(append(line, '\n'))
	}
	return err
}

// read adds to entries the newest that are asked for; there may be more of them.
func (l *auditLog) read(entries []Entry, asked session.AuditQuery) ([]Entry, error) {
	for n := range l.file.Files {
		older, err := readAudit(l.file.Name(n), l.file.Most)
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, err
		}
		for _, e := range older {
			if (asked.Before.IsZero() || e.At.Before(asked.Before)) && asked.Matches(e) {
				entries = append(entries, e)
			}
		}
	}
	return entries, nil
}

// readAudit reads one file. A line that is none, as a crash leaves one, is passed over.
func readAudit(path string, most int64) ([]Entry, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var entries []Entry
	for line := range bytes.Lines(data[:min(int64(len(data)), 2*most)]) {
		var e Entry
		if json.Unmarshal(line, &e) == nil && e.Method != "" {
			entries = append(entries, e)
		}
	}
	return entries, nil
}
