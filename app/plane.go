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
	"slipway/backend/place"
)

// plane is the client of the control plane for the window.
type plane struct {
	*client.Client
	home place.Home
}

// callTimeout limits each request. All are answered from memory.
const callTimeout = 10 * time.Second

// connect finds the control plane or starts one in the background.
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

// Call sends one request of the API. Its errors are for display.
func (p *plane) Call(ctx context.Context, method, target string, in, out any) error {
	err := p.Client.Call(ctx, method, target, in, out)
	var refused *client.Refused
	if errors.As(err, &refused) && refused.Problem.Message != "" {
		return errors.New(refused.Problem.Message)
	}
	return err
}

// loginURL returns a one-time login address.
func (p *plane) loginURL(ctx context.Context) (string, error) {
	link, err := route.LoginLink.Ask(ctx, p)
	return link.URL, err
}

// follow calls fn with each event until ctx ends. When the stream breaks, it calls lost and connects again.
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
