package sshclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"slipway/backend/session"
)

// checkTimeout is how long a check may take.
const checkTimeout = 20 * time.Second

// Check logs in over conn as ssh would, runs a command that does nothing or, if the session only transfers files,
// begins a transfer, and closes conn. It fails with ssh_open_conflict, ssh_setup_failed or session_use_unavailable.
func (c *Client) Check(ctx context.Context, conn net.Conn, host session.SSHHost, transfers bool) error {
	defer conn.Close() //nolint:errcheck // it was only a test
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { conn.Close() }) //nolint:errcheck // see above
	defer stop()
	wanted, err := keyOf(host)
	if err != nil {
		return session.WrapError(err, session.CodeAgentReply, "The session reported an invalid key.",
			"Start the session again with this version of Slipway.")
	}
	heard := &hearing{Conn: conn}
	met := false
	config := &ssh.ClientConfig{
		User: User, Auth: []ssh.AuthMethod{ssh.PublicKeys(c.signer)}, ClientVersion: "SSH-2.0-Slipway",
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			if !bytes.Equal(key.Marshal(), wanted.Marshal()) {
				return errOtherHost
			}
			met = true
			return nil
		},
	}
	peer, channels, requests, err := ssh.NewClientConn(heard, "session", config)
	if err != nil {
		return loginFailure(ctx, err, met && !heard.lost.Load())
	}
	client := ssh.NewClient(peer, channels, requests)
	defer client.Close() //nolint:errcheck // see above
	run, err := client.NewSession()
	switch {
	case err != nil:
	case transfers:
		err = run.RequestSubsystem("sftp")
	default:
		err = run.Run("exit 0")
	}
	var exit *ssh.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exit):
		return session.WrapError(err, session.CodeSSHFailed,
			"The login works, but the session's image has no shell to run commands with.",
			"Files can be copied with sftp and scp; commands need an image with a shell.")
	}
	return loginFailure(ctx, err, false)
}

var errOtherHost = errors.New("another key than the one that is known")

func loginFailure(ctx context.Context, err error, refused bool) error {
	switch {
	case errors.Is(err, errOtherHost):
		return session.WrapError(err, session.CodeSSHConflict,
			"The session has another host key than its agent reported.",
			"Do not log in; somebody may have put another container in its place.")
	case ctx.Err() != nil:
		return session.WrapError(err, session.CodeSessionUnavailable,
			fmt.Sprintf("The session's ssh server did not answer within %s.", checkTimeout),
			"Try again; a machine that is very busy may take longer.")
	case refused:
		return session.WrapError(err, session.CodeSSHFailed,
			"The session's ssh server refused the key of this installation.",
			"Start the session again with this version of Slipway.")
	}
	return session.WrapError(err, session.CodeSessionUnavailable,
		"The connection to the session's ssh server was lost.", "Try again. Slipway reconnects automatically.")
}

// hearing is a connection that records that it broke.
type hearing struct {
	net.Conn
	lost atomic.Bool
}

func (h *hearing) Read(p []byte) (int, error) {
	n, err := h.Conn.Read(p)
	if err != nil {
		h.lost.Store(true)
	}
	return n, err
}

// CheckOwn logs in as the user would: with the ssh of this computer, the user's configuration and the shortest name of
// the session. It reports whether it could try, which needs ssh and a configuration that includes ours. It fails with
// ssh_setup_failed if the login does.
func (c *Client) CheckOwn(ctx context.Context, id session.ID, transfers bool) (bool, error) {
	installed, err := c.Installed()
	names := c.Names(id)
	if err != nil || !installed || len(names) == 0 {
		return false, err
	}
	path, err := exec.LookPath("ssh")
	if err != nil {
		return false, nil //nolint:nilerr // there is nothing to try
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	var said bytes.Buffer
	args := []string{"-F", c.PersonFile(), "-T", "-o", "BatchMode=yes"}
	if transfers {
		args = append(args, "-s", names[0], "sftp") // the server ends with its empty input
	} else {
		args = append(args, names[0], "exit 0")
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stderr = &said
	if err = cmd.Run(); err == nil {
		return true, nil
	}
	why := "it said nothing"
	if lines := strings.FieldsFunc(said.String(), func(r rune) bool { return r == '\n' || r == '\r' }); len(lines) > 0 {
		why = lines[len(lines)-1]
	}
	return true, session.WrapError(errors.Join(err, ctx.Err()), session.CodeSSHFailed,
		fmt.Sprintf("The session lets this installation in, but ssh %s does not come through: %s", names[0], why),
		"ssh -v "+names[0]+" says more. An entry of your own in "+c.PersonFile()+" may interfere.")
}
