package enginetest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// As returns a command that runs this test program as another user, with a copy of it in a folder that becomes the
// user's home.
func As(uid uint32, home string, args ...string) (*exec.Cmd, error) {
	program := filepath.Join(home, "engine.test")
	data, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = errors.Join(os.WriteFile(program, data, 0o755), //nolint:gosec // the other user runs it
			os.Chown(home, int(uid), int(uid)))
	}
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = home, append(os.Environ(), "TMPDIR="+home, "HOME="+home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	return cmd, err
}
