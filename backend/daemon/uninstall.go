package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"slipway/backend/place"
	"slipway/backend/session"
)

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
		return []string{home.Dir}, &session.Error{Code: session.CodeInstallFailed,
			Message: "Not everything in " + home.Dir + " could be removed.", Hint: "Remove it by hand: rm -rf " +
				home.Dir, Err: err}
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
