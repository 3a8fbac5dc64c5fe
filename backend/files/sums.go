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

// mostSums is of how many parts checksums are kept.
const mostSums = 64

// Sums are the checksums of parts so far, so that what was uploaded need not be read again at its end. One is kept as
// long as each write goes on where the one before stopped, and nobody else writes. The zero value is ready, nil keeps
// none, and the methods are safe for concurrent use.
type Sums struct {
	mu    sync.Mutex // guards what follows, and the fields of each
	parts []*summedPart
}

// summedPart is a part that is being written to, or whose checksum is known.
type summedPart struct {
	info    fs.FileInfo // as the last write left it
	sum     *runningSum // nil: something came that was not added
	writers int
}

// runningSum is the checksum of what came so far. Only one writer adds to it. A nil one adds nothing.
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

// begin returns what is added to by a write from an offset on, and what is to be called after it.
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

// end keeps what a write added, where it was the only one.
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
	if oldest := slices.IndexFunc(s.parts, func(p *summedPart) bool { return p.writers == 0 }); len(
		s.parts) > mostSums && oldest >= 0 {
		s.parts = slices.Delete(s.parts, oldest, oldest+1)
	}
}

// of returns the checksum of a part whose every byte was added.
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

// find returns the part that a file is; the caller holds mu.
func (s *Sums) find(info fs.FileInfo) *summedPart {
	for _, part := range s.parts {
		if os.SameFile(part.info, info) {
			return part
		}
	}
	return nil
}

// stands reports whether a file is as the last write left it, and all of its bytes were added; the caller holds the mu
// of its [Sums].
func (p *summedPart) stands(info fs.FileInfo, size int64) bool {
	return p.sum != nil && p.sum.size == size && info.Size() == size && p.info.ModTime().Equal(info.ModTime())
}
