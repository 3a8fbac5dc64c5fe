package access

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"slipway/backend/session"
)

const (
	// auditMost is the size from which a file of the log is put aside, in bytes.
	auditMost = 8 << 20
	// auditFiles is how many files the log has at most, the newest among them:
	// 40 MiB in all.
	auditFiles = 5
	// targetMost is how much of a path or name is written down, in bytes.
	targetMost = 512
	// dialEvery is how often connections to one port are written down.
	dialEvery = time.Minute
	// maxDials is how many ports are remembered for that.
	maxDials = 4096
)

// Act is one thing that was done.
type Act struct {
	Method  string
	Session session.ID
	Target  string // a terminal, an app, a port, a path, a name: never a secret
	Err     error
}

// Entry is one line of the log.
type Entry = session.AuditEntry

// Audit is the log of who did what, when and from where: JSON lines that are
// only ever added, in a file for its owner alone. Its methods are safe for
// concurrent use.
type Audit struct {
	path string
	now  func() time.Time
	log  *slog.Logger

	mu    sync.Mutex // guards everything below
	file  *os.File
	size  int64
	dials map[string]time.Time
	last  time.Time // of the last entry
}

// OpenAudit opens the log at a path.
func OpenAudit(path string, now func() time.Time, log *slog.Logger) (*Audit, error) {
	a := &Audit{path: path, now: now, log: log, dials: map[string]time.Time{}}
	if err := a.open(); err != nil {
		return nil, &session.Error{Code: "agent_audit_failed", Message: "The log of what is done cannot be opened.", Hint: "Check the permissions of " + path + ".", Err: err}
	}
	return a, nil
}

// open needs mu.
func (a *Audit) open() error {
	file, err := os.OpenFile(a.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	err = file.Chmod(0o600)
	info, statErr := file.Stat()
	if err = errors.Join(err, statErr); err != nil {
		return errors.Join(err, file.Close())
	}
	a.file, a.size = file, info.Size()
	return nil
}

// Close ends the log.
func (a *Audit) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file == nil {
		return nil
	}
	err := a.file.Close()
	a.file = nil
	return err
}

// Note writes down what somebody did. What cannot be written is told to the
// agent's own log; nobody is kept from working by a full disk.
func (a *Audit) Note(who Identity, act Act) {
	e := Entry{Owner: who.Owner, Role: string(who.Role), Device: who.Device, From: who.From, Method: act.Method, Session: act.Session, Target: clip(act.Target), Outcome: "ok"}
	if act.Err != nil {
		e.Outcome = string(session.AsError(act.Err, "agent_call_internal-error").Code)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if e.At = a.now().UTC(); !e.At.After(a.last) && a.last.Sub(e.At) < time.Millisecond {
		e.At = a.last.Add(time.Nanosecond) // by which it is known from the one before
	}
	a.last = e.At
	if act.Method == "DialPort" && a.dialed(e) {
		return
	}
	line, err := json.Marshal(e)
	if err == nil {
		err = a.write(append(line, '\n'))
	}
	if err != nil {
		a.log.Error("what was done could not be written down", "method", e.Method, "owner", e.Owner, "session", e.Session, "outcome", e.Outcome, "error", err)
	}
}

// dialed needs mu: whether a connection like this was written down lately.
func (a *Audit) dialed(e Entry) bool {
	key := fmt.Sprint(e.Owner, "\x00", e.Device, "\x00", e.Session, "\x00", e.Target, "\x00", e.Outcome)
	if e.At.Sub(a.dials[key]) < dialEvery {
		return true
	}
	if len(a.dials) >= maxDials {
		clear(a.dials)
	}
	a.dials[key] = e.At
	return false
}

// write needs mu.
func (a *Audit) write(line []byte) error {
	if a.file == nil {
		if err := a.open(); err != nil {
			return err
		}
	}
	if a.size > 0 && a.size+int64(len(line)) > auditMost {
		if err := a.rotate(); err != nil {
			return err
		}
	}
	n, err := a.file.Write(line)
	a.size += int64(n)
	return err
}

// rotate needs mu: it puts the file aside and drops the oldest.
func (a *Audit) rotate() error {
	err := a.file.Close()
	a.file = nil
	for i := auditFiles - 2; i >= 0; i-- {
		if moved := os.Rename(a.name(i), a.name(i+1)); moved != nil && !errors.Is(moved, fs.ErrNotExist) {
			err = errors.Join(err, moved)
		}
	}
	return errors.Join(err, a.open())
}

// name is the path of the nth newest file.
func (a *Audit) name(n int) string {
	if n == 0 {
		return a.path
	}
	return fmt.Sprintf("%s.%d", a.path, n)
}

// Read returns the newest entries that are asked for, oldest first.
func (a *Audit) Read(asked session.AuditQuery) ([]Entry, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	entries := []Entry{}
	begun := asked.Before.IsZero()
	for n := 0; n < auditFiles && len(entries) < asked.Limit; n++ {
		older, err := readAudit(a.name(n))
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, &session.Error{Code: "agent_audit_failed", Message: "The log of what was done cannot be read.", Hint: "Look at " + a.path + ".", Err: err}
		}
		if !begun {
			at := slices.IndexFunc(older, func(e Entry) bool { return e.At.Equal(asked.Before) })
			if begun = at >= 0; !begun {
				continue
			}
			older = older[:at]
		}
		older = slices.DeleteFunc(older, func(e Entry) bool { return !asked.Matches(e) })
		entries = append(older, entries...)
	}
	return entries[max(0, len(entries)-asked.Limit):], nil
}

// readAudit reads one file. A line that is none, as a crash leaves one, is
// passed over.
func readAudit(path string) ([]Entry, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var entries []Entry
	for line := range bytes.Lines(data[:min(len(data), 2*auditMost)]) {
		var e Entry
		if json.Unmarshal(line, &e) == nil && e.Method != "" {
			entries = append(entries, e)
		}
	}
	return entries, nil
}

func clip(text string) string {
	if len(text) > targetMost {
		return text[:targetMost] + "…"
	}
	return text
}
