package guests

import (
	"context"
	"net"

	"slipway/backend/session"
)

func (g *Guests) SSHHost(ctx context.Context, id session.ID, kernel string) (session.SSHHost, error) {
	client, err := g.sshGuest(ctx, id, kernel)
	if err != nil {
		return session.SSHHost{}, err
	}
	return client.SSHHost(ctx)
}

// DialSSH implements [session.SSH]. What goes through it counts as use of the
// session by what the guest tells of it: signs of life, which are no use, look
// like everything else from here.
func (g *Guests) DialSSH(ctx context.Context, id session.ID, req session.SSHRequest) (net.Conn, error) {
	client, err := g.sshGuest(ctx, id, req.Kernel)
	if err != nil {
		return nil, err
	}
	return client.DialSSH(ctx, req)
}

// sshGuest is the guest of a kernel that may be reached by ssh.
func (g *Guests) sshGuest(ctx context.Context, id session.ID, kernel string) (SSH, error) {
	s, err := g.config.Records.Get(id)
	if err != nil {
		return nil, err
	}
	if s.Spec.NoSSH {
		return nil, session.NewError(session.CodeSessionConflict, "The session was launched without ssh.",
			"Use its terminal, or launch it again with ssh.")
	}
	return g.Guest(ctx, id, kernel)
}
