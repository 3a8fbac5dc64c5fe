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

// ProgramLink returns the symbolic link to the agent's program. The installed versions are next to it.
func ProgramLink(home place.Home) string { return home.Join("bin", "slipway") }

// Switched is the result of [Switch].
type Switched struct {
	From Status `json:"from"` // zero: no agent ran
	To   Status `json:"to"`
	Done bool   `json:"done"` // false: the program was running already
}

const (
	stopTime = 40 * time.Second
	// backupSuffix is the suffix of copies of the store, which a new program may convert to a newer format.
	backupSuffix = ".before-switch"
)

// Switch replaces the program of a folder's agent. Sessions keep running and are adopted. If the new program does not
// answer, the old one is restored with its data, and Switch fails with agent_install_failed. A control plane of a
// person at that machine is not replaced; the new program only connects to it. Another switch of the same folder waits
// and finds this one done.
func Switch(ctx context.Context, home place.Home, opts StartOptions) (Switched, error) {
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
	defer lock.Close() //nolint:errcheck // the end of the process unlocks it as well
	s := switching{home: home, opts: opts, sum: sum}
	return s.run(ctx)
}

type switching struct {
	home place.Home
	opts StartOptions
	sum  string // of the new program
	old  string // path of the previous program; empty: unknown
}

func (s *switching) run(ctx context.Context) (Switched, error) {
	var done Switched
	running, err := Connect(ctx, s.home)
	if err != nil && !errors.Is(err, ErrNotRunning) {
		return done, err
	}
	if running != nil {
		if done.From, err = running.Status(ctx); err != nil {
			return done, err
		}
		if done.From.SHA256 == s.sum || done.From.Role == RolePlane {
			done.To = done.From
			return done, s.link(s.opts.Program) // it bridges tunnels to a control plane
		}
	}
	s.old = s.linked(done.From.Program)
	if running != nil {
		stopping, cancel := context.WithTimeout(ctx, stopTime)
		defer cancel()
		if err := running.StopAndWait(stopping); err != nil {
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
	opts := s.opts
	opts.Program = ProgramLink(s.home)
	done.To, err = Start(ctx, s.home, opts)
	if err == nil && done.To.SHA256 != s.sum {
		err = session.NewError(session.CodeAgentConflict, "Another program has taken over the agent.",
			"See what runs there: slipway agent status")
	}
	if err != nil {
		return done, s.back(ctx, books, err)
	}
	done.Done = true
	err = s.prune()
	for _, path := range books {
		err = errors.Join(err, os.Remove(path+backupSuffix))
	}
	return done, err
}

// prune removes all programs except the new and the previous one.
func (s *switching) prune() error {
	paths, err := filepath.Glob(ProgramLink(s.home) + "-*")
	for _, path := range paths {
		if name := filepath.Base(path); name != filepath.Base(s.opts.Program) && name != filepath.Base(s.old) {
			err = errors.Join(err, os.Remove(path))
		}
	}
	return err
}

// linked returns the target of the link, or the program that ran.
func (s *switching) linked(ran string) string {
	if target, err := filepath.EvalSymlinks(ProgramLink(s.home)); err == nil {
		return target
	}
	if _, err := os.Stat(ran); err != nil {
		return ""
	}
	return ran
}

// link atomically points the link to a program.
func (s *switching) link(program string) error {
	link := ProgramLink(s.home)
	if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
		return err
	}
	if filepath.Dir(program) == filepath.Dir(link) {
		program = filepath.Base(program) // keeps working if the folder is moved
	}
	return point(link, program)
}

// backUp copies the store, which no process has open now.
func (s *switching) backUp() (books []string, err error) {
	for _, path := range []string{s.home.Join("agent.db"), s.home.Join("sim", "agent.db")} {
		if !isThere(path) {
			continue
		}
		if err := copyFile(path, path+backupSuffix); err != nil {
			return books, session.WrapError(err, session.CodeDiskFull,
				"The agent's data cannot be copied, so nothing was changed.", "Free some space: df -h "+s.home.Dir)
		}
		books = append(books, path)
	}
	return books, nil
}

// back restores and starts the old program and its data. It has its own time limit, because ctx may have expired.
func (s *switching) back(ctx context.Context, books []string, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime+startTime)
	defer cancel()
	failed := func(err error) error {
		return session.WrapError(errors.Join(cause, err), session.CodeInstallFailed,
			"The new version did not start, and the old one could not be put back: "+session.AsError(err, "").Message,
			"Start it by hand on that machine: "+ProgramLink(s.home)+" agent start")
	}
	if s.old == "" {
		return cause // there was no program before
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
		fmt.Sprintf("The new version did not work, so %s was restored; sessions kept running. %s", status.Version,
			told.Message),
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

// fileSum returns the SHA-256 of a file, in hex.
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

// ProgramSum returns the SHA-256 of the running program, in hex, even if its file was replaced.
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

// UninstallOptions says what to remove besides the program.
type UninstallOptions struct {
	EndSessions bool // otherwise live sessions keep running and the data stays, so that a later agent adopts them
	KeepData    bool // keeps store, history and logs even without live sessions
}

// Uninstalled says what is left after [Uninstall].
type Uninstalled struct {
	Live int      `json:"live"` // sessions that keep running
	Kept []string `json:"kept"` // paths that were not removed
}

const (
	endTimeout      = 2 * time.Minute
	removedPrograms = "bin.removed"
)

// Uninstall stops the daemon of a folder, disables its automatic start and removes its programs, and its data unless it
// is needed. It fails with agent_call_conflict if the agent belongs to a control plane.
func Uninstall(ctx context.Context, home place.Home, opts UninstallOptions) (Uninstalled, error) {
	var left Uninstalled
	c, err := Connect(ctx, home)
	if errors.Is(err, ErrNotRunning) && isThere(home.Join("agent.db")) {
		// Only a running agent knows which sessions live.
		_, err = Start(ctx, home, StartOptions{Keeper: KeeperNone})
		if err != nil && !opts.EndSessions {
			opts.KeepData = true // sessions may live
			err = ErrNotRunning
		}
		if err == nil {
			c, err = Connect(ctx, home)
		}
	}
	running := err == nil
	if running {
		left.Live, err = end(ctx, c, opts.EndSessions)
	}
	if err != nil && (running || !errors.Is(err, ErrNotRunning)) {
		return left, err
	}
	if err := unitOf(home).remove(ctx); err != nil {
		return left, err
	}
	if running {
		if err := stopForGood(ctx, home, c); err != nil {
			return left, err
		}
	}
	left.Kept, err = sweep(home, opts.KeepData || left.Live > 0)
	return left, err
}

// stopForGood stops the agent. Its programs are put aside first, since a client whose tunnel ends connects again and
// would start the agent while the folder is removed.
func stopForGood(ctx context.Context, home place.Home, c *Client) error {
	programs, aside := home.Join("bin"), home.Join(removedPrograms)
	err := os.RemoveAll(aside)
	if err == nil {
		err = os.Rename(programs, aside)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // those of a package are elsewhere
		return err
	}
	if err = c.StopAndWait(ctx); err == nil {
		return nil
	}
	if again, lost := Connect(ctx, home); lost == nil {
		err = again.StopAndWait(ctx)
	} else { // systemd may have stopped it first
		err = home.WaitUnlocked(ctx)
	}
	if err != nil {
		err = errors.Join(err, os.Rename(aside, programs))
	}
	return err
}

// end ends all sessions if all is set, and returns how many keep running.
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
				fmt.Sprintf("Nothing was removed. Sessions that have not ended in time: %d.", status.Live),
				"Try again, or end them with: slipway stop --force")
		case <-time.After(lookPause * 5):
		}
	}
}

// sweep removes the daemon's files, or the whole folder unless keep is set. It returns what is left.
func sweep(home place.Home, keep bool) (kept []string, err error) {
	if !keep && !isThere(home.Join("hub.db")) {
		err := os.RemoveAll(home.Dir)
		if err == nil || !isThere(home.Dir) {
			return nil, nil
		}
		return []string{home.Dir}, session.WrapError(err, session.CodeInstallFailed,
			"Not everything in "+home.Dir+" could be removed.", "Remove it by hand: rm -rf "+home.Dir)
	}
	own := []string{home.Join("bin"), home.Join(removedPrograms), home.Join(tunnelSocket), home.Join(controlSocket),
		home.Join(settingsFile), home.Join(switchLock), LogFile(home), LogFile(home) + ".1"}
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

// point atomically replaces link with a symbolic link to target.
func point(link, target string) error {
	temporary := link + ".new"
	if err := os.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(target, temporary); err != nil {
		return err
	}
	return os.Rename(temporary, link)
}
