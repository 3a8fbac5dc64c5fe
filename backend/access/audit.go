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
	securityMost  = 8 << 20 // bytes of one file of security events
	securityFiles = 5
	personMost    = 4 << 20 // bytes of one file of a person
	personFiles   = 2
	targetMost    = 512         // bytes of a path or name that are logged
	repeatsFor    = time.Minute // how long repetitions of an entry are only counted
	maxRepeats    = 256         // number of entries that are remembered for that
	logSuffix     = ".jsonl"

	// The names of the logs that do not belong to a person. The others have hashes of the names of people.
	securityLog  = ""
	strangersLog = "strangers"
)

// Act is something that was done or refused.
type Act struct {
	Method   string
	Session  session.ID
	Target   string // a terminal, an app, a port, a path, a name: never a secret
	Err      error
	Security bool // it is about access to the agent, and has a separate log
	Stranger bool // anybody on the network can cause it, so it has another log
}

// Entry is one line of the log.
type Entry = session.AuditEntry

// Audit is the append-only log of who did what, when and from where, as JSON lines in files that only their owner can
// read. Security events, each person, and unknown people together have separate logs, so that one person cannot
// displace the entries of others. Repeated entries are counted. Its methods are safe for concurrent use.
type Audit struct {
	path string // of the security events; the other logs are in a folder next to it
	now  func() time.Time
	log  *slog.Logger

	mu   sync.Mutex // guards the fields below
	logs map[string]*auditLog
	last time.Time // of the last entry
}

// OpenAudit opens the log. path is the file of security events.
func OpenAudit(path string, now func() time.Time, log *slog.Logger) (*Audit, error) {
	a := &Audit{path: path, now: now, log: log, logs: map[string]*auditLog{}}
	err := errors.Join(os.MkdirAll(a.people(), 0o700), a.of(securityLog).file.Open())
	known, listErr := filepath.Glob(filepath.Join(a.people(), "*"+logSuffix))
	for _, one := range known {
		err = errors.Join(err, a.of(strings.TrimSuffix(filepath.Base(one), logSuffix)).file.Open())
	}
	if err = errors.Join(err, listErr); err != nil {
		return nil, session.WrapError(err, session.CodeAgentInternal, "The audit log cannot be opened.",
			"Check the permissions of "+path+".")
	}
	return a, nil
}

// people returns the folder of the logs of people.
func (a *Audit) people() string { return strings.TrimSuffix(a.path, filepath.Ext(a.path)) + ".d" }

// of returns a log by its name. The caller has locked a.mu.
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

// Close closes the log.
func (a *Audit) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var errs []error
	for _, one := range a.logs {
		errs = append(errs, one.settle(), one.file.Close())
	}
	return errors.Join(errs...)
}

// Note logs an act. If writing fails, the agent logs that, so that a full disk does not stop anyone from working.
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
	e.At = a.now().UTC()
	if !e.At.After(a.last) && a.last.Sub(e.At) < time.Millisecond {
		e.At = a.last.Add(time.Nanosecond) // entries are identified by their times
	}
	a.last = e.At
	if err := a.of(logOf(who.Owner, act)).add(e); err != nil {
		a.log.Error("the audit log could not be written", "method", e.Method, "owner", e.Owner, "session",
			e.Session, "outcome", e.Outcome, "error", err)
	}
}

// Read returns the newest matching entries, oldest first.
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
			return nil, session.WrapError(err, session.CodeAgentInternal, "The audit log cannot be read.",
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

// auditLog is one of the logs. Audit guards it.
type auditLog struct {
	file    *rotate.File
	repeats map[repeated]*repeat
	order   []repeated // of repeats, oldest first
}

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
		r.target, r.session = "", "" // otherwise each of many guessed names would be a line
	}
	if e.Owner == "" {
		r.client = "" // anybody can make many keys
	}
	return r
}

type repeat struct {
	since time.Time
	count int
	last  Entry
}

// add writes an entry, or counts it if it repeats a recent one.
func (l *auditLog) add(e Entry) error {
	like := repeatedOf(e)
	var err error
	for len(l.order) > 0 {
		over := e.At.Sub(l.repeats[l.order[0]].since).Abs() >= repeatsFor
		if full := len(l.order) >= maxRepeats && l.repeats[like] == nil; !over && !full {
			break
		}
		err = errors.Join(err, l.flush(l.repeats[l.order[0]]))
		delete(l.repeats, l.order[0])
		l.order = l.order[1:]
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

// flush writes the number of repetitions since the last flush.
func (l *auditLog) flush(r *repeat) error {
	if r.count == 0 {
		return nil
	}
	if r.count > 1 {
		r.last.Count = r.count
	}
	r.count = 0
	return l.write(r.last)
}

func (l *auditLog) settle() error {
	var errs []error
	for _, like := range l.order {
		errs = append(errs, l.flush(l.repeats[like]))
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

// readAudit reads one file. It skips invalid lines, such as one that a crash cut.
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
