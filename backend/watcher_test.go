//go:build linux

package backend

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"slipway/backend/terminal"
)

// watcher is a person who looks at a terminal, in which a count goes on, over
// every loss of the connection.
type watcher struct {
	name string // of the terminal

	mu   sync.Mutex // guards the following
	seen bytes.Buffer
	flaw error
}

// take shows what a frame holds and returns what is to be answered.
func (w *watcher) take(f terminal.Frame) (ack *terminal.Frame, err error) {
	switch f.Type {
	case terminal.FrameGap:
		return nil, fmt.Errorf("a gap: %v", f.Payload)
	case terminal.FrameExit:
		return nil, fmt.Errorf("the shell ended with %d", f.ExitCode())
	case terminal.FrameData:
		offset, data, err := f.Data()
		if err != nil {
			return nil, err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if at := uint64(w.seen.Len()); offset != at {
			return nil, fmt.Errorf("data at %d instead of %d", offset, at)
		}
		w.seen.Write(data)
		return &terminal.Frame{Type: terminal.FrameAck,
			Payload: binary.BigEndian.AppendUint64(nil, uint64(w.seen.Len()))}, nil
	}
	return nil, nil
}

// fail takes note of what a person would see as a flaw.
func (w *watcher) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flaw = err
}

// offset is the first byte that was not shown yet.
func (w *watcher) offset() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strconv.Itoa(w.seen.Len())
}

// count returns the last number of an unbroken count that begins with 1.
func (w *watcher) count(t *testing.T) int {
	t.Helper()
	w.mu.Lock()
	text, flaw := w.seen.String(), w.flaw
	w.mu.Unlock()
	if flaw != nil {
		t.Fatal(flaw)
	}
	if i := strings.LastIndexByte(text, '\n'); i >= 0 {
		text = text[:i+1] // the last line may be under way
	}
	n := 0
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		n++
		if want := fmt.Sprintf("n%d", n); strings.TrimSpace(lines.Text()) != want {
			t.Fatalf("line %d is %q", n, lines.Text())
		}
	}
	return n
}
