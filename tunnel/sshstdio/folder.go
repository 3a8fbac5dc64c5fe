package sshstdio

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// longestFolder is how many bytes the path of a folder for sockets may have. A
// socket's path may have 103 on every system, and ssh makes one with a name of 10
// and 17 more for a moment.
const longestFolder = 103 - len("/") - 10 - 17

// temporaryPrefix begins the names of folders where there is no other place.
const temporaryPrefix = "slipway-ssh-"

// foldersOf is where the folders for sockets are that belong to parent, and how
// their names begin: in parent, or where its path is too long for sockets among
// the temporary files, named after it.
func foldersOf(parent string) (dir, prefix string) {
	const random = len("4294967295") // as os.MkdirTemp adds
	switch {
	case parent == "":
		return os.TempDir(), temporaryPrefix
	case len(parent)+len("/s")+random <= longestFolder:
		return parent, "s"
	}
	sum := sha256.Sum256([]byte(parent))
	return os.TempDir(), fmt.Sprintf("%s%x-", temporaryPrefix, sum[:6])
}

// Fits reports whether sockets can be in a folder itself, as [Config] names it,
// rather than among the temporary files.
func Fits(folder string) bool {
	dir, _ := foldersOf(folder)
	return dir == folder
}

// makeFolder makes a folder that only this account may enter.
func makeFolder(parent string) (string, error) {
	dir, prefix := foldersOf(parent)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return os.MkdirTemp(dir, prefix)
}

// Sweep removes what programs that were killed have left of the connections
// whose [Config] has this Folder. Nobody may have one open.
func Sweep(folder string) error {
	if folder == "" {
		return errors.New("sshstdio: the system's temporary files are not swept")
	}
	dir, prefix := foldersOf(folder)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, entry := range entries {
		if entry.IsDir() && strings.HasPrefix(entry.Name(), prefix) {
			errs = append(errs, os.RemoveAll(filepath.Join(dir, entry.Name())))
		}
	}
	return errors.Join(errs...)
}
