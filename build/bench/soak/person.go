package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"slipway/backend/api"
	"slipway/backend/place"
	"slipway/backend/session"
)

// person uses a demonstration as somebody at its page does.
type person struct{ place.Client }

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
	for _, path := range []string{"/api/v1/sessions", "/api/v1/devices", "/api/v1/resources", "/api/v1/usage",
		"/api/v1/queue"} {
		if err := p.Call(ctx, http.MethodGet, path, nil, nil); err != nil {
			return err
		}
	}
	if err := p.work(ctx, fmt.Sprintf("errand-%d", number)); err != nil {
		return err
	}
	if number%lidEvery != 0 {
		return nil
	}
	if err := p.Call(ctx, http.MethodPut, "/api/v1/demo/lid", api.DemoLid{Closed: true}, nil); err != nil {
		return err
	}
	wait(ctx, lidClosed)
	return p.Call(ctx, http.MethodPut, "/api/v1/demo/lid", api.DemoLid{}, nil)
}

// work launches a session, opens a shell in it, and ends it.
func (p *person) work(ctx context.Context, name string) error {
	var s api.Session
	spec := map[string]any{"name": name, "agent": "workstation", "type": "interactive", "image": "python:3.12",
		"resources": map[string]any{"cpu": 1, "memory": "1g"}}
	if err := p.Call(ctx, http.MethodPost, "/api/v1/sessions", map[string]any{"spec": spec}, &s); err != nil {
		return err
	}
	at := "/api/v1/sessions/" + string(s.ID)
	for s.Status != "RUNNING" {
		if s.TerminatedAt != nil {
			return fmt.Errorf("%s ended as %s (%s)", name, s.Status, s.Reason)
		}
		wait(ctx, 100*time.Millisecond)
		if err := p.Call(ctx, http.MethodGet, at, nil, &s); err != nil {
			return err
		}
	}
	var shell session.Terminal
	if err := p.Call(ctx, http.MethodPost, at+"/terminals", session.TerminalRequest{}, &shell); err != nil {
		return err
	}
	if err := p.Call(ctx, http.MethodGet, at+"/usage", nil, nil); err != nil {
		return err
	}
	return p.Call(ctx, http.MethodPost, at+"/terminate", api.TerminateRequest{}, nil)
}

// follow reads every event until ctx ends, as a page does.
func (p *person) follow(ctx context.Context) error {
	conn, res, err := websocket.DefaultDialer.DialContext(ctx, "ws"+strings.TrimPrefix(p.URL, "http")+"/api/v1/events",
		p.Header())
	if res != nil {
		defer res.Body.Close() //nolint:errcheck // nothing is in it
	}
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
