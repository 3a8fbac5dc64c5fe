package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
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
	program, err := place.Program(opts.Program)
	if err != nil {
		return Status{}, err
	}
	if err := keepSettings(home, opts.Settings); err != nil {
		return Status{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(opts.Timeout, startTime))
	defer cancel()
	if opts.Keeper != KeeperNone {
		unit := unitOf(home)
		switch err := unit.start(ctx, program); {
		case err == nil:
			status, err := await(ctx, home, nil)
			if err != nil {
				err = errors.Join(err, unit.remove(context.WithoutCancel(ctx)))
			}
			return status, err
		case opts.Keeper == KeeperSystemd:
			return Status{}, err
		}
	}
	return startDetached(ctx, home, program)
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
func lasting(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(fleeting, name)
	})
}

// startDetached runs a daemon as the leader of a session of its own.
func startDetached(ctx context.Context, home place.Home, program string) (Status, error) {
	started, err := home.Start(LogFile(home), lasting(os.Environ()), program, "agent", "--quiet")
	if err != nil {
		return Status{}, cannotRun(program, err)
	}
	status, err := await(ctx, home, started)
	if err != nil || status.PID != started.PID() {
		started.Kill() // what does not answer must not hold the folder, nor take it over later
	}
	return status, err
}

func cannotRun(program string, err error) error {
	return &session.Error{Code: session.CodeServerFailed, Message: "The program " + program + " cannot be run.",
		Hint: "Check that its folder is not mounted noexec.", Err: err}
}

// await waits until something answers for the folder. started is what will; nil:
// systemd has started it.
func await(ctx context.Context, home place.Home, started *place.Background) (Status, error) {
	var exited <-chan struct{}
	if started != nil {
		exited = started.Exited
	}
	for {
		c, err := Connect(ctx, home)
		if err == nil {
			return c.Status(ctx)
		}
		select {
		case <-exited:
			exited = nil // unless another caller's holds the folder, it will not come
			if lock, err := home.Lock(); err == nil {
				return Status{}, errors.Join(startFault(home, started, "ended at once"), lock.Close())
			}
		case <-ctx.Done():
			return Status{}, startFault(home, started, "did not answer in time")
		case <-time.After(lookPause):
		}
	}
}

// startFault is the failure of a start, with the last line of what the daemon said.
func startFault(home place.Home, started *place.Background, what string) error {
	hint := "Its log is " + LogFile(home) + "."
	if started != nil {
		if said := started.Said(); said != "" {
			hint = fmt.Sprintf("It said: %s (%s)", said[strings.LastIndexByte(said, '\n')+1:], LogFile(home))
		}
	}
	return session.NewError(session.CodeServerFailed, "The agent was started but "+what+".", hint)
}
