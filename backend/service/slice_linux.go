package service

import (
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	slice        = 100_000 // in nanoseconds; the shortest that Linux accepts
	policyNormal = 0       // SCHED_NORMAL, which threads have that nobody gave another policy
)

// shortenSlices makes the time slices of all threads of this process short, and those of the threads that they start.
// Linux lets a thread that wakes run before one with a longer slice. What carries requests and terminals works for some
// microseconds and waits again. On a machine whose processors are busy, for example with models, each wake would
// otherwise wait until the slice of another process ends, which is more than a millisecond. The process does not get
// more time by it. Linux before 6.12 has slices of one length only.
func shortenSlices() {
	// A thread that starts while the first list is read has its slice from the one that started it, which may not have
	// been reached.
	for range 2 {
		threads, _ := filepath.Glob("/proc/self/task/*")
		for _, thread := range threads {
			if id, err := strconv.Atoi(filepath.Base(thread)); err == nil {
				shorten(id)
			}
		}
	}
}

func shorten(thread int) {
	attr, err := unix.SchedGetAttr(thread, 0)
	if err != nil || attr.Policy != policyNormal {
		return
	}
	attr.Runtime = slice
	_ = unix.SchedSetAttr(thread, attr, 0)
}
