package place

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// excerptMost is how much of a log is quoted, in bytes.
const excerptMost = 2 << 10

// Program is path, or that of this program where path is empty.
func Program(path string) (string, error) {
	if path != "" {
		return path, nil
	}
	return os.Executable()
}

// Background is a program that outlives whoever started it and writes to a log.
type Background struct {
	Exited <-chan struct{} // closed when it has ended

	process *os.Process
	log     string
	begin   int64 // length of the log before
}

// Start runs a program in the folder, detached from the terminal, with its output at the end of a log.
func (h Home) Start(log string, env []string, program string, args ...string) (*Background, error) {
	if err := h.Make(); err != nil {
		return nil, err
	}
	output, err := os.OpenFile(log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer output.Close() // the child has its own
	begin, err := output.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = h.Dir, append(env, "SLIPWAY_HOME="+h.Dir)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = Detached()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = cmd.Wait() // how it ended is in its log
	}()
	return &Background{Exited: exited, process: cmd.Process, log: log, begin: begin}, nil
}

// PID is the id of the process.
func (b *Background) PID() int { return b.process.Pid }

// Kill ends the process, if it has not ended, and waits for that.
func (b *Background) Kill() {
	_ = b.process.Kill() // it fails where the process has ended already
	<-b.Exited
}

// Said is the end of what the program has written, at most 2 KiB.
func (b *Background) Said() string { return logEnd(b.log, b.begin) }

func logEnd(path string, from int64) string {
	data, err := os.ReadFile(path)
	if err != nil || int64(len(data)) < from {
		return ""
	}
	data = data[max(from, int64(len(data))-excerptMost):]
	return strings.TrimSpace(string(bytes.ToValidUTF8(data, nil)))
}

// runtimeTries is how many directories among the temporary files are tried where somebody else has made those before.
const runtimeTries = 8

// RuntimeDirs are the directories in which the sockets of this home may lie, best first. They are outside of everything
// that a person mounts into a session as their own: the sockets of a home that is mounted could be connected to from
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

// MakeRuntimeDir makes the directory for the sockets of this home, for its owner alone, and returns it: the first of
// [Home.RuntimeDirs] that can be made or is the owner's already.
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

// makePrivate makes a directory for this user alone in one that exists. It fails for one that is a link or somebody
// else's.
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
