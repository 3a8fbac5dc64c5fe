// Package hostlock is an advisory lock that programs of different users of one machine share without root. Any user can
// keep it for any time, so a program that does not get it continues without it and checks its result.
package hostlock

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"
)

// ErrHeld means that another program kept the lock for the whole time.
var ErrHeld = errors.New("hostlock: another program keeps the lock")

// Lock is one lock of the machine.
type Lock struct {
	Path     string
	Patience time.Duration // how long Acquire waits; 0: 5 s
}

const (
	patience  = 5 * time.Second
	lookPause = 10 * time.Millisecond
)

// Of returns the lock of a name, which is the same for every user: in the folder for locks if all users can write to
// it, else in the one for temporary files.
func Of(name string) Lock {
	for _, dir := range []string{"/run/lock", "/var/lock", "/tmp"} {
		if info, err := os.Stat(dir); err == nil && info.IsDir() && info.Mode()&os.ModeSticky != 0 &&
			info.Mode().Perm()&0o002 != 0 {
			return Lock{Path: filepath.Join(dir, name)}
		}
	}
	return Lock{Path: filepath.Join(os.TempDir(), name)}
}

// Acquire acquires the lock until release is called or the process ends. It fails with [ErrHeld], with ctx's error, or
// if the file is not a regular one.
func (l Lock) Acquire(ctx context.Context) (release func(), err error) {
	file, err := open(l.Path)
	if err != nil {
		return nil, err
	}
	timer := time.NewTimer(cmp.Or(l.Patience, patience))
	defer timer.Stop()
	for {
		taken, err := try(file)
		switch {
		case err != nil:
			return nil, errors.Join(err, file.Close())
		case taken:
			return func() { _ = file.Close() }, nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), file.Close())
		case <-timer.C:
			return nil, errors.Join(ErrHeld, file.Close())
		case <-time.After(lookPause):
		}
	}
}
