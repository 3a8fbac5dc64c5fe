//go:build desktop

package app

import (
	"context"
	"errors"
	"strconv"
	"time"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/client"
	"slipway/backend/hub"
	"slipway/backend/place"
)

// plane is the control plane as the window sees it.
type plane struct {
	*client.Client
	home place.Home
}

// callTimeout bounds every request of the shell: all of them are answered from memory.
const callTimeout = 10 * time.Second

// connect finds the running control plane or starts one detached.
func connect(ctx context.Context, engine string) (*plane, error) {
	home, err := place.FindHome(nil)
	if err != nil {
		return nil, err
	}
	c, err := client.ConnectOrStart(ctx, home, client.StartOptions{Engine: engine})
	if err != nil {
		return nil, err
	}
	c.HTTP.Timeout = callTimeout
	return &plane{Client: c, home: home}, nil
}

// Call makes one request of the API. A person reads its error.
func (p *plane) Call(ctx context.Context, method, target string, in, out any) error {
	err := p.Client.Call(ctx, method, target, in, out)
	var refused *client.Refused
	if errors.As(err, &refused) && refused.Problem.Message != "" {
		return errors.New(refused.Problem.Message)
	}
	return err
}

// loginURL returns an address that logs the window in, once.
func (p *plane) loginURL(ctx context.Context) (string, error) {
	link, err := route.LoginLink.Ask(ctx, p)
	return link.URL, err
}

// showExisting asks a window that is already open to come to the front, with a page unless that is empty, and reports
// whether there is one.
func (p *plane) showExisting(ctx context.Context, page string) (bool, error) {
	shown, err := route.WindowShow.Body(api.WindowRequest{Path: page}).Ask(ctx, p)
	return shown.Shown, err
}

// settings reads the person's settings, change writes them.
func (p *plane) settings(ctx context.Context) (hub.Settings, error) {
	return route.Settings.Ask(ctx, p)
}

func (p *plane) saveSettings(ctx context.Context, settings hub.Settings) error {
	_, err := route.SettingsUpdate.Body(settings).Ask(ctx, p)
	return err
}

// liveSessions returns the sessions that have not ended.
func (p *plane) liveSessions(ctx context.Context) ([]api.Session, error) {
	return route.Sessions.With("state", "live").Ask(ctx, p)
}

// shutdown stops the control plane. Sessions go on.
func (p *plane) shutdown(ctx context.Context) error {
	_, err := route.Shutdown.Ask(ctx, p)
	return err
}

// follow calls fn for every event until ctx ends, connecting again when the stream breaks. lost is called each time it
// does.
func (p *plane) follow(ctx context.Context, fn func(api.Event), lost func(error)) {
	const pause = time.Second
	var last api.Event
	for ctx.Err() == nil {
		lost(p.followOnce(ctx, &last, fn))
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

func (p *plane) followOnce(ctx context.Context, last *api.Event, fn func(api.Event)) error {
	at := route.Events.Flag("shell", true).With("epoch", last.Epoch).With("after", strconv.FormatUint(last.Seq, 10))
	conn, err := p.Dial(ctx, at.Target())
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	defer conn.Close()
	for {
		var event api.Event
		if err := conn.ReadJSON(&event); err != nil {
			return err
		}
		last.Epoch, last.Seq = event.Epoch, event.Seq
		fn(event)
	}
}
