package place

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
)

// runtimeTries is how many directories among the temporary files are tried where
// somebody else has made those before.
const runtimeTries = 8

// RuntimeDirs are the directories in which the sockets of this home may lie,
// best first. They are outside of everything that a person mounts into a session
// as their own: the sockets of a home that is mounted could be connected to from
// there. Windows has no such sessions and its sockets stay in the home.
func (h Home) RuntimeDirs() []string {
	if runtime.GOOS == "windows" {
		return []string{h.Dir}
	}
	name := fmt.Sprintf("slipway-%x", sha256.Sum256([]byte(h.Dir)))[:len("slipway-")+12]
	uid := strconv.Itoa(os.Getuid())
	var dirs []string
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		dirs = append(dirs, filepath.Join(dir, name))
	}
	if usual := filepath.Join("/run/user", uid, name); runtime.GOOS == "linux" && (len(dirs) == 0 || dirs[0] != usual) {
		dirs = append(dirs, usual)
	}
	for n := range runtimeTries {
		among := filepath.Join(os.TempDir(), "slipway-"+uid+name[len("slipway"):])
		if n > 0 {
			among += "-" + strconv.Itoa(n)
		}
		dirs = append(dirs, among)
	}
	return dirs
}

// MakeRuntimeDir makes the directory for the sockets of this home, for its owner
// alone, and returns it: the first of [Home.RuntimeDirs] that can be made or is
// the owner's already.
func (h Home) MakeRuntimeDir() (string, error) {
	var errs []error
	for _, dir := range h.RuntimeDirs() {
		err := makePrivate(dir)
		if err == nil {
			return dir, nil
		}
		errs = append(errs, err)
	}
	return "", errors.Join(errs...)
}

// makePrivate makes a directory for this user alone in one that exists. It fails
// for one that is a link or somebody else's.
func makePrivate(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() || !ownedByUs(info) {
		return fmt.Errorf("%s is not a directory of this user", dir)
	}
	return os.Chmod(dir, 0o700)
}
