package daemon

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/moby/sys/atomicwriter"

	"slipway/backend/place"
)

// unit is the service by which a person's systemd keeps the daemon of a folder.
type unit struct {
	home place.Home
	name string // slipway-agent.service
	path string // of its file; empty: the person has no folder for it
}

// systemdTime is how long one call of systemd may take.
const systemdTime = 5 * time.Second

// unitOf names the unit of a folder: the usual folder has the usual name.
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

// errNoKeeper means that the person's systemd is not there, or ends with their
// last login.
var errNoKeeper = errors.New("no systemd keeps services of this user when nobody is logged in")

// start writes the unit and starts it. It fails with errNoKeeper, or with what
// systemd said.
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

// content is the text of the unit. A path that systemd would read otherwise
// than as itself is refused.
func (u unit) content(program string) (string, error) {
	for _, path := range []string{program, u.home.Dir} {
		if strings.ContainsAny(path, "\"\\%$\n\r\t'") {
			return "", fmt.Errorf("the path %q cannot stand in a unit of systemd", path)
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

// remove stops and forgets the unit. It is no error that there is none.
func (u unit) remove(ctx context.Context) error {
	if u.path == "" {
		return nil
	}
	if _, err := os.Stat(u.path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	_ = systemctl(ctx, "disable", "--now", u.name) // the file goes in any case
	err := os.Remove(u.path)
	_ = systemctl(ctx, "daemon-reload")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Forget makes nothing start the daemon of a folder by itself any more.
func Forget(ctx context.Context, home place.Home) error { return unitOf(home).remove(ctx) }

// lingers reports whether the person's systemd goes on when nobody is logged
// in, having asked for it where it did not.
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

// run runs a program of the system for a short while.
func run(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, systemdTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Second
	if os.Getenv("XDG_RUNTIME_DIR") == "" { // a login without PAM has none
		cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+filepath.Join("/run/user", strconv.Itoa(os.Getuid())))
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), err
}
