// Package enginetest has [Run], the suite for implementations of [engine.Engine], and what tests need of a real daemon.
package enginetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/backend/engine"
	"slipway/backend/session"
	"slipway/gpu"
)

// Options describes an engine under test.
type Options struct {
	Instance string // instance label that the engine lists
	Image    string // an image that is there, with a POSIX shell
	OOM      string // a command that uses more memory than a container has
	// PullImage is a reference that can be pulled; Evict removes it from the machine first.
	PullImage  string
	Evict      func(t *testing.T, ref string)
	HomeExists func(t *testing.T, c engine.Container) bool // whether the home of a container exists
	Serve      []string                                    // serves [ServePort] on every address of its container
	Guest      bool                                        // guests speak the link protocol, which cases need
	DropGuest  func(t *testing.T, id string)               // breaks a guest's connection from its side; nil: not tested
	AtOnce     int                                         // containers that run at the same time; 0: 10
	Without    map[string]string                           // cases that the engine cannot pass, and why not
}

// ServePort is where [Options.Serve] serves.
const ServePort = 8777

const (
	noImage  = "slipway-test/none:1" // neither an engine nor a registry has it
	memory   = 128 * gpu.MiB         // of a container
	patience = 2 * time.Minute       // how long one thing may take to happen

	commandExit  = "exit 7"
	commandPrint = `for i in 1 2 3 4 5 6 7 8 9 10; do echo "line $i"; done`
	commandDrip  = `for i in 1 2 3; do echo "drip $i"; sleep 0.3; done`
	commandSleep = "sleep 600"
)

type suite struct {
	*testing.T
	Options
	ctx    context.Context //nolint:containedctx // of the one case
	engine engine.Engine
}

type engineCase struct {
	name string
	run  func(*suite)
}

// Run checks an engine. open makes a new engine for each case and closes it; cases remove what they create.
func Run(t *testing.T, open func(t *testing.T) engine.Engine, opts Options) {
	all := slices.Concat(containerCases, streamCases, imageCases, networkCases)
	if opts.Guest {
		all = append(all, guestCases...)
	}
	if opts.AtOnce == 0 {
		opts.AtOnce = 10
	}
	for name := range opts.Without {
		if !slices.ContainsFunc(all, func(c engineCase) bool { return c.name == name }) {
			t.Errorf("there is no case %q to leave out", name)
		}
	}
	for _, c := range all {
		if why, out := opts.Without[c.name]; out {
			t.Logf("left out: %s, because %s", c.name, why)
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 6*patience)
			defer cancel()
			c.run(&suite{T: t, Options: opts, ctx: ctx, engine: open(t)})
		})
	}
}

// container describes a new container with a unique name.
func (s *suite) container(command string) engine.Container {
	id := session.ID(strings.ToLower(rand.Text()[:12]))
	name := fmt.Sprintf("slipway-%s-%s-1", id, session.MainKernel)
	return engine.Container{
		Name: name, Hostname: session.MainKernel, Image: s.Image,
		Labels: map[string]string{
			engine.LabelSession: string(id), engine.LabelKernel: session.MainKernel, engine.LabelAttempt: "1",
			engine.LabelOwner: "tester", engine.LabelAgent: "local", engine.LabelInstance: s.Instance,
			engine.LabelGrants: `{"cpus":[0]}`, engine.LabelName: string(id),
		},
		Guest: engine.GuestConfig{
			Session: id, Kernel: session.MainKernel, UID: os.Getuid(), GID: os.Getgid(), Command: command,
			Env: []session.EnvVar{{Name: "SLIPWAY_SESSION", Value: string(id)}},
		},
		CPUs: []int{0}, Memory: memory, Shm: min(64*gpu.MiB, memory/2),
	}
}

// create creates a container and removes it at the end of the case.
func (s *suite) create(c engine.Container) string {
	s.Helper()
	id, err := s.engine.Create(s.ctx, c)
	if err != nil {
		s.Fatalf("create: %v", err)
	}
	s.atEnd("what the case created", func(ctx context.Context) error { return s.engine.Remove(ctx, id) })
	return id
}

// atEnd removes something at the end of the case if it still exists.
func (s *suite) atEnd(what string, remove func(context.Context) error) {
	s.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := remove(ctx); err != nil && session.CodeOf(err) != session.CodeNoImage {
			s.Errorf("removing %s: %v", what, err)
		}
	})
}

func (s *suite) run(c engine.Container) string {
	s.Helper()
	id := s.create(c)
	s.ok(s.engine.Start(s.ctx, id))
	return id
}

func (s *suite) start(command string) string {
	s.Helper()
	return s.run(s.container(command))
}

func (s *suite) inspect(id string) engine.State {
	s.Helper()
	state, err := s.engine.Inspect(s.ctx, id)
	if err != nil {
		s.Fatalf("inspect: %v", err)
	}
	return state
}

func (s *suite) ended(id string) engine.State {
	s.Helper()
	var state engine.State
	s.await("the container to end", func() bool {
		state = s.inspect(id)
		return !state.Running && !state.Created
	})
	return state
}

func (s *suite) await(what string, done func() bool) {
	s.Helper()
	deadline := time.Now().Add(patience)
	for !done() {
		if time.Now().After(deadline) {
			s.Fatalf("waited %s in vain for %s", patience, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// ends waits for something that its context ends.
func (s *suite) ends(what string, done <-chan error) (err error) {
	s.Helper()
	select {
	case err = <-done:
	case <-time.After(patience):
		s.Errorf("%s goes on without its context", what)
	}
	return err
}

func (s *suite) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// failure is the error of a call whose result does not matter.
func failure[T any](_ T, err error) error { return err }

func (s *suite) wantCode(err error, code session.Code) {
	s.Helper()
	if got := session.CodeOf(err); got != code {
		s.Errorf("got code %q (%v), want %s", got, err, code)
	}
}

func (s *suite) wantCancelled(what string, err error) {
	s.Helper()
	if !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		s.Errorf("%s under an ended context: got %v, want the context's error in its chain", what, err)
	}
}
