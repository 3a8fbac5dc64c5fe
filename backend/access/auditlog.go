package access

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

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
	path    string
	most    int      // from this size on a file is put aside, in bytes
	files   int      // how many there are at most, the newest among them
	file    *os.File // the newest; nil before anything is written
	size    int
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
	if err != nil {
		return err
	}
	line = append(line, '\n')
	if l.file != nil && l.size > 0 && l.size+len(line) > l.most {
		if err := l.rotate(); err != nil {
			return err
		}
	}
	if err := l.open(); err != nil {
		return err
	}
	n, err := l.file.Write(line)
	l.size += n
	return err
}

// open opens the newest file, which is for its owner alone.
func (l *auditLog) open() error {
	if l.file != nil {
		return nil
	}
	file, err := os.OpenFile(l.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, statErr := file.Stat()
	if err = errors.Join(file.Chmod(0o600), statErr); err != nil {
		return errors.Join(err, file.Close())
	}
	l.file, l.size = file, int(info.Size())
	return nil
}

// end closes the file after all that is only counted was written.
func (l *auditLog) end() error {
	err := l.settle()
	if l.file != nil {
		err = errors.Join(err, l.file.Close())
		l.file = nil
	}
	return err
}

// rotate puts the file aside and drops the oldest.
func (l *auditLog) rotate() error {
	err := l.file.Close()
	l.file = nil
	for i := l.files - 2; i >= 0; i-- {
		if moved := os.Rename(l.name(i), l.name(i+1)); moved != nil && !notThere(moved) {
			err = errors.Join(err, moved)
		}
	}
	return err
}

// name is the path of the nth newest file.
func (l *auditLog) name(n int) string {
	if n == 0 {
		return l.path
	}
	return fmt.Sprintf("%s.%d", l.path, n)
}

// read adds to entries the newest that are asked for; there may be more of them.
func (l *auditLog) read(entries []Entry, asked session.AuditQuery) ([]Entry, error) {
	for n := range l.files {
		older, err := readAudit(l.name(n), int64(l.most))
		if notThere(err) {
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
