//go:build linux

package backend

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"slipway/backend/agentrpc"
	"slipway/backend/provision"
	"slipway/backend/session"
	"slipway/tunnel"
)

// onStep is a report that does something at one moment of the work.
type onStep struct {
	upload func() // once, in the middle of an upload; nil: nothing
	start  func() // once, when the new program is to take over; nil: nothing

	once [2]sync.Once
	mu   sync.Mutex // guards steps
	last map[string]session.Check
}

func (r *onStep) Tell(step session.Check) {
	r.mu.Lock()
	if r.last == nil {
		r.last = map[string]session.Check{}
	}
	r.last[step.ID] = step
	r.mu.Unlock()
	if r.start != nil && step.ID == "start" && step.Result == "running" {
		r.once[0].Do(r.start)
	}
}

func (r *onStep) Progress(done, total int64) {
	if r.upload != nil && done > total/2 {
		r.once[1].Do(r.upload)
	}
}

func (r *onStep) state(name string) session.CheckResult {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last[name].Result
}

// TestFarMachineIsSetUpOverABadNetwork loses the network at the worst moments of
// an installation and of an upgrade: neither leaves anything half done.
func TestFarMachineIsSetUpOverABadNetwork(t *testing.T) {
	w := newFarWorld(t)
	programs := map[string]string{"1.0.1": w.build("1.0.1"), "1.0.2": w.build("1.0.2")}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	remote := w.remote(provision.Bridge(w.home))
	install := func(ctx context.Context, version string, r *onStep) (provision.Installed, error) {
		return provision.Install(ctx, remote, provision.Options{Dir: w.home, DockerHost: w.dockerHost, Version: version,
			Programs: oneProgram(programs[version]), Report: r})
	}
	t.Cleanup(func() {
		if err := provision.Remove(context.Background(), remote,
			provision.Options{Dir: w.home, DockerHost: w.dockerHost}); err != nil {
			t.Error(err)
		}
		eventually(context.Background(), t, "no process is left", func() bool { return len(w.processes()) == 0 })
	})

	given, giveUp := context.WithCancel(ctx)
	r := &onStep{upload: func() {
		w.cut(true)
		time.AfterFunc(time.Second, giveUp) // nothing moves, and the person has waited enough
	}}
	if _, err := install(given, "1.0.1", r); err == nil || r.state("upload") != session.CheckFailed {
		t.Fatalf("an upload that was cut is %s: %v", r.state("upload"), err)
	}
	w.cut(false)
	if there, _ := filepath.Glob(filepath.Join(w.home, "bin", "slipway*")); len(there) > 0 {
		t.Errorf("half of it is there: %v", there)
	}
	if done, err := install(ctx, "1.0.1", &onStep{}); err != nil || !done.Changed || done.Status.Version != "1.0.1" {
		t.Fatalf("tried again: %+v, %v", done, err)
	}

	far := w.answers(ctx, "1.0.1")
	given, giveUp = context.WithCancel(ctx)
	defer giveUp()
	watching, installed := context.WithCancel(ctx)
	var cutter sync.WaitGroup
	r = &onStep{start: func() {
		cutter.Go(func() {
			for !w.runs("agent\x00switch\x00") {
				if watching.Err() != nil {
					return
				}
				time.Sleep(5 * time.Millisecond)
			}
			w.cut(true)
			time.AfterFunc(500*time.Millisecond, giveUp)
		})
	}}
	if _, err := install(given, "1.0.2", r); err == nil {
		t.Log("it was done before the cut came")
	}
	installed()
	cutter.Wait() // it may be about to take the cable out
	w.cut(false)
	eventually(ctx, t, "the new version took over by itself", func() bool {
		machine, err := far.Machine(ctx)
		return err == nil && machine.Version == "1.0.2"
	})
	done, err := install(ctx, "1.0.2", &onStep{})
	if err != nil || done.Changed || done.Status.Version != "1.0.2" {
		t.Errorf("done again: %+v, %v", done, err)
	}
}

// answers is the server's agent over a line of the test's own.
func (w *farWorld) answers(ctx context.Context, version string) session.Agent {
	w.t.Helper()
	line := tunnel.NewLine(tunnel.LineConfig{Dialer: w.remote(provision.Bridge(w.home)),
		Tunnel: tunnel.Config{Heartbeat: time.Second, Silence: 5 * time.Second}})
	ended := make(chan error, 1)
	running, hangUp := context.WithCancel(context.Background())
	go func() { ended <- line.Run(running) }()
	w.t.Cleanup(func() { hangUp(); <-ended })
	far := agentrpc.NewClient(agentrpc.ClientConfig{Name: func() string { return "lab" }, Opener: line})
	eventually(ctx, w.t, "the agent answers", func() bool {
		machine, err := far.Machine(ctx)
		return err == nil && machine.Version == version
	})
	return far.Agent()
}
