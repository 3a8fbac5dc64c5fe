package backend

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"slipway/backend/demo"
	"slipway/backend/hub"
	"slipway/backend/place"
	"slipway/backend/server"
	"slipway/backend/session"
	"slipway/tunnel"
)

// DemoConfig says which demonstration to serve.
type DemoConfig struct {
	Options demo.Options
	// Keep is the folder that it is kept in; empty: it is thrown away at the end.
	Keep   string
	Port   int // 0: the one used last, else 7431, else any
	Assets fs.FS
	// Notebook is the page of notebooks in sessions; nil: they have none.
	Notebook fs.FS
	// Program starts this program, for the lab server; nil: the running one.
	Program []string
	// Log gets what happens; nil: the log file in the folder.
	Log *slog.Logger
	// Ready is called once, when it answers, with its folder; nil: nothing.
	Ready func(Ready, string)
}

// demoPort is the usual port of a demonstration. It is not that of what is real.
const demoPort = 7431

// ServeDemo serves the whole control plane over simulated machines until ctx ends
// or somebody asks it to shut down: a workstation in this process and, behind the
// tunnel, a lab server in a second one. It fails as [Serve] does, and with
// demo_start_conflict where the folder has anything else in it.
func ServeDemo(ctx context.Context, config DemoConfig) (err error) {
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
	goes, err := demo.GoesOn(dir, options)
	if err != nil {
		return err
	}
	d := &demonstration{time: goes, home: place.Home{Dir: dir}, options: options, program: config.Program}
	served := Config{Home: d.home, Engine: EngineSim, Port: config.Port, Assets: config.Assets,
		Notebook: config.Notebook, Log: config.Log, demo: d}
	if config.Ready != nil {
		served.Ready = func(r Ready) { config.Ready(r, dir) }
	}
	return Serve(ctx, served)
}

// notADemo fails where a folder belongs to a demonstration: what is real never
// mixes with one.
func notADemo(home place.Home) error {
	_, marked, err := demo.Marked(home.Dir)
	if err == nil && marked {
		err = &session.Error{Code: "server_start_conflict", Message: fmt.Sprintf("The folder %s is one of a demo.",
			home.Dir), Hint: "Go on with the demo: slipway demo --keep " + home.Dir +
			". SLIPWAY_HOME chooses another folder."}
	}
	return err
}

// demonstration is a demo that is served. A nil one means that what is served is
// real, and its methods say how that is.
type demonstration struct {
	home    place.Home
	options demo.Options
	time    demo.Time
	program []string
	lid     demo.Lid
	lab     *lab // nil: the story has none
}

// begin starts what stands beside the control plane. It needs the lock of the
// folder.
func (d *demonstration) begin(ctx context.Context, log *slog.Logger) (end func() error, err error) {
	none := func() error { return nil }
	if d == nil {
		return none, nil
	}
	if err := demo.Sweep(); err != nil {
		log.Warn("what earlier demos left cannot be removed", "error", err)
	}
	keeping, stop := context.WithCancel(ctx)
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		d.keepTime(keeping, log)
	}()
	endTime := func() error {
		stop()
		<-kept
		return demo.SaveTime(d.home.Dir, d.time, 0)
	}
	if !d.options.Story.HasLab() {
		return endTime, nil
	}
	if d.lab, err = startLab(ctx, demo.LabHome(d.home), d.options, d.time, d.program); err != nil {
		return none, errors.Join(err, endTime())
	}
	return func() error { return errors.Join(d.lab.end(), endTime()) }, nil
}

// keepTime writes down how far the time has come until ctx ends.
func (d *demonstration) keepTime(ctx context.Context, log *slog.Logger) {
	ticker := time.NewTicker(demo.TimeEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := demo.SaveTime(d.home.Dir, d.time, 2*demo.TimeEvery); err != nil {
			log.Warn("how far the time of the demo has come is not kept", "error", err)
		}
	}
}

// workstation is what this machine pretends to be.
func (d *demonstration) workstation() *demo.Machine {
	if d == nil {
		return nil
	}
	machine := demo.Workstation(d.options)
	machine.Time = d.time
	return &machine
}

func (d *demonstration) through() func(tunnel.Dialer) tunnel.Dialer {
	if d == nil {
		return nil
	}
	return d.lid.Through
}

func (d *demonstration) usualPort() int {
	if d == nil {
		return usualPort
	}
	return demoPort
}

// tellTime says by what clock times are to be read.
func (d *demonstration) tellTime(serving *place.Serving) {
	if d != nil {
		serving.Speed, serving.Real, serving.Shown = float64(d.time.Speed), d.time.Real, d.time.Shown
	}
}

// personSSH is the folder of the person's own configuration for ssh, of which a
// demonstration has one by itself.
func (d *demonstration) personSSH() string {
	if d == nil {
		return personSSH(os.Getenv)
	}
	return d.home.Join("person-ssh")
}

// play tells the story on this machine: folders, then launches as a person makes
// them, and what the person has made of the launcher.
func (d *demonstration) play(ctx context.Context, h *hub.Hub, on *Local) error {
	if d == nil {
		return nil
	}
	if err := demo.Fill(ctx, on.Agent, demo.Folders(d.options)); err != nil {
		return err
	}
	if err := demo.Play(ctx, launcher{h, on.Name}, demo.OnWorkstation(d.options)); err != nil {
		return err
	}
	return habits(h)
}

// keepPlaying goes on with the story on this machine until ctx ends.
func (d *demonstration) keepPlaying(ctx context.Context, on *Local, log *slog.Logger) {
	if d == nil {
		return
	}
	if err := demo.KeepPlaying(ctx, on.Agent, *d.workstation()); err != nil {
		log.Error("the story does not go on", "error", err)
	}
}

// launcher launches on one agent by the hub, as people do.
type launcher struct {
	hub   *hub.Hub
	agent string
}

func (l launcher) Launch(ctx context.Context, req session.LaunchRequest) (session.Session, error) {
	req.Spec.Agent = l.agent
	return l.hub.Launch(ctx, hub.LaunchRequest{Key: req.Key, Spec: req.Spec})
}

// habits are the presets that the person has saved and the launches that were
// pinned. Those of an earlier start are as the person has left them.
func habits(h *hub.Hub) error {
	own := func(p hub.Preset) bool { return !p.Builtin }
	if slices.ContainsFunc(h.Presets(), own) {
		return nil
	}
	for _, p := range demo.Presets() {
		if _, err := h.AddPreset(hub.Preset{Name: p.Name, Resources: p.Resources,
			Accelerator: p.Accelerator}); err != nil {
			return err
		}
	}
	pinned := true
	for _, recent := range h.Recents() {
		name := demo.Pinned[recent.Spec.Name]
		if name == "" {
			continue
		}
		if _, err := h.UpdateRecent(recent.ID, hub.RecentUpdate{Name: &name, Pinned: &pinned}); err != nil {
			return err
		}
	}
	return nil
}

// join makes the lab server one of the hub's agents, by a pairing code as people
// do it. One that is known from an earlier start and still has its address is
// reached by itself.
func (d *demonstration) join(ctx context.Context, h *hub.Hub) error {
	if d == nil || d.lab == nil {
		return nil
	}
	address, err := d.lab.address(ctx)
	if err != nil {
		return err
	}
	if known, err := h.Agent(demo.LabAgent); err == nil {
		if known.Address == address {
			return nil
		}
		if err := finish(ctx, h, func() (hub.Operation, error) { return h.RemoveAgent(demo.LabAgent, false) },
			nil); err != nil {
			return err
		}
	}
	add := func() (hub.Operation, error) {
		return h.AddAgent(hub.AgentRequest{Address: address, Name: demo.LabAgent})
	}
	return finish(ctx, h, add, d.lab.code)
}

// finish begins an operation and waits for its end. What it asks for is answered
// by answer.
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
		case now.State.Ended():
			return session.AsError(now.Err, "demo_start_failed")
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

// shown is what the user interface shows of a demonstration.
func (d *demonstration) shown(reach *reacher) server.Demo {
	if d == nil {
		return nil
	}
	return &shownDemo{demonstration: d, reach: reach}
}

type shownDemo struct {
	*demonstration
	reach *reacher
}

func (d *shownDemo) State() server.DemoState {
	state := server.DemoState{Seed: d.options.Seed, Story: string(d.options.Story), LidClosed: d.lid.Closed(),
		Speed: d.time.Speed, Real: d.time.Real, Shown: d.time.Shown}
	if d.lab != nil {
		state.Lab = demo.LabAgent
	}
	return state
}

func (d *shownDemo) SetLid(closed bool) {
	if closed {
		d.lid.Close()
		return
	}
	d.lid.Open()
	for _, one := range d.reach.all() {
		one.line.Nudge()
	}
}
