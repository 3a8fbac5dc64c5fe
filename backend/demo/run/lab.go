package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"slipway/backend/daemon"
	"slipway/backend/demo"
	"slipway/backend/hub"
	"slipway/backend/local"
	"slipway/backend/place"
	"slipway/backend/service"
	"slipway/backend/session"
)

const labPatience = 20 * time.Second

// lab is the lab server: an agent that paired computers reach on loopback.
type lab struct {
	home  place.Home
	stop  context.CancelFunc
	ready chan daemon.Status // gets one value when it responds
	ended chan error         // gets one value at its end
}

// startLab starts the lab server without waiting for it.
func startLab(ctx context.Context, home place.Home, machine demo.Machine, options demo.Options,
	notebook fs.FS) (*lab, error) {
	if _, err := demo.Claim(home.Dir, options); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	l := &lab{home: home, stop: stop, ready: make(chan daemon.Status, 1), ended: make(chan error, 1)}
	go func() {
		l.ended <- l.serve(ctx, service.AgentConfig{Home: home, Notebook: notebook, Machine: &machine,
			Acts: demo.OnLab(options), Services: demo.ServicesOnLab(options),
			Settings: daemon.Settings{Engine: local.EngineSim}})
	}()
	return l, nil
}

// serve listens at the last address, or at another if that is in use.
func (l *lab) serve(ctx context.Context, config service.AgentConfig) error {
	const anywhere = "127.0.0.1:0"
	kept, err := daemon.LoadSettings(l.home)
	if err != nil {
		return err
	}
	var saved error
	config.Ready = func(status daemon.Status) {
		kept.Engine, kept.Listen = local.EngineSim, status.Listen
		saved = kept.Save(l.home)
		l.ready <- status
	}
	config.Settings.Listen = cmp.Or(kept.Listen, anywhere)
	err = service.RunAgent(ctx, config)
	if session.CodeOf(err) == session.CodeListenConflict && config.Settings.Listen != anywhere {
		config.Settings.Listen = anywhere
		err = service.RunAgent(ctx, config)
	}
	if ctx.Err() != nil {
		return saved
	}
	return errors.Join(err, saved)
}

// address waits until the lab server responds and returns its address.
func (l *lab) address(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, labPatience)
	defer cancel()
	select {
	case status := <-l.ready:
		address, err := hub.ParseAddress("slipway://" + status.Listen)
		return address.String(), err
	case err := <-l.ended:
		l.ended <- err // end waits for it, too
		return "", l.failed(err)
	case <-ctx.Done():
		return "", l.failed(ctx.Err())
	}
}

// code gets a pairing code from the lab server.
func (l *lab) code(ctx context.Context) (string, error) {
	c, err := daemon.Connect(ctx, l.home)
	if err != nil {
		return "", l.failed(err)
	}
	code, err := c.PairCode(ctx, session.PairRequest{Owner: demo.Person, Role: session.RoleAdmin})
	return code.Code, err
}

func (l *lab) failed(err error) error {
	return session.WrapError(err, session.CodeServerFailed, "The demo's lab server does not start.",
		fmt.Sprintf("Look at its log, %s.", daemon.LogFile(l.home)))
}

func (l *lab) end() error {
	l.stop()
	return <-l.ended
}
