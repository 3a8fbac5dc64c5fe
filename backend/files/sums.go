package files

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io/fs"
	"os"
	"slices"
	"sync"
)

const mostSums = 64

// Sums has the checksums of parts while they arrive, so that finished uploads need not be read again. A checksum is
// valid as long as each write continues where the one before ended and there is one writer. The zero value is ready,
// nil has no checksums, and the methods are safe for concurrent use.
type Sums struct {
	mu    sync.Mutex // guards parts and their fields
	parts []*summedPart
}

// summedPart is a part that is being written, or whose checksum is known.
type summedPart struct {
	info    fs.FileInfo // after the last write
	sum     *runningSum // nil: unknown
	writers int
}

// runningSum is the checksum of the bytes so far. It has one writer. A nil one ignores them.
type runningSum struct {
	hash hash.Hash
	size int64
}

func (r *runningSum) add(b []byte) {
	if r != nil {
		r.hash.Write(b)
		r.size += int64(len(b))
	}
}

// begin starts a write at an offset. It returns the checksum to add to, and a function to call after the write.
func (s *Sums) begin(info fs.FileInfo, offset int64) (sum *runningSum, end func(*os.File)) {
	if s == nil {
		return nil, func(*os.File) {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	part := s.find(info)
	switch {
	case part == nil:
		part = &summedPart{}
		s.parts = append(s.parts, part)
	case part.writers > 0 || !part.stands(info, offset):
		part.sum = nil
	}
	if offset == 0 && info.Size() == 0 && part.writers == 0 {
		part.sum = &runningSum{hash: sha256.New()}
	}
	part.info = info
	part.writers++
	sum = part.sum
	return sum, func(file *os.File) { s.end(part, sum, file) }
}

// end records the checksum after a write, if it was the only one.
func (s *Sums) end(part *summedPart, sum *runningSum, file *os.File) {
	info, err := file.Stat()
	s.mu.Lock()
	defer s.mu.Unlock()
	part.writers--
	if err != nil || sum == nil || info.Size() != sum.size {
		part.sum = nil
	}
	if err == nil {
		part.info = info
	}
	s.parts = slices.DeleteFunc(s.parts, func(p *summedPart) bool { return p == part })
	if part.sum != nil || part.writers > 0 {
		s.parts = append(s.parts, part)
	}
	oldest := slices.IndexFunc(s.parts, func(p *summedPart) bool { return p.writers == 0 })
	if len(s.parts) > mostSums && oldest >= 0 {
		s.parts = slices.Delete(s.parts, oldest, oldest+1)
	}
}

// of returns the checksum of a part, if all of its bytes were added.
func (s *Sums) of(info fs.FileInfo) (sum string, known bool) {
	if s == nil {
		return "", false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	part := s.find(info)
	if part == nil || part.writers > 0 || !part.stands(info, info.Size()) {
		return "", false
	}
	return hex.EncodeToString(part.sum.hash.Sum(nil)), true
}

// find returns the part of a file; nil if there is none. The caller holds mu.
func (s *Sums) find(info fs.FileInfo) *summedPart {
	for _, part := range s.parts {
		if os.SameFile(part.info, info) {
			return part
		}
	}
	return nil
}

// stands reports whether the file is unchanged since the last write and all of its bytes were added. It needs Sums.mu.
func (p *summedPart) stands(info fs.FileInfo, size int64) bool {
	return p.sum != nil && p.sum.size == size && info.Size() == size && p.info.ModTime().Equal(info.ModTime())
}
