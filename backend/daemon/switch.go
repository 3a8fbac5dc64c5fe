package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"slipway/backend/place"
	"slipway/backend/session"
)

// ProgramLink is what names the program that rules the agent of a folder. The
// programs themselves lie beside it, one for each version that was installed.
func ProgramLink(home place.Home) string { return home.Join("bin", "slipway") }

// Switched is how a replacement went.
type Switched struct {
	From Status `json:"from"` // zero: nothing ran
	To   Status `json:"to"`
	Done bool   `json:"done"` // false: the program ran already
}

// SwitchOptions says what is to rule the agent from now on.
type SwitchOptions struct {
	Program  string   // absolute path of the new program; empty: this one
	Settings Settings // merged into those that are kept
	Timeout  time.Duration
	Keeper   string // as in [StartOptions]
}

const (
	stopTime = 40 * time.Second
	// backupSuffix ends the names of copies of the books that a new program may
	// have written in a newer form.
	backupSuffix = ".before-switch"
)

// Switch replaces what rules the agent of a folder by another program. Sessions
// go on and are adopted. Where the new program does not come to answer, the old
// one is put back with its books, and the call fails with
// agent_install_failed. A control plane of a person at that machine is left
// as it is, and only reached by the new program. One switch of a folder goes on at a time; the
// second waits and finds it done.
func Switch(ctx context.Context, home place.Home, opts SwitchOptions) (Switched, error) {
	var err error
	if opts.Program, err = place.Program(opts.Program); err != nil {
		return Switched{}, err
	}
	sum, err := fileSum(opts.Program)
	if err != nil {
		return Switched{}, session.WrapError(err, session.CodeInstallFailed,
			"The program "+opts.Program+" cannot be read.", "Upload it again.")
	}
	lock := flock.New(home.Join(switchLock), flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, lookPause); err != nil {
		return Switched{}, session.WrapError(err, session.CodeAgentConflict,
			"Another upgrade of this agent is in progress.", "Wait until it is done.")
	}
	defer lock.Close() //nolint:errcheck // the end of the process gives it up too
	s := switching{home: home, opts: opts, sum: sum}
	return s.run(ctx)
}

type switching struct {
	home place.Home
	opts SwitchOptions
	sum  string // of the new program
	old  string // path of the program that ran before; empty: none is known
}

func (s *switching) run(ctx context.Context) (Switched, error) {
	var done Switched
	running, err := Connect(ctx, s.home)
	switch {
	case err == nil:
		if done.From, err = running.Status(ctx); err != nil {
			return done, err
		}
		if done.From.SHA256 == s.sum {
			done.To = done.From
			return done, s.link(s.opts.Program)
		}
		if done.From.Role == RolePlane {
			done.To = done.From
			return done, s.link(s.opts.Program) // it carries tunnels to what rules there
		}
	case !errors.Is(err, ErrNotRunning):
		return done, err
	default:
		running = nil
	}
	s.old = s.linked(done.From.Program)
	if running != nil {
		stopping, cancel := context.WithTimeout(ctx, stopTime)
		err := running.StopAndWait(stopping)
		cancel()
		if err != nil {
			return done, err
		}
	}
	books, err := s.backUp()
	if err != nil {
		return done, s.back(ctx, nil, err)
	}
	if err := s.link(s.opts.Program); err != nil {
		return done, s.back(ctx, books, err)
	}
	done.To, err = Start(ctx, s.home, StartOptions{Program: ProgramLink(s.home), Settings: s.opts.Settings,
		Timeout: s.opts.Timeout, Keeper: s.opts.Keeper})
	if err == nil && done.To.SHA256 != s.sum {
		err = session.NewError(session.CodeAgentConflict, "Another program took over the agent.",
			"See what runs there: slipway agent status")
	}
	if err != nil {
		return done, s.back(ctx, books, err)
	}
	done.Done = true
	return done, errors.Join(s.forget(books), s.prune())
}

// prune removes the programs that neither run now nor ran before.
func (s *switching) prune() error {
	paths, err := filepath.Glob(ProgramLink(s.home) + "-*")
	for _, path := range paths {
		if name := filepath.Base(path); name != filepath.Base(s.opts.Program) && name != filepath.Base(s.old) {
			err = errors.Join(err, os.Remove(path))
		}
	}
	return err
}

// linked is the program that the link named, or the one that ran.
func (s *switching) linked(ran string) string {
	if target, err := filepath.EvalSymlinks(ProgramLink(s.home)); err == nil {
		return target
	}
	if _, err := os.Stat(ran); ran != "" && err == nil {
		return ran
	}
	return ""
}

// link makes the link name a program, in one step.
func (s *switching) link(program string) error {
	link := ProgramLink(s.home)
	if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
		return err
	}
	if filepath.Dir(program) == filepath.Dir(link) {
		program = filepath.Base(program) // the folder may be moved
	}
	temporary := fmt.Sprintf("%s.%d", link, os.Getpid())
	_ = os.Remove(temporary) // of a process that was killed
	if err := os.Symlink(program, temporary); err != nil {
		return err
	}
	return os.Rename(temporary, link)
}

// backUp copies the books, which nobody has open now.
func (s *switching) backUp() (books []string, err error) {
	for _, path := range []string{s.home.Join("agent.db"), s.home.Join("sim", "agent.db")} {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := copyFile(path, path+backupSuffix); err != nil {
			return books, session.WrapError(err, session.CodeDiskFull,
				"The agent's books cannot be copied, so nothing was changed.", "Make room: df -h "+s.home.Dir)
		}
		books = append(books, path)
	}
	return books, nil
}

func (s *switching) forget(books []string) error {
	var errs []error
	for _, path := range books {
		errs = append(errs, os.Remove(path+backupSuffix))
	}
	return errors.Join(errs...)
}

// back puts the old program and its books back and starts it. cause is why. The
// time of ctx may be used up, so it takes its own.
func (s *switching) back(ctx context.Context, books []string, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime+startTime)
	defer cancel()
	failed := func(err error) error {
		return session.WrapError(errors.Join(cause, err), session.CodeInstallFailed,
			"The new version did not start, and the old one could not be put back: "+session.AsError(err, "").Message,
			"Start it by hand on that machine: "+ProgramLink(s.home)+" agent start")
	}
	if s.old == "" {
		return cause // there was none before
	}
	if c, err := Connect(ctx, s.home); err == nil {
		if err := c.StopAndWait(ctx); err != nil {
			return failed(err)
		}
	}
	for _, path := range books {
		if err := os.Rename(path+backupSuffix, path); err != nil {
			return failed(err)
		}
	}
	if err := s.link(s.old); err != nil {
		return failed(err)
	}
	status, err := Start(ctx, s.home, StartOptions{Program: ProgramLink(s.home), Keeper: s.opts.Keeper})
	if err != nil {
		return failed(err)
	}
	told := session.AsError(cause, session.CodeInstallFailed)
	return session.WrapError(cause, session.CodeInstallFailed,
		fmt.Sprintf("The new version did not work, so %s is back; sessions went on. %s", status.Version, told.Message),
		told.Hint)
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // only read
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}

// fileSum is the SHA-256 of a file, in hex.
func fileSum(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close() //nolint:errcheck // only read
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// ProgramSum is the SHA-256 of this program as it was started, in hex, whatever
// lies at its path by now.
func ProgramSum() (string, error) {
	if sum, err := fileSum("/proc/self/exe"); err == nil {
		return sum, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	return fileSum(self)
}

// UninstallOptions says what goes with the program.
type UninstallOptions struct {
	// EndSessions ends whatever lives. Otherwise sessions go on by themselves and
	// the books stay, so that they are adopted when an agent comes back.
	EndSessions bool
	// KeepData leaves books, history and logs even where nothing lives.
	KeepData bool
}

// Uninstalled says what is left.
type Uninstalled struct {
	Live int      `json:"live"` // sessions that go on
	Kept []string `json:"kept"` // paths that are left, and why they are is told by Live and the options
}

// endTimeout is how long sessions may take to end.
const endTimeout = 2 * time.Minute

// Uninstall stops the daemon of a folder, makes nothing start it again, and
// removes its programs; its files too where nothing needs them. It fails with
// agent_call_conflict where a control plane rules the agent.
func Uninstall(ctx context.Context, home place.Home, opts UninstallOptions) (Uninstalled, error) {
	var left Uninstalled
	c, err := Connect(ctx, home)
	if errors.Is(err, ErrNotRunning) && isThere(home.Join("agent.db")) {
		// What lives is known to a running agent alone.
		_, err = Start(ctx, home, StartOptions{Keeper: KeeperNone})
		if err != nil && !opts.EndSessions {
			opts.KeepData = true // unknown is taken for alive
			err = ErrNotRunning
		}
		if err == nil {
			c, err = Connect(ctx, home)
		}
	}
	switch {
	case err == nil:
		if left.Live, err = end(ctx, c, opts.EndSessions); err != nil {
			return left, err
		}
		if err := Forget(ctx, home); err != nil {
			return left, err
		}
		if err := c.StopAndWait(ctx); err != nil && !errors.Is(err, ErrNotRunning) {
			if again, lost := Connect(ctx, home); lost == nil { // systemd may have stopped it first
				if err := again.StopAndWait(ctx); err != nil {
					return left, err
				}
			}
		}
	case errors.Is(err, ErrNotRunning):
		if err := Forget(ctx, home); err != nil {
			return left, err
		}
	default:
		return left, err
	}
	left.Kept, err = sweep(home, opts.KeepData || left.Live > 0)
	return left, err
}

// end ends what lives if it is to, and returns how many sessions go on.
func end(ctx context.Context, c *Client, all bool) (live int, err error) {
	status, err := c.Status(ctx)
	if err != nil {
		return 0, err
	}
	if status.Role == RolePlane {
		return status.Live, session.NewError(session.CodeAgentConflict,
			"The agent of that machine belongs to a Slipway that a person uses there.",
			"Remove the machine here only, or stop Slipway there first: slipway shutdown")
	}
	if !all || status.Live == 0 {
		return status.Live, nil
	}
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	if err := c.EndSessions(ctx); err != nil {
		return status.Live, err
	}
	for {
		if status, err = c.Status(ctx); err != nil || status.Live == 0 {
			return status.Live, err
		}
		select {
		case <-ctx.Done():
			return status.Live, session.NewError(session.CodeAgentTimeout,
				fmt.Sprintf("%d sessions have not ended in time, so nothing was removed.", status.Live),
				"Try again, or end them with: slipway stop --force")
		case <-time.After(lookPause * 5):
		}
	}
}

// sweep removes what is the daemon's, and everything where nothing is to stay.
// It returns what stays.
func sweep(home place.Home, keep bool) (kept []string, err error) {
	if !keep && !isThere(home.Join("hub.db")) {
		err := os.RemoveAll(home.Dir)
		if err == nil || !isThere(home.Dir) {
			return nil, nil
		}
		return []string{home.Dir}, session.WrapError(err, session.CodeInstallFailed,
			"Not everything in "+home.Dir+" could be removed.", "Remove it by hand: rm -rf "+home.Dir)
	}
	own := []string{home.Join("bin"), home.Join(tunnelSocket), home.Join(controlSocket), home.Join(settingsFile),
		home.Join(switchLock), LogFile(home), LogFile(home) + ".1"}
	for _, path := range own {
		err = errors.Join(err, os.RemoveAll(path))
	}
	entries, readErr := os.ReadDir(home.Dir)
	for _, entry := range entries {
		kept = append(kept, filepath.Join(home.Dir, entry.Name()))
	}
	return kept, errors.Join(err, readErr)
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
