// Package run serves a demonstration: the control plane over simulated machines.
package run

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"slipway/backend/demo"
	"slipway/backend/hub"
	"slipway/backend/local"
	"slipway/backend/place"
	"slipway/backend/server"
	"slipway/backend/service"
	"slipway/backend/session"
	"slipway/tunnel"
)

// Config configures a demonstration.
type Config struct {
	Options  demo.Options
	Keep     string // the folder in which to keep it; empty: a temporary one
	Port     int    // 0: the one used last, else 7431, else any
	Assets   fs.FS
	Notebook fs.FS                       // the page of notebooks in sessions; nil: they have none
	Log      *slog.Logger                // nil: the log file in the folder
	Ready    func(service.Ready, string) // called once with the folder when the demonstration responds; may be nil
}

// usualPort is the default port of a demonstration, which differs from that of a real control plane.
const usualPort = 7431

// Demo serves the control plane over simulated machines until ctx ends or it is shut down: a workstation and, behind
// the tunnel, a lab server. It fails like [service.Run], and with server_start_conflict if the folder has other
// content.
func Demo(ctx context.Context, config Config) (err error) {
	dir := config.Keep
	if dir == "" {
		if dir, err = demo.Temporary(); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	options, err := demo.Claim(dir, config.Options)
	if err != nil {
		return err
	}
	machine := demo.Workstation(options)
	if machine.Time, err = demo.GoesOn(dir, options); err != nil {
		return err
	}
	d := &demonstration{machine: machine, home: place.Home{Dir: dir}, options: options, notebook: config.Notebook}
	served := service.Config{Home: d.home, Engine: local.EngineSim, Port: config.Port, UsualPort: usualPort,
		Assets: config.Assets, Notebook: config.Notebook, SSHDir: d.home.Join("person-ssh"), Log: config.Log,
		Demo: d, Machine: &d.machine,
		Dialer: func(_ hub.Entry, dialer tunnel.Dialer) tunnel.Dialer { return d.lid.Through(dialer) }}
	if config.Ready != nil {
		served.Ready = func(r service.Ready) { config.Ready(r, dir) }
	}
	return service.Run(ctx, served)
}

type demonstration struct {
	home     place.Home
	options  demo.Options
	machine  demo.Machine // the workstation
	notebook fs.FS
	lid      demo.Lid
	lab      *lab   // nil: the story has none
	nudge    func() // checks every connection now
}

var _ service.Demo = (*demonstration)(nil)

func (d *demonstration) Start(ctx context.Context, log *slog.Logger) (stop func() error, err error) {
	if err := demo.Sweep(); err != nil {
		log.Warn("what earlier demos left cannot be removed", "error", err)
	}
	keeping, endKeeping := context.WithCancel(ctx)
	var kept sync.WaitGroup
	kept.Go(func() { d.keepTime(keeping, log) })
	endTime := func() error {
		endKeeping()
		kept.Wait()
		return demo.SaveTime(d.home.Dir, d.machine.Time, 0)
	}
	if !d.options.Story.HasLab() {
		return endTime, nil
	}
	machine := demo.Lab(d.options)
	machine.Time = d.machine.Time
	if d.lab, err = startLab(ctx, demo.LabHome(d.home), machine, d.options, d.notebook); err != nil {
		return nil, errors.Join(err, endTime())
	}
	return func() error { return errors.Join(d.lab.end(), endTime()) }, nil
}

// keepTime stores the time until ctx ends.
func (d *demonstration) keepTime(ctx context.Context, log *slog.Logger) {
	ticker := time.NewTicker(demo.TimeEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := demo.SaveTime(d.home.Dir, d.machine.Time, 2*demo.TimeEvery); err != nil {
			log.Warn("how far the time of the demo has come is not kept", "error", err)
		}
	}
}

// Play fills the folders, launches sessions, saves presets, and adds the lab server.
func (d *demonstration) Play(ctx context.Context, h *hub.Hub, machine *local.Machine) error {
	err := demo.Fill(ctx, machine.Agent.Agent())
	if err == nil {
		launch := func(ctx context.Context, req session.LaunchRequest) (session.Session, error) {
			req.Spec.Agent = machine.Name
			return h.Launch(ctx, hub.LaunchRequest{Key: req.Key, Spec: req.Spec})
		}
		err = demo.Play(ctx, launch, demo.OnWorkstation(d.options))
	}
	if err == nil {
		err = habits(h)
	}
	if err == nil && d.lab != nil {
		err = d.join(ctx, h)
	}
	return err
}

func (d *demonstration) Continue(ctx context.Context, machine *local.Machine, log *slog.Logger) {
	if err := demo.KeepPlaying(ctx, machine.Agent, d.machine); err != nil {
		log.Error("the story stopped", "error", err)
	}
}

// habits saves presets and pins launches, at the first start only.
func habits(h *hub.Hub) error {
	if slices.ContainsFunc(h.Presets(), func(p hub.Preset) bool { return !p.Builtin }) {
		return nil
	}
	for _, p := range demo.Presets() {
		content := hub.PresetContent{Name: p.Name, Resources: p.Resources, Accelerator: p.Accelerator}
		if _, err := h.AddPreset(content); err != nil {
			return err
		}
	}
	for _, recent := range h.Recents() {
		if name := demo.Pinned[recent.Spec.Name]; name != "" {
			if _, err := h.UpdateRecent(recent.ID, hub.RecentUpdate{Name: &name, Pinned: new(true)}); err != nil {
				return err
			}
		}
	}
	return nil
}

// join adds the lab server with a pairing code, unless the hub knows it already at the same address.
func (d *demonstration) join(ctx context.Context, h *hub.Hub) error {
	address, err := d.lab.address(ctx)
	if err != nil {
		return err
	}
	if known, err := h.Agent(demo.LabAgent); err == nil {
		if known.Address == address {
			return nil
		}
		remove := func() (hub.Operation, error) { return h.RemoveAgent(demo.LabAgent, false) }
		if err := finish(ctx, h, remove, nil); err != nil {
			return err
		}
	}
	add := func() (hub.Operation, error) {
		return h.AddAgent(hub.AgentRequest{Address: address, Name: demo.LabAgent})
	}
	return finish(ctx, h, add, d.lab.code)
}

// finish starts an operation and waits until it ends. It answers prompts with the result of answer.
func finish(ctx context.Context, h *hub.Hub,
	begin func() (hub.Operation, error), answer func(context.Context) (string, error)) error {
	watcher := h.Watch(hub.Cursor{}, false)
	defer watcher.Close()
	one, err := begin()
	if err != nil {
		return err
	}
	answered := ""
	for {
		now, err := h.Operation(one.ID)
		switch {
		case err != nil:
			return err
		case now.State == hub.OperationDone:
			return nil
		case now.Error != nil:
			return now.Error
		case now.State.Ended():
			return session.NewError(session.CodeOperationCancelled, "It was cancelled.", "Start the demo again.")
		case now.Prompt != nil && now.Prompt.ID != answered && answer != nil:
			answered = now.Prompt.ID
			text, err := answer(ctx)
			if err != nil {
				return err
			}
			if _, err := h.AnswerOperation(one.ID, answered, text); err != nil {
				return err
			}
		}
		if _, err := watcher.Next(ctx); err != nil {
			return err
		}
	}
}

func (d *demonstration) Shown(nudge func()) server.Demo {
	d.nudge = nudge
	return d
}

// State returns what the user interface shows.
func (d *demonstration) State() server.DemoState {
	state := server.DemoState{Seed: d.options.Seed, Story: string(d.options.Story), LidClosed: d.lid.Closed(),
		Speed: d.machine.Time.Speed, Real: d.machine.Time.Real, Shown: d.machine.Time.Shown}
	if d.lab != nil {
		state.Lab = demo.LabAgent
	}
	return state
}

func (d *demonstration) SetLid(closed bool) {
	if closed {
		d.lid.Close()
		return
	}
	d.lid.Open()
	d.nudge()
}
