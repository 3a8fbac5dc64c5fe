package server

import (
	"context"
	"net/http"
	"time"

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

// Demo is a demonstration that is served.
type Demo interface {
	State() DemoState
	// SetLid closes the lid of the laptop, which cuts every connection to other
	// machines, or opens it.
	SetLid(closed bool)
}

// DemoState is how a demonstration stands.
type DemoState struct {
	Seed      uint64
	Story     string
	Lab       string // name of the agent behind the tunnel; empty: there is none
	LidClosed bool
	Speed     int       // how much faster than on the wall time goes by
	Real      time.Time // a moment on the clock on the wall
	Shown     time.Time // what the demonstration's clock showed then
}

func (s demoRoutes) getDemo(*http.Request) (api.Demo, error) { return s.demoOut(), nil }

func (s demoRoutes) demoOut() api.Demo {
	if s.demo == nil {
		return api.Demo{}
	}
	state := s.demo.State()
	return api.Demo{Active: true, Seed: state.Seed, Story: state.Story, Lab: state.Lab, LidClosed: state.LidClosed,
		Speed: state.Speed, Real: state.Real, Shown: state.Shown}
}

func (s demoRoutes) setLid(r *http.Request, req api.DemoLid) (api.Demo, error) {
	if s.demo == nil || s.demo.State().Lab == "" {
		return api.Demo{}, session.NewError(session.CodeServerUnavailable,
			"No demo with a tunnel is running.", "Start one: slipway demo")
	}
	s.demo.SetLid(req.Closed)
	return s.demoOut(), nil
}

// DemoStarter starts a demonstration beside what is real.
type DemoStarter interface {
	// Start starts it unless it runs, and returns an address that logs a browser in
	// to it, once. It fails with server_start_failed.
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
