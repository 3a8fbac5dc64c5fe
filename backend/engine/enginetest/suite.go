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
	// OOM is a command that uses more memory than a container of the suite has.
	OOM string
	// PullImage is a reference that can be pulled; Evict removes it from the machine first.
	PullImage string
	Evict     func(t *testing.T, ref string)
	// HomeExists reports whether the home of a container exists.
	HomeExists func(t *testing.T, c engine.Container) bool
	// Serve is a program that serves [ServePort] on every address of its container.
	Serve []string
	// Guest reports whether guests speak the link protocol; otherwise cases that need it are skipped.
	Guest bool
	// DropGuest breaks the connection to a container's guest from the far side. nil: the suite closes only its own end.
	DropGuest func(t *testing.T, id string)
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

// suite is one running case.
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
	all := cases
	if opts.Guest {
		all = slices.Concat(cases, guestCases)
	}
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 6*patience)
			defer cancel()
			c.run(&suite{T: t, Options: opts, ctx: ctx, engine: open(t)})
		})
	}
}

var cases = []engineCase{
	{"info describes the machine", caseInfo},
	{"an image that is there is described and listed", caseImage},
	{"an image that is not there is not-found", caseNoImage},
	{"create twice gives the same container", caseCreateTwice},
	{"create with other labels finds the name taken", caseNameTaken},
	{"create without its image says so", caseCreateNoImage},
	{"create without a name is invalid", caseCreateInvalid},
	{"a created container is not running", caseCreated},
	{"start twice does nothing more", caseStartTwice},
	{"start of what is gone is not-found", caseStartGone},
	{"stop ends a container once", caseStop},
	{"stop ends a busy batch container within its grace", caseStopBusy},
	{"remove takes a running container away", caseRemoveRunning},
	{"stop and remove of what is gone do nothing", caseGone},
	{"list shows this instance and no other", caseList},
	{"inspect of what is gone is not-found", caseInspectGone},
	{"an exit code is kept", caseExitCode},
	{"success is exit code 0", caseExitZero},
	{"watch tells of start and end", caseWatch},
	{"watch ends with its context", caseWatchCancel},
	{"logs come in order", caseLogs},
	{"logs keep only the tail asked for", caseLogsTail},
	{"logs begin with times when asked to", caseLogsTimes},
	{"followed logs end with the container", caseLogsFollow},
	{"followed logs end with their context", caseLogsCancel},
	{"stats are of running containers only", caseStats},
	{"guest of an ended container is guest_exited", caseGuestExited},
	{"guest of a container that is not started waits", caseGuestWaits},
	{"ten containers at once do not disturb each other", caseConcurrent},
	{"every call ends with its context", caseCancelled},
	{"pull of an image nobody has is not-found", casePullUnknown},
	{"a container is committed, running or not, and the image removed", caseCommit},
	{"a commit that is given up leaves no image", caseCommitCancel},
	{"an image that a container uses is not removed", caseRemoveUsed},
	{"an image is given away and put together again", caseTransfer},
	{"giving an image away ends when told to", caseTransferEnds},
	{"a network is made once and removed once", caseNetwork},
	{"a network with other labels finds the name taken", caseNetworkTaken},
	{"a network without a name is invalid", caseNetworkInvalid},
	{"a network stays while a container runs in it", caseNetworkInUse},
	{"create without its network says so", caseCreateNoNetwork},
	{"containers that are kept apart run in one network", caseNetworkApart},
	{"attachment names a way", caseAttachment},
	{"running out of memory is reported", caseOOM},
	{"pull tells of progress that never goes back", casePull},
	{"pull stops with its context", casePullCancel},
	{"the home goes with the container", caseHome},
}

var guestCases = []engineCase{
	{"the guest greets and becomes ready", caseGuestHello},
	{"a lost guest connection is made again", caseGuestAgain},
	{"asking again replaces the guest connection", caseGuestReplaced},
	{"a guest connection breaks when the container ends", caseGuestBreaks},
	{"a guest connection breaks when the container is removed", caseGuestRemoved},
	{"directories are mounted to be written, to be read, and in part", caseMounts},
	{"a server is reached in its own container alone", caseServed},
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

// ended waits for a container to end and returns its last state.
func (s *suite) ended(id string) engine.State {
	s.Helper()
	var state engine.State
	s.await("the container to end", func() bool {
		state = s.inspect(id)
		return !state.Running && !state.Created
	})
	return state
}

// await polls until done.
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

// ok ends the case on an error.
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
