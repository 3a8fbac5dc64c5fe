package cli

import (
	"context"
	"errors"
	"fmt"

	"slipway/backend/client"
	"slipway/backend/pace"
	"slipway/backend/place"
)

// caller speaks the API to one control plane, over a new connection after
// [caller.reconnect]. Goroutines use copies of their own.
type caller struct {
	*client.Client
	program *program
}

// connect finds the control plane or starts one, and says so on stderr.
func (p *program) connect(ctx context.Context) (*caller, error) {
	home, err := place.FindHome(p.Env)
	if err != nil {
		return nil, err
	}
	return p.connectOrStart(ctx, home, p.Env("SLIPWAY_ENGINE"),
		func() { p.notice("No control plane is running; starting one in the background.") })
}

func (p *program) connectOrStart(ctx context.Context, home place.Home, engine string,
	starting func()) (*caller, error) {
	c, err := client.ConnectOrStart(ctx, home, client.StartOptions{Executable: p.Executable, Engine: engine,
		Starting: starting})
	if err != nil {
		return nil, err
	}
	if c.Serving.Demo {
		p.notice("DEMO: nothing of this is real.")
		if s := c.Serving; s.Speed > 0 {
			p.Now = pace.New(s.Speed, s.Real, s.Shown).Now
		}
	}
	return &caller{c, p}, nil
}

// running is the control plane that runs; [client.ErrNotServing] where none does.
func (p *program) running(ctx context.Context) (*caller, error) {
	home, err := place.FindHome(p.Env)
	if err != nil {
		return nil, err
	}
	c, err := client.Connect(ctx, home)
	return &caller{c, p}, err
}

// reconnect finds the control plane again after a connection was lost. One that
// was killed is started again, on the engine it had; one that stopped in good
// order is waited for.
func (c *caller) reconnect(ctx context.Context) error {
	home, err := place.FindHome(c.program.Env)
	if err != nil {
		return err
	}
	var found *caller
	if serving, readErr := home.Serving(); readErr == nil {
		found, err = c.program.connectOrStart(ctx, home, serving.Engine, nil)
	} else {
		found, err = c.program.running(ctx)
	}
	if err == nil {
		c.Client = found.Client
	}
	return err
}

// notice tells a person what goes on, on stderr.
func (p *program) notice(format string, args ...any) {
	fmt.Fprintf(p.Stderr, format+"\n", args...)
}

// worthTrying reports whether a control plane that could not be reached may be
// reached a moment later.
func worthTrying(err error) bool {
	return client.IsLost(err) || errors.Is(err, client.ErrNotServing)
}
