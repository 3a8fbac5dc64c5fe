package procs

import (
	"errors"
	"os"
)

// End asks a process to end, as its PID and Start name it, so that none is asked
// that was given the number since. It answers ErrGone where the process has
// ended, and fs.ErrPermission where it is another user's.
func (t *Table) End(pid int, start uint64) error {
	process, err := os.FindProcess(pid) // on Linux it stays the process that it is now
	if err != nil {
		return err
	}
	defer process.Release() //nolint:errcheck // it only gives a handle back
	now, err := t.Lookup(pid)
	if err != nil {
		return err
	}
	if now.Start != start {
		return ErrGone
	}
	if err := process.Signal(terminate); errors.Is(err, os.ErrProcessDone) {
		return ErrGone
	} else if err != nil {
		return err
	}
	return nil
}
