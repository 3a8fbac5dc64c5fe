package agent

import (
	"context"
	"net"

	"slipway/backend/session"
)

func (a *Agent) SSHHost(ctx context.Context, id session.ID, kernel string) (session.SSHHost, error) {
	g, err := a.sshGuest(ctx, id, kernel)
	if err != nil {
		return session.SSHHost{}, err
	}
	return g.SSHHost(ctx)
}

// DialSSH implements [session.SSH]. What goes through it counts as use of the
// session by what the guest tells of it: signs of life, which are no use, look
// like everything else from here.
func (a *Agent) DialSSH(ctx context.Context, id session.ID, req session.SSHRequest) (net.Conn, error) {
	g, err := a.sshGuest(ctx, id, req.Kernel)
	if err != nil {
		return nil, err
	}
	return g.DialSSH(ctx, req)
}

// sshGuest is the guest of a kernel that may be reached by ssh.
func (a *Agent) sshGuest(ctx context.Context, id session.ID, kernel string) (Guest, error) {
	s, err := a.store.Get(id)
	if err != nil {
		return nil, err
	}
	if s.Spec.NoSSH {
		return nil, &session.Error{Code: "ssh_open_forbidden", Message: "The session was launched without ssh.",
			Hint: "Use its terminal, or launch it again with ssh."}
	}
	return a.guestOf(ctx, id, kernel)
}
