package slurm

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"slipway/backend/session"
)

// markEnd ends the name of the file in the working folder of a job that says that sbatch may have been called for it.
// It is there before the call, so that also a process that was started again knows. It need not survive a computer
// that fails: until that is up again, what was on its way has arrived.
const markEnd = ".submitted"

func markPath(dir string, name JobName) string { return filepath.Join(dir, string(name)+markEnd) }

// mark stores the mark in a folder. before: it was there already.
func mark(dir string, name JobName) (before bool, err error) {
	file, err := os.OpenFile(markPath(dir, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return true, nil
	}
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		return false, session.WrapError(err, session.CodeFileFailed,
			"The folder of the job cannot be written: "+dir+".", "Check the quota of your home directory.")
	}
	return false, nil
}

// unmark removes the mark, because it is certain that there is no job.
func unmark(dir string, name JobName) error {
	err := os.Remove(markPath(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
