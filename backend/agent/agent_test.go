package agent

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"slipway/backend/agent/devices"
	"slipway/backend/agent/meter"
	"slipway/backend/engine"
	"slipway/backend/engine/enginetest"
	"slipway/backend/engine/sim"
	"slipway/backend/engine/sim/simtest"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

// scriptedDevices is a source of devices that says what a test wants.
type scriptedDevices struct {
	mu      sync.Mutex // guards everything below
	devices []gpu.Device
	sample  func(gpu.Moment) gpu.Sample // nil: the devices are there and tell nothing of themselves
	moment  func() gpu.Moment
}

func (s *scriptedDevices) Inventory(context.Context) ([]gpu.Device, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.devices), nil
}

func (s *scriptedDevices) Sample(context.Context) (gpu.Sample, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.moment()
	if s.sample == nil {
		var sample gpu.Sample
		for _, d := range s.devices {
			sample.Devices = append(sample.Devices, gpu.DeviceSample{UUID: d.UUID})
		}
		sample.At = at
		return sample, nil
	}
	return s.sample(at), nil
}

func (s *scriptedDevices) Close() error { return nil }

// world is an agent on a fake engine.
type world struct {
	t      *testing.T
	dir    string
	fake   *simtest.Engine
	gpus   *scriptedDevices
	store  *store.Store
	agent  *Agent
	config func(*Config)
	fault  func(string) error
	stop   func()
}

// dirInMemory is a folder of the test's whose files reach no disk, where the
// machine has such. What dies here is a process, never the machine: what it
// wrote is there whether it was flushed or not, and flushing takes most of the time.
func dirInMemory(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "slipway-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove the test's folder: %v", err)
		}
	})
	return dir
}

// newFake returns an engine that does what the test says, in memory.
func newFake(t testing.TB, config simtest.Config) *simtest.Engine {
	t.Helper()
	return simtest.New(t, dirInMemory(t), config)
}

// newWorld opens a store and an agent on fake and runs it.
func newWorld(t *testing.T, fake *simtest.Engine, config func(*Config)) *world {
	t.Helper()
	w := &world{t: t, dir: dirInMemory(t), fake: fake, config: config}
	w.start()
	t.Cleanup(func() { w.halt() })
	return w
}

func (w *world) start() {
	w.t.Helper()
	s, err := store.Open(store.Config{Path: filepath.Join(w.dir, "agent.db"), Fault: w.fault})
	if err != nil {
		w.t.Fatal(err)
	}
	if w.gpus == nil {
		w.gpus = &scriptedDevices{moment: devices.OwnMoment()}
	}
	c := Config{
		Name: "local", Dir: w.dir, Engine: engine.Of(w.fake), Store: s, Owner: "ada", UID: 1000, GID: 1000,
		Version: "test",
		Log:     slog.New(slog.NewTextHandler(io.Discard, nil)),
		Devices: DeviceConfig{Source: w.gpus},
		Host: HostConfig{
			Moment: w.gpus.moment,
			Boot:   func() (time.Time, error) { return time.Time{}, nil },
			Load: func(string) (meter.Load, error) {
				return meter.Load{Load: session.Load{CPU: 0.5, Memory: gpu.GiB}}, nil
			},
		},
	}
	if w.config != nil {
		w.config(&c)
	}
	a, err := Open(c)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.Run(ctx) //nolint:errcheck // ends with ctx
	}()
	w.store, w.agent = s, a
	w.measure()
	w.stop = func() {
		cancel()
		<-ended
		a.Close()
		s.Close()
	}
}

// withDevices gives the machine devices, and what is measured of them.
func (w *world) withDevices(devices []gpu.Device, sample func(gpu.Moment) gpu.Sample) {
	w.gpus.mu.Lock()
	w.gpus.devices, w.gpus.sample = devices, sample
	w.gpus.mu.Unlock()
	w.measure()
}

// measure has the agent look at its devices now. What fails of that the agent
// says itself.
func (w *world) measure() {
	d := w.agent.devices
	_ = d.Look(context.Background(), nil)
	if d.Source == gpu.Source(w.gpus) {
		sample, _ := w.gpus.Sample(context.Background()) // never fails
		d.Add(sample, nil)
	}
	w.agent.queue.Wake()
}

// halt ends the agent; the engine goes on.
func (w *world) halt() {
	if w.stop != nil {
		w.stop()
		w.stop = nil
		if refused, found := w.agent.queue.Warning(); found {
			w.t.Errorf("the audit of a plan refused a placement: %s", refused.Text)
		}
	}
}

// inside is what goes on in the main container of a session that runs.
func (w *world) inside(s session.Session) sim.Inside {
	w.t.Helper()
	in, ok := w.fake.Inside(s.Container())
	if !ok {
		w.t.Fatalf("the container of %s does not run", s.Name)
	}
	return in
}

func (w *world) launch(spec session.Spec) session.Session {
	w.t.Helper()
	return w.launchAs("", spec)
}

func (w *world) launchAs(owner string, spec session.Spec) session.Session {
	w.t.Helper()
	if spec.Image == "" {
		spec.Image = enginetest.ImageMinimal
	}
	s, err := w.agent.Launch(context.Background(), session.LaunchRequest{Owner: owner, Spec: spec})
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// await waits until a session fulfils the condition, by its events.
func (w *world) await(id session.ID, what string, done func(session.Session) bool) session.Session {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	var last session.Session
	found := errors.New("found")
	err := w.agent.Watch(ctx, session.Cursor{}, func(e session.Event) error {
		seen := []session.Session{}
		if e.Reset != nil {
			seen = e.Reset.Sessions
		}
		if e.Session != nil {
			seen = append(seen, *e.Session)
		}
		for _, s := range seen {
			if s.ID != id {
				continue
			}
			if last = s; done(s) {
				return found
			}
		}
		return nil
	})
	if !errors.Is(err, found) {
		w.t.Fatalf("session %s did not become %s: %v; it is %+v", id, what, err, last)
	}
	return last
}

func (w *world) awaitStatus(id session.ID, status session.Status) session.Session {
	w.t.Helper()
	return w.await(id, string(status), func(s session.Session) bool { return s.Status == status })
}

// audit fails the test where the store is not sound or a container is doubled.
func (w *world) audit() {
	w.t.Helper()
	problems, err := w.store.Check()
	if err != nil || len(problems) > 0 {
		w.t.Errorf("audit: %v %v", problems, err)
		for _, problem := range problems {
			for _, word := range strings.FieldsFunc(problem, func(r rune) bool { return r == ' ' || r == '/' }) {
				if session.ValidID(word) {
					s, _ := w.store.Get(session.ID(word))
					history, _ := w.store.History(s.ID)
					w.t.Errorf("%+v", s)
					for _, p := range history {
						w.t.Errorf("  %+v", p)
					}
				}
			}
		}
	}
	seen := map[string]bool{}
	for _, state := range w.fake.States() {
		id := state.Labels[engine.LabelSession] + " " + state.Labels[engine.LabelKernel]
		if seen[id] {
			w.t.Errorf("session %s has two containers of one kernel", id)
		}
		seen[id] = true
	}
}

func inBubble(t *testing.T, test func(t *testing.T)) { synctest.Test(t, test) }

func TestLaunchRunsAndEnds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{}), nil)
		if _, err := w.agent.CreateFolder(t.Context(),
			session.FolderRequest{Name: session.CacheFolder}); err != nil { // as a person's first launch does
			t.Fatal(err)
		}
		synctest.Wait() // the first checkpoint of the accounts is none of the launch's
		before := w.store.Changes()
		s := w.launch(session.Spec{Name: "first"})
		if s.Status != session.Pending {
			t.Errorf("a launch is answered with %s", s.Status)
		}
		s = w.awaitStatus(s.ID, session.Running)
		// Four, and once it runs a checkpoint of the accounts, which may be counted.
		if changes := w.store.Changes() - before; changes > 5 {
			t.Errorf("RUNNING took %d transactions", changes)
		}
		states := w.fake.States()
		if len(states) != 1 || s.Kernels[0].Container != states[0].ID || s.Kernels[0].Status != session.Running {
			t.Errorf("kernels %+v, containers %+v", s.Kernels, states)
		}
		if _, err := w.agent.Terminate(context.Background(), s.ID, false); err != nil {
			t.Fatal(err)
		}
		s = w.awaitStatus(s.ID, session.Terminated)
		if s.Reason != session.ReasonUser || s.Result != session.ResultUndefined || s.TerminatedAt == nil {
			t.Errorf("ended as %+v", s)
		}
		if left := w.fake.States(); len(left) != 0 {
			t.Errorf("containers left: %+v", left)
		}
		w.audit()
	})
}
