package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/client"
	"slipway/backend/hub"
	"slipway/backend/session"
	"slipway/gpu"
)

// person uses a demonstration as somebody at its page does.
type person struct{ *client.Client }

// How often the person does something, and how long the lid stays closed.
const (
	turnEvery = 3 * time.Second
	lidClosed = 2 * time.Second
	lidEvery  = 10 // turns
)

// use goes on until ctx ends.
func (p *person) use(ctx context.Context) error {
	ctx, over := context.WithCancelCause(ctx)
	defer over(nil)
	go func() {
		if err := p.follow(ctx); err != nil {
			over(fmt.Errorf("the events broke off: %w", err))
		}
	}()
	for turn := 1; ctx.Err() == nil; turn++ {
		if err := p.turn(ctx, turn); err != nil {
			over(err)
		}
		wait(ctx, turnEvery)
	}
	if err := context.Cause(ctx); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil // it was enough
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// turn looks at everything, works in a session of its own, and now and then
// closes the lid.
func (p *person) turn(ctx context.Context, number int) error {
	for _, target := range []string{route.Sessions.Target(), route.Devices.Target(), route.Resources.Target(),
		route.Accounts.Target(), route.Queue.Target()} {
		if err := p.Call(ctx, http.MethodGet, target, nil, nil); err != nil {
			return err
		}
	}
	if err := p.work(ctx, fmt.Sprintf("errand-%d", number)); err != nil {
		return err
	}
	if number%lidEvery != 0 {
		return nil
	}
	if _, err := route.DemoLid.Body(api.DemoLid{Closed: true}).Ask(ctx, p); err != nil {
		return err
	}
	wait(ctx, lidClosed)
	_, err := route.DemoLid.Body(api.DemoLid{}).Ask(ctx, p)
	return err
}

// work launches a session, opens a shell in it, and ends it.
func (p *person) work(ctx context.Context, name string) error {
	spec := session.Spec{Name: name, Schedule: session.Schedule{Agent: "workstation"}, Type: session.Interactive,
		Image:     "python:3.12",
		Resources: session.Resources{CPU: 1, Memory: gpu.GiB}}
	s, err := route.Launch.Body(hub.LaunchRequest{Spec: spec}).Ask(ctx, p)
	if err != nil {
		return err
	}
	id := string(s.ID)
	for s.Status != "RUNNING" {
		if s.TerminatedAt != nil {
			return fmt.Errorf("%s ended as %s (%s)", name, s.Status, s.Reason)
		}
		wait(ctx, 100*time.Millisecond)
		if s, err = route.Session.At(id).Ask(ctx, p); err != nil {
			return err
		}
	}
	_, err = route.TerminalOpen.At(id).Ask(ctx, p)
	if err == nil {
		_, err = route.Usage.At(id).Ask(ctx, p)
	}
	if err == nil {
		_, err = route.Terminate.At(id).Ask(ctx, p)
	}
	return err
}

// follow reads every event until ctx ends, as a page does.
func (p *person) follow(ctx context.Context) error {
	conn, err := p.Dial(ctx, route.Events.Target())
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	for {
		if _, _, err := conn.ReadMessage(); err != nil {
			return err
		}
	}
}
