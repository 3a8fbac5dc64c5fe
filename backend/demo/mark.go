package demo

import (
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

// markName is the file that makes a folder one of a demonstration. Nothing real is ever served from such a folder, and
// no demonstration from another.
const markName = "demo.json"

// temporary begins the names of folders that are thrown away.
const temporary = "slipway-demo-"

// Claim makes a folder one of a demonstration and returns what that follows from: what was asked for, or, in a folder
// that was kept, what it was begun with. It fails with server_start_conflict where the folder has other things in it or
// was begun with something else, and with server_start_invalid.
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
		return kept, agree(dir, kept, asked)
	}
	asked = asked.withDefaults()
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

// agree fails where a folder was begun with something else than is asked for.
func agree(dir string, kept, asked Options) error {
	if (asked.Seed == 0 || asked.Seed == kept.Seed) && (asked.Story == "" || asked.Story == kept.Story) {
		return nil
	}
	return session.NewError(session.CodeStartConflict,
		fmt.Sprintf("The demo in %s was begun with seed %d and the story %s.", dir, kept.Seed, kept.Story),
		"Leave --seed and --story out to go on with it, or name another folder.")
}

// keep writes what a demonstration knows into a file of its folder.
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

// Marked reads the mark of a folder, if it has one.
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

// Temporary makes a folder that is thrown away after the demonstration.
func Temporary() (string, error) {
	dir, err := os.MkdirTemp("", temporary)
	if err != nil {
		return "", unusable(os.TempDir(), err)
	}
	return dir, nil
}

// Sweep throws away what demonstrations that died have left in the folder for temporary files.
func Sweep() error {
	dirs, err := filepath.Glob(filepath.Join(os.TempDir(), temporary+"*"))
	for _, dir := range dirs {
		err = errors.Join(err, sweep(place.Home{Dir: dir}))
	}
	return err
}

// settled is the age of a mark after which its folder is held, if somebody uses it.
const settled = time.Minute

// sweep removes one folder that has our mark and that nobody holds. A young one may just be on its way to be held.
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

// LabHome is the folder of the lab server's agent.
func LabHome(home place.Home) place.Home { return place.Home{Dir: home.Join("lab")} }
