package terminal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// DefaultCap is how many bytes of output a spool keeps at least by default.
const DefaultCap = 64 << 20

const (
	memorySize  = 128 << 10 // bytes in memory
	maxInterval = 64 << 10  // bytes between two checkpoints of the screen's modes
)

// ErrSpoolClosed is returned by reads of a closed spool.
var ErrSpoolClosed = errors.New("terminal: spool is closed")

// GapError means that the requested bytes are no longer kept.
type GapError struct {
	From, To uint64 // [From, To) is gone
}

func (e *GapError) Error() string {
	return fmt.Sprintf("terminal: output from %d to %d is no longer kept", e.From, e.To)
}

// SpoolConfig describes a spool.
type SpoolConfig struct {
	Path string // file for older output, created when needed and removed by Close; empty: memory only
	Cap  int    // bytes kept at least; 0: [DefaultCap]
}

// Spool keeps the newest output of one shell, under offsets that never change. The newest bytes are in memory, older
// ones in a file used as a ring. Readers are independent of each other and of the writer. If the file fails, for
// example because the disk is full, the spool continues in memory. All methods are safe for concurrent use.
type Spool struct {
	path     string
	interval uint64 // bytes between checkpoints; every start is a multiple of it
	changes  broadcast

	writing sync.Mutex // held during Write and Close
	flushed uint64     // guarded by writing: bytes below it are in the file
	scanner modes      // guarded by writing: modes at end

	mu      sync.Mutex // guards the fields below; never held during file I/O
	file    *os.File
	fileErr error  // why the file is no longer used
	keep    uint64 // bytes in memory and file together
	start   uint64
	end     uint64
	memory  []byte  // ring: the byte at offset o is at o % len
	marks   []modes // modes at start, start+interval, …
	closed  bool
}

// NewSpool returns an empty spool.
func NewSpool(cfg SpoolConfig) *Spool {
	limit := uint64(DefaultCap)
	if cfg.Cap > 0 {
		limit = uint64(cfg.Cap)
	}
	interval := min(max(limit/16, 1), maxInterval)
	keep := (limit/interval + 2) * interval // one interval more, because start is rounded up
	size := min(keep, max(memorySize, 2*interval))
	if cfg.Path == "" {
		size = keep
	}
	return &Spool{
		path: cfg.Path, interval: interval, keep: keep,
		memory: make([]byte, size), marks: []modes{{}},
	}
}

// Write appends output. It fails only if the spool is closed.
func (s *Spool) Write(p []byte) (int, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	written := 0
	for len(p) > 0 {
		end := s.end // only this goroutine changes it
		n := min(uint64(len(p)), s.interval-end%s.interval, uint64(len(s.memory))/2)
		if end+n-s.flushed > uint64(len(s.memory)) {
			s.flush(end)
		}
		s.scanner.feed(p[:n])
		if !s.append(p[:n]) {
			return written, ErrSpoolClosed
		}
		s.changes.notify()
		written += int(n)
		p = p[n:]
	}
	return written, nil
}

// Notice appends a line to the output, unless a program uses the alternate screen, which the line would garble, or the
// output ends inside an escape sequence. It reports whether it did.
func (s *Spool) Notice(line string) (bool, error) {
	s.writing.Lock()
	fits := s.scanner.chosen[0] == 0 && s.scanner.state == scanGround
	s.writing.Unlock()
	if !fits {
		return false, nil
	}
	_, err := s.Write([]byte("\r\n\x1b[7m " + line + " \x1b[0m\r\n"))
	return err == nil, err
}

// append copies p, which crosses no checkpoint, to memory.
func (s *Spool) append(p []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	at := s.end % uint64(len(s.memory))
	n := copy(s.memory[at:], p)
	copy(s.memory, p[n:])
	s.end += uint64(len(p))
	if s.end%s.interval == 0 {
		s.marks = append(s.marks, s.scanner)
	}
	s.drop()
	return true
}

// drop moves start so that at most keep bytes remain. The caller holds s.mu.
func (s *Spool) drop() {
	if s.end-s.start <= s.keep {
		return
	}
	intervals := (s.end - s.keep - s.start + s.interval - 1) / s.interval
	s.start += intervals * s.interval
	s.marks = append(s.marks[:0], s.marks[intervals:]...)
}

// flush writes what is only in memory to the file. The caller holds s.writing.
func (s *Spool) flush(end uint64) {
	if uint64(len(s.memory)) < s.keep {
		if err := s.writeFile(s.flushed, end); err != nil {
			s.loseFile(err)
		}
	}
	s.flushed = end
}

// writeFile copies [from, to) from memory to the file. What it overwrites is below start, so readers do not read it.
func (s *Spool) writeFile(from, to uint64) error {
	if s.file == nil {
		file, err := os.OpenFile(s.path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return err
		}
		s.mu.Lock()
		s.file = file
		s.mu.Unlock()
	}
	size := uint64(len(s.memory))
	for from < to {
		at, place := from%size, from%s.keep
		n := min(to-from, size-at, s.keep-place)
		if _, err := s.file.WriteAt(s.memory[at:at+n], int64(place)); err != nil {
			return err
		}
		from += n
	}
	return nil
}

// loseFile continues without the file after err.
func (s *Spool) loseFile(err error) {
	s.mu.Lock()
	file := s.file
	s.file, s.fileErr = nil, err
	s.keep = uint64(len(s.memory)) / s.interval * s.interval
	s.drop()
	s.mu.Unlock()
	s.removeFile(file)
}

func (s *Spool) removeFile(file *os.File) {
	if file != nil {
		_ = file.Close()
		_ = os.Remove(s.path)
	}
}

// Bounds returns the offsets of the oldest byte and after the newest.
func (s *Spool) Bounds() (start, end uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.start, s.end
}

// Err returns why the file is no longer used; nil if it is.
func (s *Spool) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fileErr
}

// ReadAt reads from offset on; 0 bytes at the end. It fails with a [*GapError] if offset is gone, or [ErrSpoolClosed].
func (s *Spool) ReadAt(p []byte, offset uint64) (int, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return 0, ErrSpoolClosed
	}
	if offset < s.start {
		defer s.mu.Unlock()
		return 0, &GapError{From: offset, To: s.start}
	}
	if offset >= s.end {
		s.mu.Unlock()
		return 0, nil
	}
	size := uint64(len(s.memory))
	if s.end-offset <= size {
		defer s.mu.Unlock()
		n := copy(p[:min(len(p), int(s.end-offset))], s.memory[offset%size:])
		if n < len(p) && offset+uint64(n) < s.end {
			n += copy(p[n:], s.memory[:(s.end-1)%size+1])
		}
		return n, nil
	}
	file, place := s.file, offset%s.keep
	n := min(uint64(len(p)), s.end-size-offset, s.keep-place)
	s.mu.Unlock()
	return s.readFile(file, p[:n], offset, int64(place))
}

// readFile reads from the file, then checks that the writer has not overwritten the place meanwhile.
func (s *Spool) readFile(file *os.File, p []byte, offset uint64, place int64) (int, error) {
	_, err := file.ReadAt(p, place)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return 0, ErrSpoolClosed
	case offset < s.start:
		return 0, &GapError{From: offset, To: s.start}
	case errors.Is(err, io.EOF):
		return 0, fmt.Errorf("terminal: spool file is short: %w", io.ErrUnexpectedEOF)
	case err != nil:
		return 0, fmt.Errorf("terminal: read spool: %w", err)
	}
	return len(p), nil
}

// Modes returns the escape sequences that restore the screen's modes at offset. It fails like [Spool.ReadAt].
func (s *Spool) Modes(offset uint64) ([]byte, error) {
	s.mu.Lock()
	if offset < s.start {
		defer s.mu.Unlock()
		return nil, &GapError{From: offset, To: s.start}
	}
	offset = min(offset, s.end)
	index := (offset - s.start) / s.interval
	state, from := s.marks[index], s.start+index*s.interval
	s.mu.Unlock()

	buffer := make([]byte, offset-from)
	for filled := 0; filled < len(buffer); {
		n, err := s.ReadAt(buffer[filled:], from+uint64(filled))
		if err != nil {
			return nil, err
		}
		filled += n
	}
	state.feed(buffer)
	return state.preamble(), nil
}

// Changed returns a channel that is closed by the next write or Close. Call it before reading, wait afterwards.
func (s *Spool) Changed() <-chan struct{} { return s.changes.wait() }

// Close drops the output and removes the file.
func (s *Spool) Close() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	file, closed := s.file, s.closed
	s.file, s.closed = nil, true
	s.mu.Unlock()
	if !closed {
		s.removeFile(file)
		s.changes.notify()
	}
	return nil
}

// broadcast wakes all goroutines that wait for the next change.
type broadcast struct {
	mu   sync.Mutex
	next chan struct{} // guarded by mu; nil: none waits
}

// wait returns a channel that the next notify closes. Call it before reading the state that may change.
func (b *broadcast) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == nil {
		b.next = make(chan struct{})
	}
	return b.next
}

func (b *broadcast) notify() {
	b.mu.Lock()
	next := b.next
	b.next = nil
	b.mu.Unlock()
	if next != nil {
		close(next)
	}
}
