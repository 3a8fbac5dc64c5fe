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
	"slipway/build/bench/measure"
	"slipway/gpu"
)

// person uses a demonstration like somebody at its page.
type person struct{ *client.Client }

// How often the person acts, and how long the lid stays closed.
const (
	turnEvery = 3 * time.Second
	lidClosed = 2 * time.Second
	lidEvery  = 10 // turns
)

// use acts until ctx ends.
func (p *person) use(ctx context.Context) error {
	ctx, over := context.WithCancelCause(ctx)
	defer over(nil)
	go func() {
		if err := p.follow(ctx); err != nil {
			over(fmt.Errorf("the events broke off: %w", err))
		}
	}()
	for turn := 1; ctx.Err() == nil; turn++ {
		if err := measure.Run(func() { p.turn(ctx, turn) }); err != nil {
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

// turn reads every list, works in a session, and sometimes closes the lid.
func (p *person) turn(ctx context.Context, number int) {
	for _, target := range []string{route.Sessions.Target(), route.Devices.Target(), route.Resources.Target(),
		route.Accounts.Target(), route.Queue.Target()} {
		measure.OK(p.Call(ctx, http.MethodGet, target, nil, nil))
	}
	p.work(ctx, fmt.Sprintf("errand-%d", number))
	if number%lidEvery == 0 {
		measure.Get(route.DemoLid.Body(api.DemoLid{Closed: true}).Ask(ctx, p))
		wait(ctx, lidClosed)
		measure.Get(route.DemoLid.Body(api.DemoLid{}).Ask(ctx, p))
	}
}

func (p *person) work(ctx context.Context, name string) {
	spec := session.Spec{Name: name, Schedule: session.Schedule{Agent: "workstation"}, Type: session.Interactive,
		Image: "python:3.12", Resources: session.Resources{CPU: 1, Memory: gpu.GiB}}
	s := measure.Get(route.Launch.Body(hub.LaunchRequest{Spec: spec}).Ask(ctx, p))
	id := string(s.ID)
	for s.Status != session.Running {
		if s.TerminatedAt != nil {
			measure.Fail("%s ended as %s (%s)", name, s.Status, s.Reason)
		}
		wait(ctx, 100*time.Millisecond)
		s = measure.Get(route.Session.At(id).Ask(ctx, p))
	}
	measure.Get(route.TerminalOpen.At(id).Ask(ctx, p))
	measure.Get(route.Usage.At(id).Ask(ctx, p))
	measure.Get(route.Terminate.At(id).Ask(ctx, p))
}

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
