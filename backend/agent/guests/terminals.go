package guests

import (
	"context"
	"io"
	"net"
	"strings"

	"slipway/backend/session"
)

// Outside, the id of a terminal of a kernel other than the main one is the kernel's name, a dot and its own id.

func (g *Guests) ListTerminals(ctx context.Context, id session.ID) ([]session.Terminal, error) {
	s, err := g.config.Records.Get(id)
	if err != nil {
		return nil, err
	}
	if len(s.Kernels) == 0 {
		_, err := g.Guest(ctx, id, "")
		return nil, err
	}
	all := []session.Terminal{}
	for _, k := range s.Kernels {
		client, err := g.Guest(ctx, id, k.Name)
		if err != nil {
			return nil, err
		}
		list, err := client.ListTerminals(ctx)
		if err != nil {
			return nil, err
		}
		for _, t := range list {
			all = append(all, outside(t, k.Name))
		}
	}
	return all, nil
}

func outside(t session.Terminal, kernel string) session.Terminal {
	if kernel != "" && kernel != session.MainKernel {
		t.ID, t.Kernel = kernel+"."+t.ID, kernel
	}
	return t
}

// inside returns the kernel of a terminal and the id inside that kernel.
func inside(id string) (kernel, terminal string) {
	if kernel, terminal, found := strings.Cut(id, "."); found && session.ValidKernel(kernel) {
		return kernel, terminal
	}
	return "", id
}

func (g *Guests) OpenTerminal(ctx context.Context, id session.ID,
	req session.TerminalRequest) (session.Terminal, error) {
	client, err := g.Guest(ctx, id, req.Kernel)
	if err != nil {
		return session.Terminal{}, err
	}
	t, err := client.OpenTerminal(ctx, req)
	return outside(t, req.Kernel), err
}

func (g *Guests) AttachTerminal(ctx context.Context, id session.ID,
	req session.AttachRequest) (io.ReadWriteCloser, error) {
	kernel, terminal := inside(req.Terminal)
	client, err := g.Guest(ctx, id, kernel)
	if err != nil {
		return nil, err
	}
	req.Terminal = terminal
	stream, err := asStream(client.AttachTerminal(ctx, req))
	return g.config.Use.Terminal(id, stream), err
}

func (g *Guests) CloseTerminal(ctx context.Context, id session.ID, terminal string) error {
	kernel, terminal := inside(terminal)
	client, err := g.Guest(ctx, id, kernel)
	if err != nil {
		return err
	}
	return client.CloseTerminal(ctx, terminal)
}

func (g *Guests) Exec(ctx context.Context, id session.ID, req session.ExecRequest) (io.ReadWriteCloser, error) {
	if len(req.Command) == 0 {
		return nil, session.NewError(session.CodeSessionInvalid, "There is no command to run.",
			"Name a program and its arguments.")
	}
	client, err := g.Guest(ctx, id, req.Kernel)
	if err != nil {
		return nil, err
	}
	return asStream(client.Exec(ctx, req))
}

// asStream returns a nil interface, not a nil connection in one, if there was an error.
func asStream(conn net.Conn, err error) (io.ReadWriteCloser, error) {
	if err != nil {
		return nil, err
	}
	return conn, nil
}

func (g *Guests) SSHHost(ctx context.Context, id session.ID, kernel string) (session.SSHHost, error) {
	client, err := g.sshGuest(ctx, id, kernel)
	if err != nil {
		return session.SSHHost{}, err
	}
	return client.SSHHost(ctx)
}

// DialSSH implements [session.SSH]. Only the guest reports its use, because keep-alives look like use from here.
func (g *Guests) DialSSH(ctx context.Context, id session.ID, req session.SSHRequest) (net.Conn, error) {
	client, err := g.sshGuest(ctx, id, req.Kernel)
	if err != nil {
		return nil, err
	}
	return client.DialSSH(ctx, req)
}

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
