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

// Program returns path or, if that is empty, the path of this program.
func Program(path string) (string, error) {
	if path != "" {
		return path, nil
	}
	return os.Executable()
}

// Background is a detached process that writes to a log.
type Background struct {
	Exited <-chan struct{} // closed after its end

	process *os.Process
	log     string
	begin   int64 // length of the log before its start
}

// Start runs a program in the folder, detached from the terminal. It appends the output to a log.
func (h Home) Start(log string, env []string, program string, args ...string) (*Background, error) {
	if err := h.Make(); err != nil {
		return nil, err
	}
	output, err := os.OpenFile(log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer output.Close() // the child has a copy
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
		_ = cmd.Wait() // the log has the reason
	}()
	return &Background{Exited: exited, process: cmd.Process, log: log, begin: begin}, nil
}

// PID returns the id of the process.
func (b *Background) PID() int { return b.process.Pid }

// Kill ends the process and waits for its end.
func (b *Background) Kill() {
	_ = b.process.Kill() // fails if the process has ended
	<-b.Exited
}

// excerptMost is how much of a log [Background.Said] returns, in bytes.
const excerptMost = 2 << 10

// Said returns the end of the output of the program.
func (b *Background) Said() string {
	data, err := os.ReadFile(b.log)
	if err != nil || int64(len(data)) < b.begin {
		return ""
	}
	data = data[max(b.begin, int64(len(data))-excerptMost):]
	return strings.TrimSpace(string(bytes.ToValidUTF8(data, nil)))
}

// runtimeTries is how many temporary directories are tried, because other users may have created some of them.
const runtimeTries = 8

// RuntimeDirs returns the possible directories for the sockets of this home, best first. A home may be mounted into a
// session, from which its sockets could be connected to, so they are elsewhere. Windows has no such sessions, and its
// sockets are in the home.
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

// MakeRuntimeDir creates the directory for the sockets of this home, for its owner alone: the first of
// [Home.RuntimeDirs] that can be created or belongs to the owner.
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

// makePrivate creates a directory for this user alone. It fails if there is a link or a directory of another user.
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
