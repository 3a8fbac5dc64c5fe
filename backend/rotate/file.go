// Package rotate writes logs to files that are renamed when they are full.
package rotate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// File is an append-only log that only its owner can read. A full file gets the suffix .1, the one before it .2, and so
// on. Its methods are safe for concurrent use.
type File struct {
	Path  string
	Most  int64 // bytes of one file
	Files int   // maximum number, including the newest

	mu   sync.Mutex // guards the fields below
	file *os.File   // nil: the next write opens it
	size int64
}

// Open creates the file, or checks that it can be appended to.
func (f *File) Open() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open()
}

// open needs mu.
func (f *File) open() error {
	if f.file != nil {
		return nil
	}
	file, err := os.OpenFile(f.Path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err = errors.Join(err, file.Chmod(0o600)); err != nil {
		return errors.Join(err, file.Close())
	}
	f.file, f.size = file, info.Size()
	return nil
}

// Write appends one record. A record is never split between two files.
func (f *File) Write(record []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.open(); err != nil {
		return 0, err
	}
	if f.size > 0 && f.size+int64(len(record)) > f.Most {
		if err := errors.Join(f.close(), f.putAside(), f.open()); err != nil {
			return 0, err
		}
	}
	n, err := f.file.Write(record)
	f.size += int64(n)
	return n, err
}

// putAside renames all files; the oldest is replaced.
func (f *File) putAside() error {
	for i := f.Files - 2; i >= 0; i-- {
		if err := os.Rename(f.Name(i), f.Name(i+1)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Name returns the path of the nth newest file.
func (f *File) Name(n int) string {
	if n == 0 {
		return f.Path
	}
	return fmt.Sprintf("%s.%d", f.Path, n)
}

// Close closes the file. A later Write opens it again.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.close()
}

// close needs mu.
func (f *File) close() error {
	if f.file == nil {
		return nil
	}
	file := f.file
	f.file = nil
	return file.Close()
}
