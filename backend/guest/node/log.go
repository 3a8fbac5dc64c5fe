package node

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"slipway/backend/session"
)

// LogTime is the layout of the time at the beginning of each line of a log, in UTC and of the same width as all others.
const LogTime = "2006-01-02T15:04:05.000000000Z"

const (
	// maxLogLine is how much of a line is held back until it ends. Longer ones are written in pieces.
	maxLogLine = 16 << 10
	// maxLogFile is the size, in bytes, of each of the two files of a log.
	maxLogFile = 32 << 20
	// logPause is how often a log is read while it is followed. Network file systems do not tell of changes.
	logPause = 500 * time.Millisecond
)

// The marks after the time: of a line's end, and of a piece before the end.
const (
	lineEnds = 'F'
	lineGoes = 'P'
)

// earlier is the suffix of the first part of a log that was too long for one file.
const earlier = ".1"

// LogLine is one line of a log, written as "<time> F <text>", or a piece of it without its end, as "<time> P <text>".
type LogLine struct {
	At   time.Time
	Text []byte // without the line feed
	Ends bool
}

// ParseLogLine parses a line of a log, without its line feed.
func ParseLogLine(line []byte) (LogLine, bool) {
	const head = len(LogTime) + 3
	if len(line) < head || line[head-3] != ' ' || line[head-1] != ' ' {
		return LogLine{}, false
	}
	at, err := time.Parse(LogTime, string(line[:head-3]))
	mark := line[head-2]
	if err != nil || mark != lineEnds && mark != lineGoes {
		return LogLine{}, false
	}
	return LogLine{At: at, Text: line[head:], Ends: mark == lineEnds}, true
}

func (l LogLine) append(to []byte) []byte {
	to = l.At.UTC().AppendFormat(to, LogTime)
	mark := byte(lineGoes)
	if l.Ends {
		mark = lineEnds
	}
	to = append(to, ' ', mark, ' ')
	return append(append(to, l.Text...), '\n')
}

// OpenLog returns what a kernel wrote, as text, with the time before each line if asked. It follows until the kernel
// has ended and everything was read, or ctx ends. A kernel that has written nothing yet has an empty log.
func OpenLog(ctx context.Context, dir, kernel string, opts session.LogOptions) (io.ReadCloser, error) {
	r := &logReader{path: logFile(dir, kernel), timestamps: opts.Timestamps, done: ctx.Done()}
	if opts.Follow {
		r.ended = func() bool {
			_, err := ReadExit(dir, kernel)
			return err == nil
		}
	}
	skip := 0
	if opts.Tail > 0 {
		lines, err := countLines(r.path)
		if err != nil {
			return nil, err
		}
		skip = max(0, lines-opts.Tail)
	}
	r.skip = skip
	if err := r.begin(); err != nil {
		return nil, err
	}
	return r, nil
}

// countLines counts the lines of both files of a log; one without an end counts.
func countLines(path string) (lines int, err error) {
	for _, file := range []string{path + earlier, path} {
		err := eachLine(file, func(line LogLine) {
			if line.Ends {
				lines++
			}
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
	}
	return lines, nil
}

func eachLine(path string, fn func(LogLine)) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewReaderSize(file, 2*maxLogLine)
	for {
		text, err := lines.ReadSlice('\n')
		if err == io.EOF { //nolint:errorlint // only the plain one says that the file has ended
			return nil
		}
		if err != nil {
			return err
		}
		if line, ok := ParseLogLine(bytes.TrimSuffix(text, []byte{'\n'})); ok {
			fn(line)
		}
	}
}

// logReader reads the text of a log: first the earlier file, if there is one, then the later.
type logReader struct {
	done       <-chan struct{} // ends the following
	path       string
	timestamps bool
	ended      func() bool // nil: the log is not followed
	skip       int         // lines to leave out

	file    *os.File // nil: there is none yet
	raw     []byte   // read and not parsed
	out     []byte   // parsed and not returned
	midLine bool     // the last piece did not end its line
	over    error    // how it ends once everything was read; nil: it is followed
}

// begin opens the first file.
func (r *logReader) begin() error {
	file, err := os.Open(r.path + earlier)
	if errors.Is(err, fs.ErrNotExist) {
		file, err = os.Open(r.path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	r.file = file
	return nil
}

func (r *logReader) Read(p []byte) (int, error) {
	for len(r.out) == 0 {
		more, err := r.fill()
		switch {
		case err != nil:
			return 0, err
		case more:
			continue
		case r.ended == nil:
			return 0, io.EOF
		case r.over != nil:
			return 0, r.over
		case r.ended():
			r.over = io.EOF // and what it wrote last is read once more
			continue
		}
		select {
		case <-time.After(logPause):
		case <-r.done:
			r.over = context.Canceled // the same: its folder may be gone since it ended
		}
	}
	n := copy(p, r.out)
	r.out = r.out[n:]
	return n, nil
}

// fill reads and parses more of the log. It reports whether there may be more.
func (r *logReader) fill() (more bool, err error) {
	if r.file == nil {
		return false, r.begin()
	}
	block := make([]byte, 64<<10)
	n, err := r.file.Read(block)
	r.parse(block[:n])
	switch {
	case n > 0:
		return true, nil
	case err != io.EOF: //nolint:errorlint // as above
		return false, err
	}
	return r.next()
}

// next continues with the file that was begun meanwhile, if there is one.
func (r *logReader) next() (more bool, err error) {
	file, err := os.Open(r.path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	was, err := r.file.Stat()
	now, errNow := file.Stat()
	if err = errors.Join(err, errNow); err != nil || os.SameFile(was, now) {
		return false, errors.Join(err, file.Close())
	}
	old := r.file
	r.file = file
	return true, old.Close()
}

// parse takes whole lines from what was read.
func (r *logReader) parse(block []byte) {
	r.raw = append(r.raw, block...)
	for {
		text, rest, ok := bytes.Cut(r.raw, []byte{'\n'})
		if !ok {
			break
		}
		r.raw = rest
		line, ok := ParseLogLine(text)
		switch {
		case !ok:
			continue // a runner that died while it wrote
		case r.skip > 0:
			if line.Ends {
				r.skip--
			}
			continue
		}
		if r.timestamps && !r.midLine {
			r.out = append(line.At.AppendFormat(r.out, LogTime), ' ')
		}
		r.out = append(r.out, line.Text...)
		if line.Ends {
			r.out = append(r.out, '\n')
		}
		r.midLine = !line.Ends
	}
	if len(r.raw) > 2*maxLogLine {
		r.raw = nil // not written by a runner
	}
	r.raw = bytes.Clone(r.raw)
}

func (r *logReader) Close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}
