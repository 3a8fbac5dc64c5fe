//go:build linux

package slurm_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway/backend/engine"
	engineslurm "slipway/backend/engine/slurm"
	"slipway/backend/guest/node"
	"slipway/backend/pace"
	"slipway/backend/session"
	"slipway/backend/slurm"
	"slipway/gpu"
)

// standIn is a program for nodes that writes the files of a run as the real one does, and runs the startup command of
// the guest without a container.
const standIn = `#!/bin/sh
[ "$1" = node ] || exit 64
cd "$2" || exit 1
started=$(date -u +%Y-%m-%dT%H:%M:%SZ)
put() { cat >"main1.$1.new" && mv "main1.$1.new" "main1.$1"; }
end() {
	trap '' TERM # how it ended is written once
	printf '{"code":%d,"started":"%s","ended":"%s","host":"n1","job":"%s"}' "$1" "$started" \
		"$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$SLURM_JOB_ID" | put exit
	rm -f main1.meeting
	exit "$1"
}
trap 'kill $! 2>/dev/null; end 143' TERM
printf '{"job":"%s","restarts":0,"host":"n1","at":"%s"}' "$SLURM_JOB_ID" "$started" | put begun
printf '{"host":"127.0.0.1","port":1,"secret":"%064d","socket":"/tmp/none","pid":%d,"job":"%s","started":"%s"}' 0 $$ \
	"$SLURM_JOB_ID" "$started" | put meeting
command=$(sed -n 's/.*"command":"\([^"]*\)".*/\1/p' main1.guest.json)
if [ -n "$command" ]; then
	(eval "$command") & wait $!
	end $?
fi
while :; do sleep 1 & wait $!; done # what a kill of this shell leaves behind ends soon
`

// rate is how much faster the clock of the engine and of Slurm's client is than the one on the wall.
const rate = 200

// stage is an engine on a cluster for tests.
type stage struct {
	*testing.T
	cluster *cluster
	dir     string
	clock   *pace.Clock
	program []byte // for nodes
	explore bool   // its nodes are tried
	engine  *engineslurm.Engine
}

func newStage(t *testing.T, cpus int) *stage { return newStageWith(t, cpus, []byte(standIn)) }

func newStageWith(t *testing.T, cpus int, program []byte) *stage {
	t.Helper()
	now := time.Now()
	s := &stage{T: t, dir: t.TempDir(), cluster: newCluster(t, cpus), clock: pace.New(rate, now, now),
		program: program}
	s.open()
	s.image("python:3.12")
	return s
}

// open opens the engine, as an agent does after a restart.
func (s *stage) open() {
	s.Helper()
	commands := slurm.New(slurm.Config{Run: s.cluster.run, Clock: s.clock, User: fmt.Sprint(os.Getuid())})
	e, err := engineslurm.Open(engineslurm.Config{Dir: s.dir, Instance: "one", Commands: commands, Clock: s.clock,
		Guest: func(string) ([]byte, error) { return s.program, nil }, Look: 20 * time.Millisecond, Local: s.local(),
		Explore: s.explore})
	if err != nil {
		s.Fatal(err)
	}
	s.engine = e
	s.Cleanup(func() { e.Close() }) //nolint:errcheck // it never fails
}

// local is the folder of the only node.
func (s *stage) local() string { return filepath.Join(s.dir, "node") }

// image stores an image with one layer.
func (s *stage) image(ref string) session.Image {
	s.Helper()
	layer := strings.Repeat("\x00", 1024) // an archive without files
	sum := "sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef"
	config := fmt.Sprintf(`{"architecture":"amd64","os":"linux","config":{"Env":["IMAGE=yes"],"Cmd":["serve"]},
		"rootfs":{"type":"layers","diff_ids":[%q]}}`, sum)
	content := func(text string) engine.Content {
		return engine.Content{Size: gpu.Bytes(len(text)),
			Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
	}
	image, err := s.engine.ImportImage(s.Context(), session.ImageParts{ID: sum, Refs: []string{ref}, Arch: "amd64",
		OS: "linux", Layers: []session.ImageLayer{{Digest: sum}}},
		map[string]engine.Content{session.ImageConfig: content(config), sum: content(layer)})
	if err != nil {
		s.Fatal(err)
	}
	return image
}

// wanted is a session that may start. command is its batch command, empty for an interactive one.
func wanted(id session.ID, command string, change ...func(*engine.Wanted)) engine.Wanted {
	w := engine.Wanted{Session: session.Session{ID: id, Name: string(id), Owner: "ada", Status: session.Pending,
		Progress: session.Progress{Attempt: 1},
		Spec: session.Spec{Type: session.Interactive, Image: "python:3.12",
			Resources: session.Resources{CPU: 1, Memory: 128 * gpu.MiB}}}}
	w.Kernels = []engine.Container{{Name: fmt.Sprintf("slipway-%s-main1-1", id), Hostname: "main1",
		Image: "python:3.12", Memory: 128 * gpu.MiB, Labels: map[string]string{
			engine.LabelSession: string(id), engine.LabelKernel: "main1", engine.LabelAttempt: "1",
			engine.LabelInstance: "one", engine.LabelOwner: "ada"},
		Guest: engine.GuestConfig{Session: id, Kernel: "main1", Command: command}}}
	for _, how := range change {
		how(&w)
	}
	return w
}

const (
	first  session.ID = "aaaaaaaaaaaa"
	second session.ID = "bbbbbbbbbbbb"
	third  session.ID = "cccccccccccc"
)

// await waits until something is so.
func (s *stage) await(what string, done func() bool) {
	s.Helper()
	deadline := time.Now().Add(time.Minute)
	for !done() {
		if time.Now().After(deadline) {
			s.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// run is the folder of a run.
func (s *stage) run(id session.ID) string {
	return filepath.Join(s.dir, "runs", string(id)+"-1")
}

// gone reports whether a run has no folder.
func (s *stage) gone(id session.ID) bool {
	_, err := os.Stat(s.run(id))
	return os.IsNotExist(err)
}

// runs creates and starts the container of a session.
func (s *stage) start(w engine.Wanted) string {
	s.Helper()
	id, err := s.engine.Create(s.Context(), w.Kernels[0])
	if err == nil {
		err = s.engine.Start(s.Context(), id)
	}
	if err != nil {
		s.Fatal(err)
	}
	return id
}

func (s *stage) inspect(id string) engine.State {
	s.Helper()
	state, err := s.engine.Inspect(s.Context(), id)
	if err != nil {
		s.Fatal(err)
	}
	return state
}

func (s *stage) ended(id string) (state engine.State) {
	s.Helper()
	s.await("the end of "+id, func() bool {
		state = s.inspect(id)
		return !state.Running && !state.Created
	})
	return state
}

func TestARunIsWrittenBeforeItsJob(t *testing.T) {
	s := newStage(t, 1)
	dir := t.TempDir()
	w := wanted(first, "echo hello; exit 7", func(w *engine.Wanted) {
		w.Kernels[0].Mounts = []session.Mount{{Source: dir, Target: "/home/work/data"}}
		w.Kernels[0].Guest.Pins = []engine.Pin{{Target: "/home/work/data", Device: 1, Inode: 2}}
		w.Kernels[0].Guest.Env = []session.EnvVar{{Name: "TOKEN", Value: "secret"}}
	})
	id := s.start(w)
	if state := s.ended(id); state.ExitCode != 7 || state.FinishedAt.IsZero() ||
		state.Labels[engine.LabelOwner] != "ada" {
		t.Errorf("it ended as %+v", state)
	}
	for name, mode := range map[string]os.FileMode{"spec.json": 0o600, "main1.guest.json": 0o600, "job.sh": 0o700,
		"run.json": 0o600, "guest": 0o700, ".": os.ModeDir | 0o700} {
		if info, err := os.Stat(filepath.Join(s.run(first), name)); err != nil || info.Mode() != mode {
			t.Errorf("%s is %v, %v", name, info.Mode(), err)
		}
	}
	for name, words := range map[string][]string{
		"spec.json":        {`"IMAGE"`, `/home/work/data`, `"batch":true`, `"private":true`, "5f70bf18a086"},
		"main1.guest.json": {`"TOKEN"`, fmt.Sprintf(`"uid":%d`, os.Getuid())},
	} {
		data, err := os.ReadFile(filepath.Join(s.run(first), name))
		for _, word := range words {
			if err != nil || !strings.Contains(string(data), word) {
				t.Errorf("%s lacks %s: %s (%v)", name, word, data, err)
			}
		}
		if strings.Contains(string(data), "pins") {
			t.Errorf("%s has device numbers of this computer: %s", name, data)
		}
	}
	if err := s.engine.Remove(t.Context(), id); err != nil || !s.gone(first) {
		t.Errorf("its files stay: %v", err)
	}
}

func TestAnEngineThatWasClosedFindsItsContainers(t *testing.T) {
	s := newStage(t, 1)
	id := s.start(wanted(first, ""))
	before := s.inspect(id)
	s.engine.Close() //nolint:errcheck // it never fails
	s.open()
	if after := s.inspect(id); !after.Running || !after.StartedAt.Equal(before.StartedAt) {
		t.Errorf("it is %+v and was %+v", after, before)
	}
	if states, err := s.engine.List(t.Context()); err != nil || len(states) != 1 || states[0].ID != id {
		t.Errorf("listed are %+v, %v", states, err)
	}
	if err := s.engine.Stop(t.Context(), id, 5*time.Second); err != nil {
		t.Fatal(err)
	}
	if state := s.inspect(id); state.Running || state.ExitCode != 143 || state.Taken != nil {
		t.Errorf("it was stopped as %+v", state)
	}
}

// Slurm ends a job with a signal. With TERM, its node leaves an exit record.
func TestWhatEndedAJob(t *testing.T) {
	for name, c := range map[string]struct {
		state    string
		accounts bool
		want     engine.State
		reason   session.Reason // empty: it ended by itself
		again    bool
	}{
		"timeout": {state: "TIMEOUT", want: engine.State{ExitCode: 143},
			reason: session.ReasonTaskTimeout},
		"deadline": {state: "DEADLINE", want: engine.State{ExitCode: 143},
			reason: session.ReasonTaskTimeout},
		"cancelled": {state: "CANCELLED", want: engine.State{ExitCode: 143}, reason: session.ReasonForced},
		"preempted": {state: "PREEMPTED", want: engine.State{ExitCode: 143},
			reason: session.ReasonPreempted},
		"queued again": {state: "PENDING", want: engine.State{ExitCode: 143}, again: true,
			reason: session.ReasonLost},
		"being queued": {state: "REQUEUED", want: engine.State{ExitCode: 143}, again: true,
			reason: session.ReasonLost},
		"node failure":          {state: "NODE_FAIL", want: engine.State{ExitCode: 137}, reason: session.ReasonLost},
		"boot failure":          {state: "BOOT_FAIL", want: engine.State{ExitCode: 137}, reason: session.ReasonLost},
		"out of memory":         {state: "OUT_OF_MEMORY", want: engine.State{ExitCode: 137, OOMKilled: true}},
		"completed":             {state: "COMPLETED"},
		"failed":                {state: "FAILED", want: engine.State{ExitCode: 1}},
		"failed, with accounts": {state: "FAILED", accounts: true, want: engine.State{ExitCode: 9}},
	} {
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
			if sig == syscall.SIGTERM && c.want.ExitCode != 143 {
				continue // it ends in another way
			}
			t.Run(fmt.Sprintf("%s by %s", name, sig), func(t *testing.T) {
				s := newStage(t, 1)
				id := s.start(wanted(first, ""))
				s.cluster.change(func(on *cluster) {
					on.kept, on.cpus = c.accounts, 0 // nothing starts again
					j := on.jobs[0]
					j.state, j.end, j.code = c.state, time.Now(), 9
					on.signal(j, sig)
				})
				state := s.ended(id)
				var reason session.Reason
				again := false
				if state.Taken != nil {
					reason, again = state.Taken.Reason, state.Taken.Again
				}
				if state.ExitCode != c.want.ExitCode || state.OOMKilled != c.want.OOMKilled || reason != c.reason ||
					again != c.again || reason != "" && state.Taken.Cause.Message == "" {
					t.Errorf("it is %+v, taken %+v", state, state.Taken)
				}
			})
		}
	}
}

func TestAJobThatNobodyKnowsIsLostAfterAMinute(t *testing.T) {
	s := newStage(t, 1)
	id := s.start(wanted(first, ""))
	forgot := s.clock.Now()
	s.cluster.change(func(on *cluster) {
		on.signal(on.jobs[0], 9)
		on.jobs = nil
	})
	state := s.ended(id)
	if state.Taken == nil || state.Taken.Reason != session.ReasonLost || state.Taken.Again {
		t.Errorf("it is %+v, taken %+v", state, state.Taken)
	}
	if after := s.clock.Since(forgot); after < time.Minute {
		t.Errorf("it is lost after %s", after)
	}
	if err := s.engine.Remove(t.Context(), id); err != nil || !s.gone(first) {
		t.Errorf("its files stay: %v", err)
	}
}

func TestAJobThatSlurmForgotIsJudgedByItsRecord(t *testing.T) {
	s := newStage(t, 1)
	id := s.start(wanted(first, "exit 3"))
	s.ended(id)
	s.cluster.change(func(on *cluster) { on.jobs = nil })
	for range 50 {
		if state := s.inspect(id); state.ExitCode != 3 {
			t.Fatalf("it is %+v", state)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestWhileSlurmDoesNotAnswerContainersRunOn(t *testing.T) {
	s := newStage(t, 1)
	id := s.start(wanted(first, ""))
	s.cluster.change(func(on *cluster) { on.down = true })
	s.await("the failure", func() bool {
		_, err := s.engine.Info(t.Context())
		return engine.Unavailable(err)
	})
	if state := s.inspect(id); !state.Running {
		t.Errorf("it is %+v", state)
	}
	if err := s.engine.Stop(t.Context(), id, 0); !engine.Unavailable(err) {
		t.Errorf("stop: %v", err)
	}
	s.cluster.change(func(on *cluster) { on.down = false })
	s.await("an answer", func() bool {
		_, err := s.engine.Info(t.Context())
		return err == nil
	})
	if err := s.engine.Remove(t.Context(), id); err != nil || !s.gone(first) {
		t.Errorf("its files stay: %v", err)
	}
}

func TestARefusedJobSaysWhatSlurmSays(t *testing.T) {
	s := newStage(t, 1)
	s.cluster.change(func(on *cluster) {
		on.refuse = "Batch job submission failed: Invalid partition name specified"
	})
	id, err := s.engine.Create(t.Context(), wanted(first, "").Kernels[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := s.engine.Start(t.Context(), id); session.CodeOf(err) != session.CodeStartFailed ||
		!strings.Contains(err.Error(), "Invalid partition name") {
		t.Errorf("got %v", err)
	}
}

func TestAnAnswerThatWasLostDoublesNoJob(t *testing.T) {
	s := newStage(t, 1)
	s.cluster.change(func(on *cluster) { on.deaf = true })
	id := s.start(wanted(first, ""))
	if n := s.cluster.count(slurm.NameOf(first, 1)); n != 1 || !s.inspect(id).Running {
		t.Errorf("there are %d jobs", n)
	}
	if _, err := node.ReadBegun(s.run(first), "main1"); err != nil {
		t.Error(err)
	}
}

func TestContainersThatCannotRunOnACluster(t *testing.T) {
	s := newStage(t, 1)
	for name, c := range map[string]struct {
		change func(*engine.Container)
		code   session.Code
	}{
		"administrator": {func(c *engine.Container) { c.Guest.Admin = true }, session.CodeEngineUnsupported},
		"MPS":           {func(c *engine.Container) { c.MPS = true }, session.CodeEngineUnsupported},
		"no image":      {func(c *engine.Container) { c.Image = "none:1" }, session.CodeNoImage},
		"another name": {func(c *engine.Container) { c.Name = "slipway-dddddddddddd-main1-1" },
			session.CodeEngineInvalid},
		"a path as a name": {func(c *engine.Container) { c.Name = "slipway-../../../x-main1-1" },
			session.CodeEngineInvalid},
		"no directory": {func(c *engine.Container) {
			c.Mounts = []session.Mount{{Source: "/nowhere/at/all", Target: "/data"}}
		}, session.CodeEngineInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			w := wanted(first, "")
			c.change(&w.Kernels[0])
			_, err := s.engine.Create(context.Background(), w.Kernels[0])
			if session.CodeOf(err) != c.code || session.AsError(err, "").Message == "" {
				t.Errorf("got %v", err)
			}
			if !s.gone(first) {
				t.Error("it left a run")
			}
		})
	}
}
