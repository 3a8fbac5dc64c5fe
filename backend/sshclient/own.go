package sshclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"slipway/backend/session"
)

// CheckOwn logs in as the person would: with this computer's ssh, by the person's own configuration and the session's
// shortest name there. It reports whether that was tried, which needs an ssh and a configuration that includes ours,
// and fails with ssh_setup_failed where their ssh does not come through.
func (c *Client) CheckOwn(ctx context.Context, id session.ID) (bool, error) {
	installed, err := c.Installed()
	names := c.Names(id)
	if err != nil || !installed || len(names) == 0 {
		return false, err
	}
	path, err := exec.LookPath("ssh")
	if err != nil {
		return false, nil //nolint:nilerr // there is nothing to be tried
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, path, "-F", c.PersonFile(), "-T", "-o", "BatchMode=yes", names[0], "exit 0")
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		return true, c.ownFailure(names[0], said.String(), errors.Join(err, ctx.Err()))
	}
	return true, nil
}

func (c *Client) ownFailure(name, said string, err error) error {
	why := "it said nothing"
	if lines := strings.FieldsFunc(said, func(r rune) bool { return r == '\n' || r == '\r' }); len(lines) > 0 {
		why = lines[len(lines)-1]
	}
	return session.WrapError(err, session.CodeSSHFailed,
		fmt.Sprintf("The session lets this installation in, but ssh %s does not come through: %s", name, why),
		"ssh -v "+name+" says more. An entry of your own in "+c.PersonFile()+" may stand in the way.")
}
