// Package agenttest has the suite that every [session.Agent] must pass, in this process and through broken tunnels.
package agenttest

import (
	"context"
	"crypto/rand"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// Options describes the agent under test.
type Options struct {
	Image  string    // that is present and has a shell
	Memory gpu.Bytes // of sessions; 0: 256 MiB
	// Server is a command of the session that serves HTTP on [ServerPort] of its loopback.
	Server   string
	Patience time.Duration // how long one thing may take; 0: 2 min
	// Mortal says that streams may be lost at any moment. Calls are then retried, but must take effect once.
	Mortal bool
	// Records says that the agent is a fake without containers, which answers only what is in its records. It must pass
	// the cases about those.
	Records bool
	Without map[string]string // cases that the agent cannot pass, and why not
}

// ServerPort is the port that [Options.Server] serves.
const ServerPort = 8123

// Run checks an agent. open opens one for all cases and sees to closing it; the cases end what they launch.
func Run(t *testing.T, open func(t *testing.T) session.Agent, opts Options) {
	if opts.Patience == 0 {
		opts.Patience = 2 * time.Minute
	}
	if opts.Memory == 0 {
		opts.Memory = 256 * gpu.MiB
	}
	if opts.Mortal {
		opts.Patience *= 2
	}
	for name := range opts.Without {
		if !slices.ContainsFunc(cases, func(c agentCase) bool { return c.name == name }) {
			t.Errorf("there is no case %q to leave out", name)
		}
	}
	shared := &world{Options: opts, agent: open(t), launched: map[session.ID]bool{}}
	t.Cleanup(func() { shared.end(t) })
	for _, c := range cases {
		if opts.Records && !c.records {
			continue
		}
		if why, out := opts.Without[c.name]; out {
			t.Logf("left out: %s, because %s", c.name, why)
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 4*shared.Patience)
			defer cancel()
			c.run(&suite{T: t, world: shared, ctx: ctx})
		})
	}
}

type agentCase struct {
	name    string
	run     func(*suite)
	records bool // it needs no container
}

var cases = []agentCase{
	{"the machine describes itself", caseMachine, false},
	{"a preview says what is wrong and what would happen", casePreview, true},
	{"what it names and there is not is told at once", caseGone, false},
	{"a session is launched, runs and ends", caseLife, false},
	{"a setup runs first, and why it failed is said", caseSetup, false},
	{"a system session serves a folder", caseSystem, false},
	{"a key launches once, however often it is used at a time", caseKey, true},
	{"a launch that is refused says why, field by field", caseRefused, true},
	{"what is not there is not-found", caseUnknown, true},
	{"a list is newest first and can be cut", caseList, true},
	{"a name is changed under its rule", caseRename, true},
	{"tags are kept, also of what has ended", caseTags, true},
	{"ending what has ended does no harm", caseTerminateTwice, true},
	{"the queue's order is changed while a session waits", casePriority, false},
	{"a session that waits is handed over once", caseHandover, true},
	{"keeping and simulating touch running sessions only", caseKeep, false},
	{"watching begins with everything and misses nothing", caseWatch, true},
	{"watching resumes after any event", caseWatchResumes, true},
	{"watching ends with its function and with its context", caseWatchEnds, true},
	{"a watcher that is slow delays only itself", caseWatchSlow, true},
	{"logs are read whole, from the end and with times", caseLogs, false},
	{"logs are followed to the end, each line once", caseLogsFollow, false},
	{"logs that nobody reads on end when they are closed", caseLogsClose, false},
	{"what was used is told", caseUsage, false},
	{"a terminal is opened once, listed and closed", caseTerminalList, false},
	{"a terminal's output comes once, whatever happens to its viewers", caseTerminalOutput, false},
	{"a terminal's input comes once, whatever happens to its viewers", caseTerminalInput, false},
	{"a viewer that is stalled stalls only itself", caseTerminalStalled, false},
	{"a command gives its output, its code and its failure apart", caseExec, false},
	{"a command takes its input whole", caseExecInput, false},
	{"a command ends when its stream is closed", caseExecClose, false},
	{"apps are listed, and those that are not there say so", caseApps, false},
	{"a port is reached when something listens", casePort, false},
	{"a kernel answers ssh, by one key", caseSSH, false},
	{"a service is deployed, answers to its tokens and is removed", caseService, false},
	{"a file is taken in pieces and appears whole", caseUpload, false},
	{"a file is read in parts", caseRead, false},
	{"directories are listed in parts and changed", caseFiles, false},
	{"links and attributes are kept as they are given", caseAttributes, false},
	{"a folder is mounted, outlives its session and goes through the trash", caseFolders, false},
	{"a home is kept and is the home of a later session", caseKeptHome, false},
	{"images are listed with those who use them", caseImages, false},
	{"a session is made an image, which is used and removed", caseCommit, false},
	{"an end makes an image and keeps the newest of its name", caseCommitOnEnd, false},
	{"a session is parked with its home and continued", caseParked, false},
	{"a project in a folder is read, and built once", caseProject, false},
	{"pulling tells how it ends", casePullImage, false},
	{"an image is sent and put together", caseTransfer, false},
	{"devices, their history and accounts are told", caseDevices, false},
	{"the machine is probed and looked into", caseHost, false},
	{"a call ends with its context", caseCancelled, true},
	{"a hundred calls at a time do not disturb each other", caseCrowd, true},
}

type world struct {
	Options
	agent session.Agent

	mu       sync.Mutex // guards everything below
	launched map[session.ID]bool
	standing session.ID // a running session that several cases share; empty: none yet
}

type suite struct {
	*testing.T
	*world
	ctx context.Context //nolint:containedctx // of the one case
}

// lost reports whether an agent was not reached, which may happen to a mortal one at any moment.
func lost(err error) bool {
	code := session.CodeOf(err)
	return strings.HasPrefix(string(code), "agent_") && code.Detail() == session.DetailUnavailable
}

// try makes a call, again if it is lost and the agent is mortal.
func try[T any](s *suite, call func(context.Context) (T, error)) (T, error) {
	for {
		value, err := call(s.ctx)
		if err == nil || !s.Mortal || !lost(err) || s.ctx.Err() != nil {
			return value, err
		}
		s.pause()
	}
}

// must is try for a call that must not fail.
func must[T any](s *suite, call func(context.Context) (T, error)) T {
	s.Helper()
	value, err := try(s, call)
	s.ok(err)
	return value
}

// with and with2 bind the arguments of a call, for try and must.
func with[A, R any](call func(context.Context, A) (R, error), a A) func(context.Context) (R, error) {
	return func(ctx context.Context) (R, error) { return call(ctx, a) }
}

func with2[A, B, R any](call func(context.Context, A, B) (R, error), a A, b B) func(context.Context) (R, error) {
	return func(ctx context.Context) (R, error) { return call(ctx, a, b) }
}

// failure drops the result of a call.
func failure[R any](call func(context.Context) (R, error)) func(context.Context) error {
	return func(ctx context.Context) error { _, err := call(ctx); return err }
}

// void is try for a call without a result.
func (s *suite) void(call func(context.Context) error) error {
	_, err := try(s, func(ctx context.Context) (struct{}, error) { return struct{}{}, call(ctx) })
	return err
}

func (s *suite) do(call func(context.Context) error) {
	s.Helper()
	s.ok(s.void(call))
}

// ok ends the case on an error.
func (s *suite) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// receive waits for a value, or fails the case.
func receive[T any](s *suite, from <-chan T, otherwise string) (value T) {
	s.Helper()
	select {
	case value = <-from:
	case <-time.After(s.Patience):
		s.Fatal(otherwise)
	}
	return value
}

// pause waits a moment before another attempt.
func (s *suite) pause() {
	timer := time.NewTimer(20 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.ctx.Done():
	}
}

// spec completes a spec for a small session.
func (w *world) spec(spec session.Spec) session.Spec {
	if spec.Image == "" {
		spec.Image = w.Image
	}
	if spec.Resources.Memory == 0 {
		spec.Resources.Memory = w.Memory
	}
	return spec
}

func (s *suite) launch(spec session.Spec) session.Session {
	s.Helper()
	return s.launchAs(session.LaunchRequest{Spec: s.spec(spec)})
}

func (s *suite) launchAs(req session.LaunchRequest) session.Session {
	s.Helper()
	req.Key = rand.Text()
	launched := must(s, with(s.agent.Launch, req))
	s.note(launched.ID)
	return launched
}

func (w *world) note(id session.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.launched[id] = true
}

// await waits until a session meets a condition.
func (s *suite) await(id session.ID, what string, done func(session.Session) bool) session.Session {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, s.Patience)
	defer cancel()
	for {
		found := must(s, with(s.agent.Get, id))
		if done(found) {
			return found
		}
		if ctx.Err() != nil {
			s.Fatalf("session %s did not become %s; it is %+v, %+v", id, what, found, found.Error)
		}
		s.pause()
	}
}

func (s *suite) awaitStatus(id session.ID, status session.Status) session.Session {
	s.Helper()
	return s.await(id, string(status), func(x session.Session) bool {
		if x.Status.Terminal() && x.Status != status {
			s.Fatalf("session %s is %s instead of %s: %+v", id, x.Status, status, x.Error)
		}
		return x.Status == status
	})
}

func (s *suite) awaitEnd(id session.ID) session.Session {
	s.Helper()
	return s.await(id, "ended", func(x session.Session) bool { return x.Status.Terminal() })
}

// running returns a running session that the cases share.
func (s *suite) running() session.ID {
	s.Helper()
	if s.standing == "" {
		launched := s.launch(session.Spec{})
		s.awaitStatus(launched.ID, session.Running)
		s.standing = launched.ID
	}
	return s.standing
}

func (s *suite) terminate(id session.ID, forced bool) session.Session {
	s.Helper()
	return must(s, with2(s.agent.Terminate, id, forced))
}

func (w *world) end(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*w.Patience)
	defer cancel()
	s := &suite{T: t, world: w, ctx: ctx}
	for id := range w.launched {
		if _, err := try(s, with2(w.agent.Terminate, id, true)); err != nil {
			t.Errorf("ending %s: %v", id, err)
		}
	}
	for id := range w.launched {
		for ctx.Err() == nil {
			found, err := try(s, with(w.agent.Get, id))
			if err != nil || found.Status.Terminal() {
				break
			}
			s.pause()
		}
	}
	if ctx.Err() != nil {
		t.Error("not everything ended")
	}
}

// want checks the code of a failure, or the detail in which it ends, and that it has a message.
func want[C ~string](s *suite, what string, err error, code C) {
	s.Helper()
	var e *session.Error
	switch {
	case !errors.As(err, &e) || string(e.Code) != string(code) && e.Code.Detail() != string(code):
		s.Errorf("%s: %v, want %s", what, err, code)
	case e.Message == "":
		s.Errorf("%s: %s says nothing", what, e.Code)
	}
}

// refused checks that a call fails, as want does, and returns the fields that its error names.
func refused[C ~string, T any](s *suite, what string, code C,
	call func(context.Context) (T, error)) []session.FieldError {
	s.Helper()
	_, err := try(s, call)
	want(s, what, err, code)
	if e, ok := errors.AsType[*session.Error](err); ok {
		return e.Fields
	}
	return nil
}

// Methods returns the methods of an agent, as the interfaces of its parts declare them, except those of its admins.
func Methods() []reflect.Method { return methodsOf(reflect.TypeFor[session.Agent]()) }

func methodsOf(parts reflect.Type) (all []reflect.Method) {
	for part := range parts.Fields() {
		switch {
		case part.Anonymous && part.Type.Kind() == reflect.Struct:
			all = append(all, methodsOf(part.Type)...)
		case part.Anonymous:
			all = slices.AppendSeq(all, part.Type.Methods())
		}
	}
	return all
}
