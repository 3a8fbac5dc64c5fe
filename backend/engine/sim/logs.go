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

// maxLog is how much of a container's output is kept, in bytes.
const maxLog = 64 << 20

// logFile keeps what a container wrote: one line each, begun with its time.
type logFile struct {
	path  string
	clock *pace.Clock

	mu      sync.Mutex // guards what follows
	file    *os.File
	size    int64
	partial []byte // a line that has not ended
	changed chan struct{}
	closed  bool
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

// Write takes output as it comes.
func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	rest := p
	for {
		line, after, complete := bytes.Cut(rest, []byte{'\n'})
		l.partial = append(l.partial, line...)
		if !complete {
			break
		}
		rest = after
		l.put()
	}
	return len(p), nil
}

// put writes the line that has just ended. The caller holds mu.
func (l *logFile) put() {
	text := l.partial
	l.partial = nil
	if l.closed || l.size > maxLog {
		return
	}
	if l.size+int64(len(text)) > maxLog {
		text = []byte("… the log is full; what follows is not kept")
		l.size = maxLog
	}
	n, err := l.file.WriteString(l.clock.Now().UTC().Format(time.RFC3339Nano) + " " + string(text) + "\n")
	if err != nil {
		return // the disk is full: the log ends here and the command goes on
	}
	l.size += int64(n)
	close(l.changed)
	l.changed = make(chan struct{})
}

// line writes a line of our own.
func (l *logFile) line(text string) {
	l.flush()
	l.Write([]byte(text + "\n")) //nolint:errcheck // always nil
}

// flush ends a line that has not ended.
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

func (l *logFile) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	close(l.changed)
	l.changed = make(chan struct{})
	return l.file.Close()
}

func (s *containers) Logs(ctx context.Context, id string, opts session.LogOptions) (io.ReadCloser, error) {
	if err := s.check(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	c, ok := s.byID[id]
	s.mu.Unlock()
	if !ok {
		return nil, notFound(id)
	}
	file, err := os.Open(c.log.path)
	if err != nil {
		return nil, notFound(id)
	}
	ctx, cancel := context.WithCancel(ctx)
	reader, writer := io.Pipe()
	go func() {
		err := s.copyLog(ctx, id, c.log, file, opts, writer)
		writer.CloseWithError(errors.Join(err, file.Close())) //nolint:errcheck // always nil
	}()
	stop := context.AfterFunc(ctx, func() { reader.CloseWithError(ctx.Err()) }) //nolint:errcheck // always nil
	return &logReader{PipeReader: reader, stop: func() { stop(); cancel() }}, nil
}

type logReader struct {
	*io.PipeReader
	stop func()
}

func (r *logReader) Close() error {
	r.stop()
	return r.PipeReader.Close()
}

// copyLog writes a log as opts ask for it.
func (s *containers) copyLog(ctx context.Context, id string, log *logFile, file *os.File, opts session.LogOptions,
	w io.Writer) error {
	if err := skipTo(file, opts.Tail); err != nil {
		return err
	}
	lines := bufio.NewReader(file)
	partial := ""
	for {
		wait := log.wait()
		running := s.running(id)
		for {
			text, err := lines.ReadString('\n')
			partial += text
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
			if !opts.Timestamps {
				_, partial, _ = strings.Cut(partial, " ")
			}
			if _, err := io.WriteString(w, partial); err != nil {
				return err
			}
			partial = ""
		}
		if !opts.Follow || !running.now {
			return nil
		}
		select {
		case <-wait:
		case <-running.changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// runningNow says whether a container runs, and when to look again.
type runningNow struct {
	now     bool
	changed <-chan struct{}
}

func (s *containers) running(id string) runningNow {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.byID[id]
	return runningNow{now: ok && (c.State.Running || c.State.Created) && !s.closed, changed: s.changed}
}

// skipTo moves to the last n lines of a file; 0 means all of them.
func skipTo(file *os.File, n int) error {
	if n <= 0 {
		return nil
	}
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	buffer := make([]byte, 64<<10)
	found := 0
	for end := size; end > 0; {
		start := max(0, end-int64(len(buffer)))
		chunk := buffer[:end-start]
		if _, err := file.ReadAt(chunk, start); err != nil {
			return err
		}
		for i := len(chunk) - 1; i >= 0; i-- {
			if chunk[i] != '\n' {
				continue
			}
			if found++; found > n {
				_, err := file.Seek(start+int64(i)+1, io.SeekStart)
				return err
			}
		}
		end = start
	}
	_, err = file.Seek(0, io.SeekStart)
	return err
}
