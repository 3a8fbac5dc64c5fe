package service

import (
	"errors"
	"os"
	"sync"
)

// logMost is how long the log file grows before it is put aside, in bytes.
const logMost = 8 << 20

// logFile appends to a file. A file that is full is kept once, under its name
// with .1, so that at most twice the limit is on disk.
type logFile struct {
	path string
	most int64

	// mu guards everything below.
	mu   sync.Mutex
	file *os.File
	size int64
}

func openLog(path string, most int64) (*logFile, error) {
	l := &logFile{path: path, most: most}
	return l, l.open()
}

// open needs mu, or a file that nobody else knows yet.
func (l *logFile) open() error {
	file, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	l.file, l.size = file, info.Size()
	return nil
}

// Write appends one record. A record is never split between two files.
func (l *logFile) Write(record []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size > 0 && l.size+int64(len(record)) > l.most {
		if err := l.turn(); err != nil {
			return 0, err
		}
	}
	n, err := l.file.Write(record)
	l.size += int64(n)
	return n, err
}

// turn needs mu.
func (l *logFile) turn() error {
	if err := os.Rename(l.path, l.path+".1"); err != nil {
		return err
	}
	full := l.file
	if err := l.open(); err != nil {
		return err // the full one stays in use
	}
	return full.Close()
}

// Close closes the file.
func (l *logFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Close()
}
