package demo

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/moby/sys/atomicwriter"

	"slipway/backend/place"
	"slipway/backend/session"
)

const (
	// markName is the file that marks the folder of a demonstration. Nothing real is ever served from a folder with the
	// mark, and no demonstration from a folder without it.
	markName  = "demo.json"
	temporary = "slipway-demo-" // prefix of the names of temporary folders
	settled   = time.Minute     // age of a mark after which its folder is locked, if it is in use
)

// Claim marks a folder and returns the options of its demonstration: those of an earlier start, else those asked for
// with defaults. It fails with server_start_conflict if the folder has other content or other options, or with
// server_start_invalid.
func Claim(dir string, asked Options) (Options, error) {
	if err := asked.check(); err != nil {
		return asked, err
	}
	kept, found, err := Marked(dir)
	if err != nil {
		return asked, err
	}
	if found {
		kept.Speed = asked.Speed
		if asked.Seed != 0 && asked.Seed != kept.Seed || asked.Story != "" && asked.Story != kept.Story {
			err = session.NewError(session.CodeStartConflict,
				fmt.Sprintf("The demo in %s was begun with seed %d and the story %s.", dir, kept.Seed, kept.Story),
				"Leave --seed and --story out to go on with it, or name another folder.")
		}
		return kept, err
	}
	asked.Seed, asked.Story = cmp.Or(asked.Seed, 1), cmp.Or(asked.Story, Stories[0])
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return asked, unusable(dir, err)
	}
	if len(entries) > 0 {
		return asked, session.NewError(session.CodeStartConflict,
			fmt.Sprintf("The folder %s has other things in it.", dir),
			"Name an empty folder, or one that a demo was kept in.")
	}
	return asked, keep(dir, markName, asked)
}

// keep writes a value to a file in a folder.
func keep(dir, name string, known any) error {
	data, err := json.Marshal(known)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		err = atomicwriter.WriteFile(filepath.Join(dir, name), append(data, '\n'), 0o600)
	}
	if err != nil {
		return unusable(dir, err)
	}
	return nil
}

func unusable(dir string, err error) error {
	return session.WrapError(err, session.CodeDiskFull, fmt.Sprintf("The folder %s cannot be used.", dir),
		"Make it writable, or name another: slipway demo --keep DIR")
}

// Marked reads the mark of a folder, if any.
func Marked(dir string) (Options, bool, error) {
	data, err := os.ReadFile(filepath.Join(dir, markName))
	if errors.Is(err, fs.ErrNotExist) {
		return Options{}, false, nil
	}
	var o Options
	if err == nil {
		err = json.Unmarshal(data, &o)
	}
	if err == nil {
		err = o.check()
	}
	if err != nil {
		return o, false, session.WrapError(err, session.CodeStartConflict,
			fmt.Sprintf("The mark of the demo in %s cannot be read.", dir), "Name another folder.")
	}
	return o, true, nil
}

// Temporary creates a folder for a demonstration that is not kept.
func Temporary() (string, error) {
	dir, err := os.MkdirTemp("", temporary)
	if err != nil {
		return "", unusable(os.TempDir(), err)
	}
	return dir, nil
}

// Sweep removes temporary folders that crashed demonstrations have left.
func Sweep() error {
	dirs, err := filepath.Glob(filepath.Join(os.TempDir(), temporary+"*"))
	for _, dir := range dirs {
		err = errors.Join(err, sweep(place.Home{Dir: dir}))
	}
	return err
}

// sweep removes a folder with a mark, unless it is locked or so new that it may not be locked yet.
func sweep(home place.Home) error {
	mark, err := os.Stat(home.Join(markName))
	if errors.Is(err, fs.ErrNotExist) || err == nil && time.Since(mark.ModTime()) < settled {
		return nil
	}
	for _, part := range []place.Home{home, LabHome(home)} {
		if _, gone := os.Stat(part.Dir); err != nil || errors.Is(gone, fs.ErrNotExist) {
			continue
		}
		var lock *place.Lock
		if lock, err = part.Lock(); errors.Is(err, place.ErrLocked) {
			return nil
		}
		if err == nil {
			err = lock.Close()
		}
	}
	if err != nil {
		return err
	}
	return os.RemoveAll(home.Dir)
}

// LabHome returns the folder of the lab server's agent.
func LabHome(home place.Home) place.Home { return place.Home{Dir: home.Join("lab")} }
