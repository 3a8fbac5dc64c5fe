package service

import (
	"errors"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

func TestEveryThreadHasAShortSlice(t *testing.T) {
	before, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := uint64(slice)
	if before.Runtime == 0 {
		want = 0 // a Linux with slices of one length, which it does not tell
	}
	shortenSlices()
	threads, err := filepath.Glob("/proc/self/task/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(filepath.Base(thread))
		if err != nil {
			t.Fatal(err)
		}
		attr, err := unix.SchedGetAttr(id, 0)
		if errors.Is(err, unix.ESRCH) {
			continue // it has ended
		}
		if err != nil || attr.Runtime != want {
			t.Errorf("thread %d of %d has %d ns, %v", id, len(threads), attr.Runtime, err)
		}
	}
}
