package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"slipway/backend/place"
	"slipway/backend/session"
)

// StartOptions says how to start a daemon.
type StartOptions struct {
	Program  string   // empty: this program
	Settings Settings // merged into those that are kept
	Keeper   string   // what is to keep it: systemd, none, or empty for the best there is
	Timeout  time.Duration
}

const (
	startTime = 20 * time.Second
	lookPause = 20 * time.Millisecond
	// excerptMost is how much of a log is told of a failed start, in bytes.
	excerptMost = 2 << 10
)

// Start makes sure that something rules the agent of a folder, and returns what
// does. What runs already is left alone. A daemon that it starts outlives this
// process and the connection that this process came by: the person's systemd
// keeps it where that goes on when nobody is logged in, and otherwise it is a
// process of a session of its own.
func Start(ctx context.Context, home place.Home, opts StartOptions) (Status, error) {
	if c, err := Connect(ctx, home); err == nil {
		return c.Status(ctx)
	} else if !errors.Is(err, ErrNotRunning) {
		return Status{}, err
	}
	if opts.Timeout == 0 {
		opts.Timeout = startTime
	}
	if opts.Program == "" {
		self, err := os.Executable()
		if err != nil {
			return Status{}, err
		}
		opts.Program = self
	}
	if err := keepSettings(home, opts.Settings); err != nil {
		return Status{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, opts.Timeout)
	defer cancel()
	if opts.Keeper != KeeperNone {
		unit := unitOf(home)
		switch err := unit.start(ctx, opts.Program); {
		case err == nil:
			status, err := await(ctx, home, nil, 0)
			if err != nil {
				err = errors.Join(err, unit.remove(context.WithoutCancel(ctx)))
			}
			return status, err
		case opts.Keeper == KeeperSystemd:
			return Status{}, err
		}
	}
	return startDetached(ctx, home, opts.Program)
}

func keepSettings(home place.Home, wanted Settings) error {
	kept, err := LoadSettings(home)
	if err != nil {
		return err
	}
	if err := kept.Merge(wanted).Save(home); err != nil {
		return &session.Error{Code: session.CodeDiskFull, Message: "The folder " + home.Dir +
			" cannot be written to.", Hint: "Check its permissions and its free space: df -h " + home.Dir, Err: err}
	}
	return nil
}

// Keepers of a daemon.
const (
	KeeperSystemd = "systemd" // the person's own systemd, which lingers
	KeeperNone    = "none"    // nothing: a process by itself
)

// keeperVariable tells a daemon what keeps it.
const keeperVariable = "SLIPWAY_AGENT_KEEPER"

// Keeper is what keeps this process, if it is a daemon.
func Keeper(env func(string) string) string {
	if env(keeperVariable) == KeeperSystemd {
		return KeeperSystemd
	}
	return KeeperNone
}

// fleeting are the variables of a login that a daemon outlives.
var fleeting = []string{"SSH_AUTH_SOCK", "SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY", "SSH_ASKPASS",
	"SSH_ORIGINAL_COMMAND", "DISPLAY", "WAYLAND_DISPLAY", "TERM", "XDG_SESSION_ID", keeperVariable}

// lasting is the environment for a daemon.
func lasting(environ []string, home place.Home) []string {
	kept := slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(fleeting, name)
	})
	return append(kept, "SLIPWAY_HOME="+home.Dir)
}

// startDetached runs a daemon as the leader of a session of its own.
func startDetached(ctx context.Context, home place.Home, program string) (Status, error) {
	log, err := os.OpenFile(LogFile(home), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return Status{}, err
	}
	defer log.Close() //nolint:errcheck // the child has its own
	before, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return Status{}, err
	}
	cmd := exec.Command(program, "agent", "--quiet")
	cmd.Dir = home.Dir
	cmd.Env = lasting(os.Environ(), home)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = detached()
	if err := cmd.Start(); err != nil {
		return Status{}, &session.Error{Code: session.CodeServerFailed, Message: "The program " + program +
			" cannot be run.", Hint: "Check that its folder is not mounted noexec.", Err: err}
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = cmd.Wait() // how it ended is in its log
	}()
	status, err := await(ctx, home, exited, before)
	if err != nil || status.PID != cmd.Process.Pid {
		_ = cmd.Process.Kill() // what does not answer must not hold the folder, nor take it over later
		<-exited
	}
	return status, err
}

// await waits until something answers for the folder. exited is closed when
// what was started has ended; nil: it is not known.
func await(ctx context.Context, home place.Home, exited <-chan struct{}, logStart int64) (Status, error) {
	for {
		c, err := Connect(ctx, home)
		if err == nil {
			return c.Status(ctx)
		}
		select {
		case <-exited:
			exited = nil // unless another caller's holds the folder, it will not come
			if lock, err := home.Lock(); err == nil {
				return Status{}, errors.Join(startFault(home, logStart, "ended at once"), lock.Close())
			}
		case <-ctx.Done():
			return Status{}, startFault(home, logStart, "did not answer in time")
		case <-time.After(lookPause):
		}
	}
}

// startFault tells of a start that failed, with what the daemon itself said.
func startFault(home place.Home, logStart int64, what string) error {
	hint := "Its log is " + LogFile(home) + "."
	if data, err := os.ReadFile(LogFile(home)); err == nil && int64(len(data)) > logStart {
		data = data[max(logStart, int64(len(data))-excerptMost):]
		if lines := strings.Split(strings.TrimSpace(string(bytes.ToValidUTF8(data, nil))),
			"\n"); lines[len(lines)-1] != "" {
			hint = fmt.Sprintf("It said: %s (%s)", lines[len(lines)-1], LogFile(home))
		}
	}
	return &session.Error{Code: session.CodeServerFailed, Message: "The agent was started but " + what + ".",
		Hint: hint}
}
