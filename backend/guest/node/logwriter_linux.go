package node

import (
	"bytes"
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// logWriter writes lines with their times to a log, in at most two files.
type logWriter struct {
	path string

	mu      sync.Mutex // guards everything below
	file    *os.File
	size    int64
	pending []byte // of a line that has not ended
	scratch []byte
}

// openLogWriter continues a log.
func openLogWriter(path string) (*logWriter, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &logWriter{path: path, file: file, size: info.Size()}, nil
}

// copy writes what it reads until the end. What cannot be written, because the disk is full, is lost.
func (l *logWriter) copy(from io.Reader) {
	block := make([]byte, 32<<10)
	for {
		n, err := from.Read(block)
		l.add(block[:n])
		if err != nil {
			break
		}
	}
	if len(l.pending) > 0 {
		l.say(string(l.pending))
		l.pending = nil
	}
}

func (l *logWriter) add(text []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.scratch = l.scratch[:0]
	for len(text) > 0 {
		line, rest, ends := bytes.Cut(text, []byte{'\n'})
		if room := maxLogLine - len(l.pending); len(line) > room {
			line, rest, ends = text[:room], text[room:], false
		}
		l.pending = append(l.pending, line...)
		text = rest
		if ends || len(l.pending) >= maxLogLine {
			l.line(l.pending, ends)
			l.pending = l.pending[:0]
		}
	}
	l.flush()
}

// line adds a line to what is written next.
func (l *logWriter) line(text []byte, ends bool) {
	l.scratch = LogLine{At: time.Now(), Text: text, Ends: ends}.append(l.scratch)
}

// flush writes, to a new file if this one is full.
func (l *logWriter) flush() {
	if l.size > 0 && l.size+int64(len(l.scratch)) > maxLogFile {
		if err := l.turn(); err != nil {
			return
		}
	}
	n, _ := l.file.Write(l.scratch) // see copy
	l.size += int64(n)
}

func (l *logWriter) turn() error {
	if err := os.Rename(l.path, l.path+earlier); err != nil {
		return err
	}
	next, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_ = l.file.Close()
	l.file, l.size = next, 0
	return nil
}

// say writes a whole line, such as one of the runner's own.
func (l *logWriter) say(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.scratch = l.scratch[:0]
	l.line([]byte(text), true)
	l.flush()
}

// close makes the log durable.
func (l *logWriter) close() error { return errors.Join(l.file.Sync(), l.file.Close()) }
