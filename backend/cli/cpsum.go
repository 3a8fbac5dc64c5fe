package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"sync"
)

// localSum is the checksum of what can be read; a file that cannot be read
// shows when it is sent.
func localSum(from io.Reader) string {
	sum := sha256.New()
	_, _ = io.CopyBuffer(sum, from, make([]byte, 256<<10)) // see above
	return hex.EncodeToString(sum.Sum(nil))
}

// sumBehind adds up the checksum of a file while somebody writes it, a little
// behind. What was there before is added first.
type sumBehind struct {
	file  *os.File
	added int64 // of the adding goroutine alone
	sum   chan string

	mu    sync.Mutex // guards what follows
	moved sync.Cond
	there int64 // bytes that can be read
	whole bool  // there come no more
}

func newSumBehind(file *os.File, there int64) *sumBehind {
	b := &sumBehind{file: file, there: there, sum: make(chan string, 1)}
	b.moved.L = &b.mu
	go func() { b.sum <- localSum(b) }()
	return b
}

// reached tells up to where the file is written.
func (b *sumBehind) reached(there int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.there = there
	b.moved.Signal()
}

// finish returns the checksum of all that is there.
func (b *sumBehind) finish() string {
	b.end(true)
	return <-b.sum
}

// end has the adding end, once all is added that is there or at once.
func (b *sumBehind) end(all bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.whole = true; !all {
		b.there = 0
	}
	b.moved.Signal()
}

// Read waits for what is still to be written.
func (b *sumBehind) Read(p []byte) (int, error) {
	b.mu.Lock()
	for b.added >= b.there && !b.whole {
		b.moved.Wait()
	}
	left := b.there - b.added
	b.mu.Unlock()
	if left <= 0 {
		return 0, io.EOF
	}
	n, err := b.file.ReadAt(p[:min(left, int64(len(p)))], b.added)
	b.added += int64(n)
	return n, err
}

// farSum asks for the checksum of the far file while it is copied. Nothing
// comes where it was not told: one asks again then, when it has come.
func (j *copying) farSum(ctx context.Context, source string) <-chan string {
	told, c := make(chan string, 1), *j.caller
	go func() {
		defer close(told)
		if sum, err := fileAt(j, j.files.Checksum, source).Ask(ctx, &c); err == nil {
			told <- sum.SHA256
		}
	}()
	return told
}
