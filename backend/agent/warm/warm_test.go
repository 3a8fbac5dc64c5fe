package warm

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"slipway/backend/agent/host"
	"slipway/backend/agent/records"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

// world is a pool whose containers are a list.
type world struct {
	t     *testing.T
	store *store.Store
	pool  *Pool
	stop  func()

	mu      sync.Mutex // guards the following
	machine Machine
	made    map[session.ID]string // the images of those that wait, by the session
	fault   error                 // of making and removing them
	tries   int                   // to make one
}

// locked calls do while the pool does not use the world.
func (w *world) locked(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
}

func newWorld(t *testing.T, most int) *world {
	t.Helper()
	s, err := store.Open(store.Config{Path: filepath.Join(t.TempDir(), "agent.db")})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, store: s, made: map[session.ID]string{},
		machine: Machine{Up: true, Free: 12 * gpu.GiB, Memory: 16 * gpu.GiB}}
	w.pool = New(Config{Host: host.Host{Log: slog.New(slog.DiscardHandler),
		Records: records.New(records.Config{Store: s, Trouble: func() {},
			Tell:  func([]session.Session) { w.pool.Wake() },
			Ended: func(session.ID) time.Time { return time.Now() },
			Dress: func(s session.Session) session.Session { return s }})},
		Most: most, Machine: func() (m Machine) {
			w.locked(func() { m = w.machine })
			return m
		},
		Fits: func(s session.Session) bool { return s.Spec.Accelerator.IsZero() },
		Reserve: func(_ context.Context, s session.Session) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.tries++
			if w.fault == nil {
				w.made[s.ID] = s.Spec.Image
			}
			return w.fault
		},
		Release: func(_ context.Context, s session.Session) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.fault == nil {
				delete(w.made, s.ID)
			}
			return w.fault
		}})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.pool.Run(ctx)
	}()
	w.stop = func() {
		cancel()
		<-ended
	}
	t.Cleanup(func() {
		w.stop()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// like is a session that is launched now.
func like(image string) session.Session {
	return records.NewSession(session.LaunchRequest{Owner: "ada", Spec: session.Spec{Image: image}}, session.NewID(),
		"local", time.Now().UTC())
}

// launch stores a session with the id that the pool gives it.
func (w *world) launch(s session.Session) session.ID {
	w.t.Helper()
	s.ID = w.pool.Take(s)
	err := w.pool.config.Records.Update(func(tx *store.Tx) error { return records.Create(tx, &s, "") })
	if err != nil {
		w.t.Fatal(err)
	}
	w.pool.Wake()
	return s.ID
}

// end ends a session.
func (w *world) end(id session.ID) {
	w.t.Helper()
	_, err := w.pool.config.Records.Change(id, func(d *records.Draft) error { return d.To(session.Cancelled) })
	if err != nil {
		w.t.Fatal(err)
	}
}

// want waits for the pool, and compares how many containers wait with each image.
func (w *world) want(images map[string]int) {
	w.t.Helper()
	time.Sleep(5 * time.Minute)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	got := map[string]int{}
	for _, image := range w.made {
		got[image]++
	}
	for image, count := range images {
		if got[image] != count {
			w.t.Errorf("with %s wait %d, want %d", image, got[image], count)
		}
		delete(got, image)
	}
	if len(got) > 0 {
		w.t.Errorf("there are also %v", got)
	}
}

func TestOneWaitsForEachOfTheLastKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		for _, image := range []string{"a", "b", "b", "c"} {
			w.launch(like(image))
		}
		large := like("gpu")
		large.Spec.Accelerator = gpu.Request{Devices: 1}
		w.launch(large)
		w.want(map[string]int{"b": 1, "c": 1})
		w.launch(like("a"))
		w.want(map[string]int{"a": 1, "c": 1})
		if count := w.pool.Count(); count != 2 {
			t.Errorf("counted are %d", count)
		}
		w.stop()
		w.want(nil)
	})
}

func TestOneWaitsForEachPreferredKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3)
		old, older := w.launch(like("b")), w.launch(like("a"))
		time.Sleep(time.Second)
		for range newest {
			w.end(w.launch(like("c")))
		}
		w.launch(like("d"))
		prefer := func(id session.ID, on bool) {
			if err := w.pool.Prefer(t.Context(), id, on); err != nil {
				t.Error(err)
			}
		}
		w.want(map[string]int{"c": 1, "d": 1})
		prefer(old, true)
		prefer(older, true)
		w.want(map[string]int{"a": 1, "b": 1, "d": 1})
		prefer(older, false)
		w.want(map[string]int{"b": 1, "c": 1, "d": 1})
		if err := w.pool.Prefer(t.Context(), "unknown", true); session.CodeOf(err) != session.CodeSessionNotFound {
			t.Errorf("an unknown session is preferred: %v", err)
		}
	})
}

func TestALaunchGetsTheOneThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.launch(like("a"))
		w.want(map[string]int{"a": 1})
		other := like("b")
		if id := w.pool.Take(other); id != other.ID {
			t.Errorf("another kind got %s", id)
		}
		first, second := like("a"), like("a")
		id := w.pool.Take(first)
		if w.made[id] != "a" {
			t.Errorf("it got %s, and %v wait", id, w.made)
		}
		if id := w.pool.Take(second); id != second.ID {
			t.Errorf("a second one got %s too", id)
		}
		w.pool.Return(id) // its name was in use
		if got := w.launch(second); got != id {
			t.Errorf("it got %s, and %s was returned", got, id)
		}
		w.want(map[string]int{"a": 1}) // which it may still take
		if got := w.pool.Take(first); got != first.ID {
			t.Errorf("one was promised twice: %s", got)
		}
		w.end(id)
		w.want(map[string]int{"a": 1}) // another one
		if w.made[id] != "" {
			t.Error("the one of the session that ended is still there")
		}
	})
}

func TestALaunchThatNeverCameGivesItsContainerUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.launch(like("a"))
		w.want(map[string]int{"a": 1})
		id := w.pool.Take(like("a"))
		w.want(map[string]int{"a": 1})
		if w.made[id] != "" {
			t.Error("it is still there")
		}
	})
}

func TestNoneWaitsWhilePowerOrMemoryIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.launch(like("a"))
		for name, machine := range map[string]Machine{
			"on a battery":    {Up: true, Battery: true, Free: 12 * gpu.GiB, Memory: 16 * gpu.GiB},
			"little memory":   {Up: true, Free: gpu.GiB, Memory: 16 * gpu.GiB},
			"a small machine": {Up: true, Free: gpu.GiB - 1, Memory: 2 * gpu.GiB},
		} {
			usual := w.machine
			w.want(map[string]int{"a": 1})
			w.locked(func() { w.machine = machine })
			t.Log(name)
			w.want(nil)
			w.locked(func() { w.machine = usual })
		}
		w.want(map[string]int{"a": 1})
		w.locked(func() { w.machine.Up = false }) // nothing can be asked of its engine
		w.launch(like("b"))
		w.want(map[string]int{"a": 1})
	})
}

func TestFailuresOfTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.locked(func() { w.fault = errors.New("out of order") })
		w.launch(like("a"))
		w.want(nil)
		if w.tries != 1 {
			t.Errorf("it was tried %d times", w.tries)
		}
		w.locked(func() { w.fault = nil })
		w.want(nil)
		time.Sleep(time.Second)
		w.launch(like("a"))
		w.want(map[string]int{"a": 1})
		w.locked(func() { w.fault = errors.New("out of order") })
		w.pool.Free(t.Context())()
		w.want(map[string]int{"a": 1})
		if taken := like("a"); w.pool.Take(taken) != taken.ID {
			t.Error("one that is to be removed was given away")
		}
		w.locked(func() { w.fault, w.machine.Battery = nil, true })
		w.want(nil)
		w.locked(func() {
			w.machine.Battery = false
			w.fault = session.NewError(session.CodeEngineUnsupported, "None wait here.", "")
		})
		w.launch(like("b"))
		w.want(nil)
		w.locked(func() { w.tries = 0 })
		w.launch(like("c"))
		w.want(nil)
		if w.tries > 0 {
			t.Error("an engine that refused was asked again")
		}
	})
}

func TestAllAreFreedForTheRemovalOfAnImage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.launch(like("a"))
		w.launch(like("b"))
		w.want(map[string]int{"a": 1, "b": 1})
		done := w.pool.Free(t.Context())
		if len(w.made) > 0 {
			t.Errorf("there are %v", w.made)
		}
		w.want(nil)
		done()
		w.want(map[string]int{"a": 1, "b": 1})
	})
}

func TestOnBattery(t *testing.T) {
	supply := func(dir, name string, files map[string]string) {
		for file, content := range files {
			path := filepath.Join(dir, name, file)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755),
				os.WriteFile(path, []byte(content+"\n"), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
	}
	laptop := t.TempDir()
	supply(laptop, "BAT0", map[string]string{"type": "Battery", "status": "Discharging"})
	if OnBattery(laptop) || OnBattery(filepath.Join(laptop, "none")) {
		t.Error("a machine without a mains connection counts as one that lost it")
	}
	supply(laptop, "AC", map[string]string{"type": "Mains", "online": "0"})
	if !OnBattery(laptop) {
		t.Error("a laptop without mains power is not on battery")
	}
	supply(laptop, "AC", map[string]string{"online": "1"})
	if OnBattery(laptop) {
		t.Error("a laptop with mains power is on battery")
	}
}
