package access

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"os"
	"time"

	"slipway/backend/rotate"
	"slipway/backend/session"
)

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

// repeated is what is the same in acts that repeat. What was refused is so
// whatever it was asked of: or each of many names would be a line.
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

// readAudit reads one file. A line that is none, as a crash leaves one, is
// passed over.
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
