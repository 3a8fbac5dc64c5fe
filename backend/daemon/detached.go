package daemon

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"

	"slipway/backend/place"
)

// Detached runs program with args as the leader of a session of its own, waits
// for it, and copies what it wrote. It goes on when this process ends or ctx
// does. The exit code is its own. Empty program: this one.
func Detached(ctx context.Context, home place.Home, program string, args []string, stdout,
	stderr io.Writer) (code int, err error) {
	if program, err = place.Program(program); err != nil {
		return 0, err
	}
	// Files rather than pipes: a write to a pipe that nobody reads would end it.
	out, err := unlinked()
	if err != nil {
		return 0, err
	}
	defer out.Close() //nolint:errcheck // it has no name
	diag, err := unlinked()
	if err != nil {
		return 0, err
	}
	defer diag.Close() //nolint:errcheck // it has no name
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "SLIPWAY_HOME="+home.Dir)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = out, diag
	cmd.SysProcAttr = place.Detached()
	if err := cmd.Start(); err != nil {
		return 0, cannotRun(program, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	for _, one := range []struct {
		from *os.File
		to   io.Writer
	}{{out, stdout}, {diag, stderr}} {
		if _, err := one.from.Seek(0, io.SeekStart); err != nil {
			return 0, err
		}
		if _, err := io.Copy(one.to, one.from); err != nil {
			return 0, err
		}
	}
	if exit == nil {
		return 0, nil
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return exit.ExitCode(), nil
}

// unlinked is a temporary file without a name.
func unlinked() (*os.File, error) {
	file, err := os.CreateTemp("", "slipway-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
