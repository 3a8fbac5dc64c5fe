package daemon

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/moby/sys/atomicwriter"

	"slipway/backend/place"
	"slipway/backend/session"
)

// StartOptions says how to start a daemon.
type StartOptions struct {
	Program  string   // absolute path; empty: this program
	Settings Settings // merged into the stored ones
	Keeper   string   // [KeeperSystemd], [KeeperNone], or empty for systemd if possible
	Timeout  time.Duration
}

const (
	startTime = 20 * time.Second
	lookPause = 20 * time.Millisecond
)

// Start returns the status of the agent of a folder. If none runs, it starts a daemon that outlives this process and
// its connection: a systemd user service if lingering is on or can be enabled, otherwise a process in its own session.
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
	if !isThere(program) || filepath.Dir(program) == home.Join(removedPrograms) {
		// A client that was connecting is not to make the folder once more.
		return Status{}, session.NewError(session.CodeServerFailed, "Slipway was removed from this machine.",
			"Install it there again.")
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
		return session.WrapError(err, session.CodeDiskFull, "The folder "+home.Dir+" cannot be written to.",
			"Check its permissions and its free space: df -h "+home.Dir)
	}
	return nil
}

// Values of [StartOptions].Keeper and [Status].Keeper.
const (
	KeeperSystemd = "systemd" // a user service of systemd, with lingering on
	KeeperNone    = "none"    // a process of its own
)

const keeperVariable = "SLIPWAY_AGENT_KEEPER"

// Keeper returns the keeper of this process, if it is a daemon.
func Keeper(env func(string) string) string {
	if env(keeperVariable) == KeeperSystemd {
		return KeeperSystemd
	}
	return KeeperNone
}

// fleeting are the variables of a login session, which a daemon outlives.
var fleeting = []string{"SSH_AUTH_SOCK", "SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY", "SSH_ASKPASS",
	"SSH_ORIGINAL_COMMAND", "DISPLAY", "WAYLAND_DISPLAY", "TERM", "XDG_SESSION_ID", keeperVariable}

// lasting returns the environment for a daemon.
func lasting(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(fleeting, name)
	})
}

func startDetached(ctx context.Context, home place.Home, program string) (Status, error) {
	started, err := home.Start(LogFile(home), lasting(os.Environ()), program, "agent", "--quiet")
	if err != nil {
		return Status{}, cannotRun(program, err)
	}
	status, err := await(ctx, home, started)
	if err != nil || status.PID != started.PID() {
		started.Kill() // a daemon that does not answer must not lock the folder, now or later
	}
	return status, err
}

func cannotRun(program string, err error) error {
	return session.WrapError(err, session.CodeServerFailed, "The program "+program+" cannot be run.",
		"Check that its folder is not mounted noexec.")
}

// await waits until an agent answers for the folder. started is the process that will; nil: systemd started it.
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
			exited = nil // if somebody else has the lock, their agent will answer
			if lock, err := home.Lock(); err == nil {
				return Status{}, errors.Join(startFault(home, started, "ended at once"), lock.Close())
			}
		case <-ctx.Done():
			return Status{}, startFault(home, started, "did not answer in time")
		case <-time.After(lookPause):
		}
	}
}

// startFault returns the error of a failed start, with the daemon's last line of output.
func startFault(home place.Home, started *place.Background, what string) error {
	hint := "Its log is " + LogFile(home) + "."
	if started != nil {
		if said := started.Said(); said != "" {
			hint = fmt.Sprintf("It said: %s (%s)", said[strings.LastIndexByte(said, '\n')+1:], LogFile(home))
		}
	}
	return session.NewError(session.CodeServerFailed, "The agent was started but "+what+".", hint)
}

// Detached runs program with args in its own session, waits for it, copies its output and returns its exit code. The
// program continues when this process or ctx ends. Empty program: this one.
func Detached(ctx context.Context, home place.Home, program string, args []string, stdout,
	stderr io.Writer) (code int, err error) {
	if program, err = place.Program(program); err != nil {
		return 0, err
	}
	var outputs [2]*os.File // not pipes: writing to a pipe without a reader would end the program
	for i := range outputs {
		if outputs[i], err = unlinked(); err != nil {
			return 0, err
		}
		defer outputs[i].Close() //nolint:errcheck // it has no name
	}
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "SLIPWAY_HOME="+home.Dir)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = outputs[0], outputs[1]
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
	exit, exited := errors.AsType[*exec.ExitError](err)
	if err != nil && !exited {
		return 0, err
	}
	for i, to := range []io.Writer{stdout, stderr} {
		if _, err := io.Copy(to, io.NewSectionReader(outputs[i], 0, math.MaxInt64)); err != nil {
			return 0, err
		}
	}
	if !exited {
		return 0, nil
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return exit.ExitCode(), nil
}

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

// unit is the systemd user service of a folder's daemon.
type unit struct {
	home place.Home
	name string // slipway-agent.service
	path string // of its file; empty: the user has no configuration folder
}

const systemdTime = 5 * time.Second

// unitOf returns the unit of a folder; the default folder has the plain name.
func unitOf(home place.Home) unit {
	u := unit{home: home, name: "slipway-agent.service"}
	if !home.IsUsual(os.Getenv) {
		u.name = fmt.Sprintf("slipway-agent-%x.service", sha256.Sum256([]byte(home.Dir)))[:22] + ".service"
	}
	if config, err := os.UserConfigDir(); err == nil {
		u.path = filepath.Join(config, "systemd", "user", u.name)
	}
	return u
}

// errNoKeeper means that there is no systemd user instance, or that it ends with the last login.
var errNoKeeper = errors.New("systemd does not keep services of this user after logout")

// start writes the unit and starts it. It fails with errNoKeeper, or with the output of systemd.
func (u unit) start(ctx context.Context, program string) error {
	if u.path == "" || !lingers(ctx) {
		return errNoKeeper
	}
	content, err := u.content(program)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(u.path), 0o700); err != nil {
		return err
	}
	if err := atomicwriter.WriteFile(u.path, []byte(content), 0o600); err != nil {
		return err
	}
	for _, args := range [][]string{{"daemon-reload"}, {"enable", u.name}, {"restart", u.name}} {
		if err := systemctl(ctx, args...); err != nil {
			return errors.Join(err, u.remove(ctx))
		}
	}
	return nil
}

// content returns the text of the unit. It refuses paths with characters that systemd would interpret.
func (u unit) content(program string) (string, error) {
	for _, path := range []string{program, u.home.Dir} {
		if strings.ContainsAny(path, "\"\\%$\n\r\t'") {
			return "", fmt.Errorf("the path %q cannot be used in a systemd unit", path)
		}
	}
	return fmt.Sprintf(`[Unit]
Description=Slipway agent

[Service]
ExecStart="%s" agent --quiet
Environment="SLIPWAY_HOME=%s" "%s=%s"
Restart=on-failure
RestartSec=2
KillMode=mixed
TimeoutStopSec=30

[Install]
WantedBy=default.target
`, program, u.home.Dir, keeperVariable, KeeperSystemd), nil
}

// remove stops and removes the unit, if there is one.
func (u unit) remove(ctx context.Context) error {
	if u.path == "" || !isThere(u.path) {
		return nil
	}
	_ = systemctl(ctx, "disable", "--now", u.name) // remove the file in any case
	err := os.Remove(u.path)
	_ = systemctl(ctx, "daemon-reload")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// lingers reports whether the user's systemd keeps running without a login. It tries to enable that if it is off.
func lingers(ctx context.Context) bool {
	if err := systemctl(ctx, "show-environment"); err != nil {
		return false
	}
	name := strconv.Itoa(os.Getuid())
	if me, err := user.Current(); err == nil {
		name = me.Username
	}
	told := func() bool {
		out, err := run(ctx, "loginctl", "show-user", name, "--property=Linger")
		return err == nil && strings.TrimSpace(out) == "Linger=yes"
	}
	if told() {
		return true
	}
	_, err := run(ctx, "loginctl", "--no-ask-password", "enable-linger", name)
	return err == nil && told()
}

func systemctl(ctx context.Context, args ...string) error {
	_, err := run(ctx, "systemctl", append([]string{"--user", "--no-ask-password", "--quiet"}, args...)...)
	return err
}

// run runs a system program with a time limit.
func run(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, systemdTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Second
	if os.Getenv("XDG_RUNTIME_DIR") == "" { // a login without PAM does not set it
		cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+filepath.Join("/run/user", strconv.Itoa(os.Getuid())))
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), err
}
