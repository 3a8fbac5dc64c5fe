package sim

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"slipway/backend/pace"
	"slipway/backend/session"
)

const maxLog = 64 << 20 // bytes

// logFile is the log of a container: lines that begin with their time.
type logFile struct {
	path  string
	clock *pace.Clock

	mu      sync.Mutex // guards what follows
	file    *os.File
	size    int64
	partial []byte // a line that has not ended
	changed chan struct{}
}

func openLog(path string, clock *pace.Clock) (*logFile, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &logFile{path: path, clock: clock, file: file, size: info.Size(), changed: make(chan struct{})}, nil
}

func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range bytes.Lines(p) {
		text, ended := bytes.CutSuffix(line, []byte{'\n'})
		l.partial = append(l.partial, text...)
		if ended {
			l.put()
		}
	}
	return len(p), nil
}

// put writes the line that has just ended. It needs mu.
func (l *logFile) put() {
	text := l.partial
	l.partial = nil
	if l.size > maxLog {
		return
	}
	if l.size+int64(len(text)) > maxLog {
		text = []byte("… the log is full; what follows is not kept")
		l.size = maxLog
	}
	n, err := l.file.WriteString(l.clock.Now().UTC().Format(time.RFC3339Nano) + " " + string(text) + "\n")
	if err != nil {
		return // the disk is full, or the log is gone: it ends here and the command goes on
	}
	l.size += int64(n)
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *logFile) line(text string) {
	l.flush()
	l.Write([]byte(text + "\n")) //nolint:errcheck // always nil
}

func (l *logFile) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.partial) > 0 {
		l.put()
	}
}

func (l *logFile) wait() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

func (s *containers) Logs(ctx context.Context, id string, opts session.LogOptions) (io.ReadCloser, error) {
	log, err := locked(ctx, s.machine, func() (*logFile, error) {
		if c, ok := s.byID[id]; ok {
			return c.log, nil
		}
		return nil, notFound(id)
	})
	if err != nil {
		return nil, err
	}
	file, err := os.Open(log.path)
	if err != nil {
		return nil, notFound(id)
	}
	if err := skipTo(file, opts.Tail); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	r := &logReader{opts: opts, log: log, file: file, lines: bufio.NewReader(file),
		running: func() (bool, <-chan struct{}) { return s.running(id) }}
	r.ctx, r.cancel = context.WithCancel(ctx)
	return r, nil
}

// logReader reads a log with options. Close ends a Read that waits.
type logReader struct {
	ctx     context.Context //nolint:containedctx // of the call that asked for the log
	cancel  context.CancelFunc
	opts    session.LogOptions
	log     *logFile
	file    *os.File
	lines   *bufio.Reader
	text    string // what of the line is there
	whole   bool   // text is the rest of a whole line
	running func() (bool, <-chan struct{})
}

func (r *logReader) Read(p []byte) (int, error) {
	for !r.whole {
		wait := r.log.wait()
		running, changed := r.running()
		text, err := r.lines.ReadString('\n')
		r.text += text
		switch {
		case err == nil:
			r.whole = true
			if !r.opts.Timestamps {
				_, r.text, _ = strings.Cut(r.text, " ")
			}
			continue
		case !errors.Is(err, io.EOF) || !r.opts.Follow || !running:
			return 0, err
		}
		select {
		case <-wait:
		case <-changed:
		case <-r.ctx.Done():
			return 0, r.ctx.Err()
		}
	}
	n := copy(p, r.text)
	r.text, r.whole = r.text[n:], n < len(r.text)
	return n, nil
}

func (r *logReader) Close() error {
	r.cancel()
	return r.file.Close()
}

// running reports whether a container runs or will run, and when to look again.
func (s *containers) running(id string) (now bool, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.byID[id]
	return ok && (c.State.Running || c.State.Created) && !s.closed, s.changed
}

// skipTo moves to the last n lines of a file; 0 means all.
func skipTo(file *os.File, n int) error {
	if n <= 0 {
		return nil
	}
	var last []int64 // where the last lines begin, and what comes after them
	lines, at := bufio.NewReader(file), int64(0)
	for {
		last = append(last, at)[max(0, len(last)-n):]
		text, err := lines.ReadString('\n')
		if err != nil {
			break // a line that is being written counts once it is whole
		}
		at += int64(len(text))
	}
	_, err := file.Seek(last[0], io.SeekStart)
	return err
}
