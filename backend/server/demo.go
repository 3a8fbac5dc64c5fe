package server

import (
	"context"
	"net/http"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/hub"
	"slipway/backend/session"
)

// demoRoutes are the routes of the demo.
type demoRoutes struct {
	hub         *hub.Hub
	demo        Demo
	demoStarter DemoStarter
}

func (s demoRoutes) mount(m *mounts) {
	answer(m, route.Demo, s.getDemo)
	take(m, route.DemoLid, s.setLid)
	take(m, route.DemoStart, s.startDemo)
}

// Demo is a demo that is served.
type Demo interface {
	State() DemoState
	// SetLid closes or opens the lid of the simulated laptop. A closed lid cuts all connections to other machines.
	SetLid(closed bool)
}

// DemoState is the state of a demo.
type DemoState = api.Demo

func (s demoRoutes) getDemo(*http.Request) (api.Demo, error) {
	if s.demo == nil {
		return api.Demo{}, nil
	}
	state := s.demo.State()
	state.Active = true
	return state, nil
}

func (s demoRoutes) setLid(r *http.Request, req api.DemoLid) (api.Demo, error) {
	if s.demo == nil || s.demo.State().Lab == "" {
		return api.Demo{}, session.NewError(session.CodeServerUnavailable,
			"No demo with a tunnel is running.", "Start one: slipway demo")
	}
	s.demo.SetLid(req.Closed)
	return s.getDemo(r)
}

// DemoStarter starts a demo next to the real control plane.
type DemoStarter interface {
	// Start starts the demo unless it is running, and returns an address that logs a browser in to it once. It fails
	// with server_start_failed.
	Start(ctx context.Context) (string, error)
}

func (s demoRoutes) startDemo(r *http.Request, req api.DemoStart) (api.DemoStarted, error) {
	if s.demoStarter == nil {
		return api.DemoStarted{}, session.NewError(session.CodeServerUnavailable, "This is already a demo.",
			"Close it to return to the real Slipway.")
	}
	address, err := s.demoStarter.Start(r.Context())
	if err != nil {
		return api.DemoStarted{}, err
	}
	started := api.DemoStarted{URL: address}
	if req.Window {
		started.Windowed = s.hub.OpenWindow(hub.Window{URL: started.URL, Title: "Slipway · Demo"})
	}
	return started, nil
}
