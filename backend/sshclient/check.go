package sshclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"slipway/backend/session"
)

// checkTimeout is how long a check may take.
const checkTimeout = 20 * time.Second

// Check logs in over conn, which it closes, as ssh would, and runs a command that does nothing. It fails with
// ssh_open_conflict, ssh_setup_failed, ssh_setup_failed, session_use_unavailable and session_use_unavailable.
func (c *Client) Check(ctx context.Context, conn net.Conn, host session.SSHHost) error {
	defer conn.Close() //nolint:errcheck // it was only tried
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { conn.Close() }) //nolint:errcheck // see above
	defer stop()
	wanted, _, _, _, err := ssh.ParseAuthorizedKey([]byte(host.Key))
	if err != nil {
		return session.WrapError(err, session.CodeAgentReply, "The session told a key that is none.",
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
	if err == nil {
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
			"The session answers by another key than its agent told.",
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
		"The connection to the session's ssh server was lost.", "Try again; it is made again by itself.")
}

// hearing is a connection that notes when it breaks.
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
