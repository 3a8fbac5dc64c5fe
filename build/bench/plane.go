package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/gorilla/websocket"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/client"
	"slipway/backend/hub"
	"slipway/backend/place"
	"slipway/backend/session"
	"slipway/build/bench/measure"
	"slipway/gpu"
)

type plane struct {
	*client.Client
	ctx      context.Context //nolint:containedctx // of the whole run
	binary   string
	home     string
	env      []string
	command  *exec.Cmd
	ended    chan error
	live     map[session.ID]bool // sessions to end
	services map[string]bool     // to remove
}

// dockerHost is the address of the daemon that is measured; empty: none is named.
func dockerHost() string { return cmp.Or(os.Getenv("SLIPWAY_TEST_DOCKER"), os.Getenv("DOCKER_HOST")) }

// startPlane starts a control plane with Docker. more are environment variables that it gets besides.
func startPlane(ctx context.Context, binary, host string, more ...string) (*plane, error) {
	home, err := os.MkdirTemp("", "slipway-bench-")
	if err != nil {
		return nil, err
	}
	p := &plane{
		binary: binary, home: home,
		env:   append(append(os.Environ(), "DOCKER_HOST="+host, "SLIPWAY_HOME="+home), more...),
		ended: make(chan error, 1), live: map[session.ID]bool{}, services: map[string]bool{}, ctx: ctx,
	}
	p.command = exec.CommandContext(ctx, binary, "serve", "--engine", "docker")
	p.command.Env = p.env
	p.command.Stderr = os.Stderr
	p.command.Cancel = func() error { return p.command.Process.Signal(syscall.SIGTERM) }
	if err := p.command.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("build it first with make build: %w", err), os.RemoveAll(home))
	}
	go func() { p.ended <- p.command.Wait() }()
	if err := p.await(ctx); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

// await waits for the address, the token and an agent that is connected to Docker.
func (p *plane) await(ctx context.Context) error {
	err := errors.New("serve does not answer")
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline) && ctx.Err() == nil; {
		var connected error
		if p.Client, connected = client.Connect(ctx, place.Home{Dir: p.home}); connected == nil {
			p.HTTP = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}, Timeout: time.Minute}
			machines, asked := route.Machines.Ask(ctx, p)
			if asked == nil && len(machines) == 1 && machines[0].Engine == "docker" {
				return nil
			}
			err = errors.Join(fmt.Errorf("the machine is not run by Docker: %+v", machines), asked)
		}
		select {
		case err := <-p.ended:
			p.ended <- err
			return fmt.Errorf("serve ended at once: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return errors.Join(err, ctx.Err())
}

func (p *plane) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var errs []error
	for name := range p.services {
		errs = append(errs, p.removeService(ctx, name))
	}
	for id := range p.live {
		errs = append(errs, p.end(ctx, id))
	}
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		errs = append(errs, err)
	}
	select {
	case err := <-p.ended:
		errs = append(errs, err)
	case <-time.After(15 * time.Second):
		errs = append(errs, errors.New("serve did not end on SIGTERM"), p.command.Process.Kill())
	}
	return errors.Join(append(errs, os.RemoveAll(p.home))...)
}

// cli is the program with a command, as a person runs it.
func (p *plane) cli(args ...string) *exec.Cmd {
	command := exec.CommandContext(p.ctx, p.binary, args...)
	command.Env = p.env
	return command
}

// slipway runs a command to its end.
func (p *plane) slipway(args ...string) {
	if said, err := p.cli(args...).CombinedOutput(); err != nil {
		measure.Fail("the program with %q: %w\n%s", args, err, bytes.TrimSpace(said))
	}
}

// dockerSays returns the output of a docker command.
func (p *plane) dockerSays(args ...string) string {
	command := exec.CommandContext(p.ctx, "docker", args...)
	command.Env = p.env
	return strings.TrimSpace(string(measure.Get(command.Output())))
}

// launch launches an interactive session with the limits of all measurements.
func (p *plane) launch(image string) api.Session { return p.launchOn("", image) }

// launchOn is launch on one machine, empty: any.
func (p *plane) launchOn(agent, image string) api.Session {
	spec := session.Spec{Image: image, Schedule: session.Schedule{Agent: agent},
		Resources: session.Resources{CPU: 1, Memory: 512 * gpu.MiB, Shm: 64 * gpu.MiB}}
	s := measure.Get(route.Launch.Body(hub.LaunchRequest{Spec: spec}).Ask(p.ctx, p))
	p.live[s.ID] = true
	return s
}

func (b *bench) running() api.Session {
	events := b.follow()
	defer events.Close()
	return await(events, b.launch(b.o.image).ID)
}

// end ends a session by force and waits for it.
func (p *plane) end(ctx context.Context, id session.ID) error {
	delete(p.live, id)
	if _, err := route.Terminate.At(string(id)).Body(api.TerminateRequest{Forced: true}).Ask(ctx, p); err != nil {
		return err
	}
	for ctx.Err() == nil {
		s, err := route.Session.At(string(id)).Ask(ctx, p)
		if err != nil || s.TerminatedAt != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return ctx.Err()
}

// removeService removes a service and ends its sessions by force.
func (p *plane) removeService(ctx context.Context, name string) error {
	delete(p.services, name)
	all, err := route.Services.Ask(ctx, p)
	if err != nil {
		return err
	}
	if _, err := route.ServiceRemove.At(name).Ask(ctx, p); err != nil {
		return err
	}
	for _, s := range all {
		for _, r := range s.Live {
			if s.Name == name {
				err = errors.Join(err, p.end(ctx, r.Session))
			}
		}
	}
	return err
}

// follow opens the stream of changes and reads its first snapshot.
func (p *plane) follow() *websocket.Conn {
	events := measure.Get(p.Dial(p.ctx, route.Events.Target()))
	next(events)
	return events
}

func next(events *websocket.Conn) (event api.Event) {
	measure.OK(events.SetReadDeadline(time.Now().Add(time.Minute)))
	measure.OK(events.ReadJSON(&event))
	return event
}

func await(events *websocket.Conn, id session.ID) api.Session {
	for {
		s := next(events).Session
		switch {
		case s == nil || s.ID != id:
		case s.Status == session.Running:
			return *s
		case s.TerminatedAt != nil:
			measure.Fail("the session ended as %s (%s), %+v", s.Status, s.Reason, s.Error)
		}
	}
}
