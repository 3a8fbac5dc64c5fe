package logs

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// rotating writes to a file and, when that is full, goes on in a new one and
// keeps the one before. It changes files only at the end of a line.
type rotating struct {
	path    string
	cap     int64 // of one file, in bytes
	file    *os.File
	written int64
	dropped int64 // bytes that are no longer in either file
	older   int64 // bytes in the file before
}

func (r *rotating) Write(p []byte) (int, error) {
	total := len(p)
	for len(p) > 0 {
		if err := r.makeRoom(); err != nil {
			return total - len(p), err
		}
		// The file ends with the line that crosses the cap, and of that line at
		// most a quarter of the cap is kept.
		chunk, rest := p, []byte(nil)
		if room := max(0, r.cap-r.written-1); int64(len(p)) > room {
			if end := bytes.IndexByte(p[room:], '\n'); end >= 0 {
				chunk, rest = p[:room+int64(end)+1], p[room+int64(end)+1:]
			}
		}
		p = rest
		ends := chunk[len(chunk)-1] == '\n'
		if excess := r.written + int64(len(chunk)) - r.cap - r.cap/4; excess > 0 {
			excess = min(excess, int64(len(chunk)))
			chunk = chunk[:int64(len(chunk))-excess]
			r.dropped += excess
			if ends {
				chunk = append(bytes.Clone(chunk), '\n')
			}
		}
		n, err := r.file.Write(chunk)
		r.written += int64(n)
		if err != nil {
			return total - len(p), err
		}
		if r.written >= r.cap && ends {
			if err := r.rotate(); err != nil {
				return total - len(p), err
			}
		}
	}
	return total, nil
}

func (r *rotating) makeRoom() (err error) {
	if r.file == nil {
		r.file, err = os.OpenFile(r.path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	}
	return err
}

func (r *rotating) rotate() error {
	if err := r.file.Close(); err != nil {
		return err
	}
	r.file = nil
	r.dropped += r.older
	r.older, r.written = r.written, 0
	return os.Rename(r.path, r.path+".1")
}

// commit gives the files their names: the older first, so that a reader never
// sees the newer one without it.
func (r *rotating) commit(final string) error {
	if err := r.makeRoom(); err != nil {
		return err
	}
	if err := errors.Join(r.file.Sync(), r.file.Close()); err != nil {
		return err
	}
	r.file = nil
	if r.dropped > 0 {
		if err := os.WriteFile(final+".dropped", fmt.Appendf(nil, "%d", r.dropped), 0o600); err != nil {
			return err
		}
	}
	if r.older > 0 {
		if err := os.Rename(r.path+".1", final+".1"); err != nil {
			return err
		}
	}
	return os.Rename(r.path, final)
}

// discard removes what was not committed.
func (r *rotating) discard() {
	if r.file != nil {
		r.file.Close() //nolint:errcheck // it is given up
	}
	os.Remove(r.path)        //nolint:errcheck // usually it is not there
	os.Remove(r.path + ".1") //nolint:errcheck // usually it is not there
}

// keptLog reads a kept log line by line, with or without its timestamps.
type keptLog struct {
	files  []*os.File // oldest first
	lines  *bufio.Reader
	skip   int
	stamps bool
	rest   []byte // of the line being read
	inLine bool   // the next piece goes on with a line
}

func (k *keptLog) Read(p []byte) (int, error) {
	for len(k.rest) == 0 {
		piece, err := k.lines.ReadSlice('\n')
		if len(piece) == 0 && err != nil {
			return 0, err
		}
		begins := !k.inLine
		k.inLine = piece[len(piece)-1] != '\n'
		if k.skip > 0 {
			if !k.inLine {
				k.skip--
			}
			continue
		}
		if begins && !k.stamps {
			if _, text, ok := bytes.Cut(piece, []byte{' '}); ok {
				piece = text
			}
		}
		k.rest = piece
	}
	n := copy(p, k.rest)
	k.rest = k.rest[n:]
	return n, nil
}

func (k *keptLog) Close() error {
	var err error
	for _, file := range k.files {
		err = errors.Join(err, file.Close())
	}
	return err
}

// lineCount counts the lines that are written to it; a last one without its end
// counts.
type lineCount struct {
	ended int
	open  int // 1 within a line
}

func (c *lineCount) Write(p []byte) (int, error) {
	if len(p) > 0 {
		c.ended += bytes.Count(p, []byte{'\n'})
		if c.open = 1; p[len(p)-1] == '\n' {
			c.open = 0
		}
	}
	return len(p), nil
}

// countLines counts the lines of files, which it reads from their beginning and
// leaves there.
func countLines(files []*os.File) (int, error) {
	var count lineCount
	for _, file := range files {
		if _, err := io.Copy(&count, file); err != nil {
			return 0, err
		}
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return 0, err
		}
	}
	return count.ended + count.open, nil
}
