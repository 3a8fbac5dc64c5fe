package agent

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway/backend/engine/sim/simtest"
	"slipway/backend/session"
	"slipway/gpu"
	"slipway/gpu/sim"
)

// clocks are those of a machine, as a test moves them.
type clocks struct {
	mu     sync.Mutex // guards everything below
	origin time.Time
	boot   string
	asleep time.Duration // that the machine slept
	set    time.Duration // by which the clock on the wall was set
}

func newClocks() *clocks { return &clocks{origin: time.Now().Add(-time.Hour), boot: "boot-1"} }

func (c *clocks) now() gpu.Moment {
	c.mu.Lock()
	defer c.mu.Unlock()
	awake := time.Since(c.origin)
	return gpu.Moment{BootID: c.boot, Boot: awake + c.asleep, Awake: awake,
		Wall: time.Now().Round(0).Add(c.asleep + c.set)}
}

func (c *clocks) sleep(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asleep += d
}

func (c *clocks) setWall(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set += d
}

// errMachineDied is what a store says after the machine died under it.
var errMachineDied = errors.New("the machine died")

// gpuWorld is a world with simulated devices.
type gpuWorld struct {
	*world
	clocks  *clocks
	machine *sim.Machine
	mu      sync.Mutex // guards killed
	killed  bool
}

func newGPUWorld(t *testing.T, fake *simtest.Engine, cards sim.Config, config func(*Config)) *gpuWorld {
	g := &gpuWorld{clocks: newClocks()}
	cards.Clock, cards.Truth = g.clocks.now, true
	g.machine = sim.Open(cards)
	w := &world{t: t, dir: dirInMemory(t), fake: fake}
	w.config = func(c *Config) {
		c.Devices.Source, c.Host.Moment = g.machine, g.clocks.now
		if config != nil {
			config(c)
		}
	}
	w.fault = func(string) error {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.killed {
			return errMachineDied
		}
		return nil
	}
	g.world = w
	w.start()
	t.Cleanup(w.halt)
	time.Sleep(10 * time.Second) // the devices are found and measured
	return g
}

// kill ends the agent so that it can store nothing any more, and starts it anew
// after a while.
func (g *gpuWorld) kill(away time.Duration) {
	g.mu.Lock()
	g.killed = true
	g.mu.Unlock()
	g.halt()
	time.Sleep(away)
	g.mu.Lock()
	g.killed = false
	g.mu.Unlock()
	g.start()
}

// run launches a session with a share of a device and waits until it runs.
func (g *gpuWorld) run(name string, share gpu.Share) session.Session {
	g.t.Helper()
	s := g.launch(session.Spec{Name: name, Accelerator: gpu.Request{Shares: share}})
	return g.awaitStatus(s.ID, session.Running)
}

// accounts returns what was used since the beginning, and audits the books.
func (g *gpuWorld) accounts() []session.Account {
	g.t.Helper()
	rows, err := g.agent.Accounts(context.Background(), session.AccountSpan{From: g.clocks.origin.Add(-48 * time.Hour)})
	if err != nil {
		g.t.Fatal(err)
	}
	for _, wrong := range g.agent.accounts.Check() {
		g.t.Error(wrong)
	}
	return rows
}

func sumOfRows(rows []session.Account, pick func(session.Account) bool) (sum session.Account) {
	for _, r := range rows {
		if pick(r) {
			sum.Add(r)
		}
	}
	return sum
}

func of(id session.ID) func(session.Account) bool {
	return func(r session.Account) bool { return r.Session == id }
}

// energy is what the counters of all devices stand at.
func (g *gpuWorld) energy() (sum gpu.MilliJoule) {
	g.t.Helper()
	sample, err := g.machine.Sample(context.Background())
	if err != nil {
		g.t.Fatal(err)
	}
	for _, d := range sample.Devices {
		sum += *d.Energy
	}
	return sum
}

func TestSessionsAreChargedWithWhatTheyUse(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newGPUWorld(t, newFake(t, simtest.Config{}), sim.Config{Seed: 1}, nil)
		trainer, holder := g.run("trainer", 500), g.run("holder", 500)
		begun := time.Now()
		g.machine.RunGranted(trainer.Container(), sim.Training, trainer.Grants.GPUs)
		g.machine.RunGranted(holder.Container(), sim.Holding, holder.Grants.GPUs)
		time.Sleep(10 * time.Minute)
		for _, s := range []session.Session{trainer, holder} {
			if _, err := g.agent.Terminate(context.Background(), s.ID, false); err != nil {
				t.Fatal(err)
			}
			g.machine.EndContainer(s.Container())
			g.awaitStatus(s.ID, session.Terminated)
		}
		took := time.Since(begun)
		time.Sleep(time.Minute)
		rows := g.accounts()
		truth := g.machine.Truth()[sim.Place{Container: trainer.Container(), Device: trainer.Grants.GPUs[0].Device}]
		got, held := sumOfRows(rows, of(trainer.ID)), sumOfRows(rows, of(holder.ID))
		if off := (time.Duration(got.BusyGPUMs)*time.Millisecond - truth.Busy).Abs(); off > truth.Busy/50 {
			t.Errorf("busy for %d ms, in truth %s", got.BusyGPUMs, truth.Busy)
		}
		if held.BusyGPUMs > 1000 || held.EnergyDynamic > got.EnergyDynamic/100 ||
			held.VRAMPeak < 10*gpu.GiB {
			t.Errorf("who only held memory is charged with %+v", held.DeviceUse)
		}
		for name, sum := range map[string]session.Account{"trainer": got, "holder": held} {
			if want := took.Milliseconds() / 2; sum.AllocGPUMs < want-1000 || sum.AllocGPUMs > want+1000 {
				t.Errorf("%s was granted %d ms, in truth %d", name, sum.AllocGPUMs, want)
			}
			if sum.AllocCPUMs < took.Milliseconds()-1000 || sum.AllocCPUMs > took.Milliseconds()+1000 ||
				sum.CPUMs < took.Milliseconds()/11 {
				t.Errorf("%s has CPU time %d of %d ms", name, sum.CPUMs, sum.AllocCPUMs)
			}
			if sum.EnergyIdle == 0 || sum.CoveredMs < took.Milliseconds()*95/100 {
				t.Errorf("%s: %+v", name, sum.DeviceUse)
			}
		}
		if i := slices.IndexFunc(rows, func(r session.Account) bool { return r.Kind == "idle" }); i < 0 ||
			rows[i].Session != "" || rows[i].EnergyIdle == 0 {
			t.Errorf("nothing was burnt by nobody: %+v", rows)
		}
		if rows[slices.IndexFunc(rows, of(trainer.ID))].Name != "trainer" {
			t.Error("a row has no name")
		}
		g.audit()
	})
}

func TestKillsCountNothingTwice(t *testing.T) {
	for seed := range uint64(6) {
		inBubble(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 7))
			g := newGPUWorld(t, newFake(t, simtest.Config{}),
				sim.Config{Seed: seed, Foreign: true, Cards: []sim.Card{sim.Server, sim.Server}}, nil)
			g.accounts()
			s := g.run("trainer", 500)
			g.machine.RunGranted(s.Container(), sim.Training, s.Grants.GPUs)
			kills := 0
			for range 12 {
				time.Sleep(time.Duration(r.IntN(40_000)) * time.Millisecond)
				g.kill(time.Duration(r.IntN(3_000)) * time.Millisecond)
				kills++
			}
			time.Sleep(3 * time.Second)
			// What was burnt before the first sample nobody can know.
			last := g.energy()
			rows := g.accounts()
			got := sumOfRows(rows, of(s.ID))
			truth := g.machine.Truth()[sim.Place{Container: s.Container(), Device: s.Grants.GPUs[0].Device}]
			if busy := time.Duration(got.BusyGPUMs) * time.Millisecond; busy > truth.Busy+truth.Busy/50 ||
				busy < truth.Busy-time.Duration(kills)*13*time.Second {
				t.Errorf("seed %d: busy for %s, in truth %s", seed, busy, truth.Busy)
			}
			all := sumOfRows(rows, func(session.Account) bool { return true })
			burnt := all.EnergyDynamic + all.EnergyIdle
			if burnt > last || burnt < last-last/20 {
				t.Errorf("seed %d: %d mJ are booked of %d", seed, burnt, last)
			}
			ran := time.Since(*s.StartedAt).Milliseconds()
			if got.AllocGPUMs > ran/2+1 || got.AllocGPUMs < ran/2-3000 {
				t.Errorf("seed %d: %d ms were granted, in truth %d", seed, got.AllocGPUMs, ran/2)
			}
			if got.AllocCPUMs > ran+1 || got.CPUMs > ran/10+1 || got.CPUMs < ran/10-11_000 {
				t.Errorf("seed %d: CPU time %d of %d ms, in truth %d", seed, got.CPUMs, got.AllocCPUMs, ran)
			}
			g.audit()
		})
	}
}

func TestEnergyIsBookedToTheLastMillijoule(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newGPUWorld(t, newFake(t, simtest.Config{}), sim.Config{Seed: 3}, nil)
		s := g.run("trainer", 700)
		g.machine.RunGranted(s.Container(), sim.Training, s.Grants.GPUs)
		counted := func() gpu.MilliJoule {
			all := sumOfRows(g.accounts(), func(session.Account) bool { return true })
			return all.EnergyDynamic + all.EnergyIdle
		}
		cursor := func() gpu.MilliJoule {
			var stored gpu.State
			if _, err := g.store.Account("gpu/state", &stored); err != nil {
				t.Fatal(err)
			}
			return *stored.Devices[0].Energy
		}
		booked, at := counted(), cursor()
		for range 5 {
			time.Sleep(17 * time.Second)
			g.kill(21 * time.Second)
			time.Sleep(5 * time.Second)
			if now, cursorNow := counted(), cursor(); now-booked != cursorNow-at {
				t.Fatalf("%d mJ were booked while the counter went %d", now-booked, cursorNow-at)
			}
		}
	})
}

func TestTimeAsleepIsNotCharged(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newGPUWorld(t, newFake(t, simtest.Config{}), sim.Config{Seed: 4}, nil)
		s := g.run("trainer", 1000)
		time.Sleep(time.Minute)
		g.clocks.sleep(8 * time.Hour)
		time.Sleep(time.Minute)
		g.clocks.setWall(-3 * time.Hour)
		time.Sleep(time.Minute)
		g.clocks.setWall(5 * time.Hour)
		time.Sleep(time.Minute)
		got := sumOfRows(g.accounts(), of(s.ID))
		ran := time.Since(*s.StartedAt).Milliseconds()
		if got.AllocGPUMs < ran-2000 || got.AllocGPUMs > ran+2000 || got.AllocCPUMs < ran-2000 ||
			got.AllocCPUMs > ran+2000 {
			t.Errorf("%d ms of devices and %d ms of CPUs were granted, in truth %d", got.AllocGPUMs, got.AllocCPUMs,
				ran)
		}
	})
}

func TestTheBoardShowsWhoHoldsWhat(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newGPUWorld(t, newFake(t, simtest.Config{}), sim.Config{Seed: 5}, nil)
		s := g.run("trainer", 500)
		device := s.Grants.GPUs[0].Device
		g.machine.RunGranted(s.Container(), sim.Training, s.Grants.GPUs)
		g.machine.Run(sim.Program{Device: device, Name: "blender", User: "grace", Kind: sim.Holding,
			Memory: 3 * gpu.GiB})
		time.Sleep(time.Minute)
		b, err := g.agent.Devices(context.Background())
		if err != nil || b.Source != "sim" || b.Attach != "sim" || b.Strategy != "evenly" ||
			b.Quantum != gpu.DefaultQuantum || len(b.Devices) != 1 {
			t.Fatalf("%+v, %v", b, err)
		}
		d := b.Devices[0]
		if d.Free != 500 || d.Util == nil || d.MemoryUsed == nil || d.Power == nil || d.Level != gpu.LevelWatched ||
			len(d.Holders) != 2 {
			t.Fatalf("%+v", d)
		}
		if h := d.Holders[0]; h.Session != s.ID || h.Name != "trainer" || h.Owner != "ada" || h.Share != 500 ||
			h.Memory == nil || *h.Memory > h.Promised || h.Util == nil {
			t.Errorf("the session is shown as %+v", h)
		}
		if h := d.Holders[1]; h.Session != "" || h.Name != "blender" || h.Owner != "grace" || h.PID == 0 ||
			h.Memory == nil {
			t.Errorf("the process is shown as %+v", h)
		}
		usage, err := g.agent.Usage(context.Background(), s.ID, time.Time{})
		if err != nil || len(usage) == 0 {
			t.Fatalf("%v, %v", usage, err)
		}
		if last := usage[len(usage)-1]; len(last.GPUs) != 1 || last.GPUs[0].Device != device ||
			last.GPUs[0].Memory == nil || last.GPUs[0].Util == nil {
			t.Errorf("a sample of use is %+v", last)
		}
		points, err := g.agent.DeviceHistory(context.Background(), device, time.Now().Add(-30*time.Second))
		if err != nil || len(points) < 10 || points[0].Util == nil {
			t.Errorf("%d points, %v", len(points), err)
		}
		if _, err := g.agent.DeviceHistory(context.Background(), "GPU-none", time.Time{}); session.CodeOf(
			err) != "device_read_not-found" {
			t.Errorf("an unknown device: %v", err)
		}
		{ // and says what was lost
			g.machine.Break(&gpu.Error{Code: gpu.CodeSourceUnavailable, Message: "The driver does not answer."})
			time.Sleep(30 * time.Second)
			b, _ := g.agent.Devices(context.Background())
			if !strings.Contains(b.Text, "does not answer") || len(b.Devices) != 1 || b.Devices[0].Util != nil ||
				b.Devices[0].Holders[0].Memory != nil {
				t.Errorf("%+v", b)
			}
			if got, _ := g.agent.Get(context.Background(), s.ID); got.Status != session.Running {
				t.Errorf("the session is %s", got.Status)
			}
			g.machine.Break(nil)
			time.Sleep(30 * time.Second)
			if b, _ := g.agent.Devices(context.Background()); b.Text != "" || b.Devices[0].Util == nil {
				t.Errorf("%+v", b)
			}
		}
		g.accounts()
	})
}

func TestTheGuard(t *testing.T) {
	over := func(g *gpuWorld, s session.Session) {
		grant := s.Grants.GPUs[0]
		g.machine.Run(sim.Program{Container: s.Container(), Device: grant.Device, Kind: sim.Holding,
			Memory: grant.Memory + 2*gpu.GiB})
	}
	t.Run("warns, and takes it back", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			g := newGPUWorld(t, newFake(t, simtest.Config{}), sim.Config{Seed: 6}, nil)
			s := g.run("greedy", 500)
			over(g, s)
			begun := time.Now()
			s = g.await(s.ID, "warned", func(s session.Session) bool {
				return slices.ContainsFunc(s.Warnings,
					func(w session.Warning) bool { return w.Code == session.CodeMemoryOver })
			})
			if took := time.Since(begun) - 10*time.Second; took > 4*time.Second { // it loads for some seconds
				t.Errorf("the warning took %s", took)
			}
			g.machine.EndContainer(s.Container())
			s = g.await(s.ID, "forgiven", func(s session.Session) bool { return len(s.Warnings) == 0 })
			if s.Status != session.Running {
				t.Errorf("it is %s", s.Status)
			}
		})
	})
	t.Run("names each device, and takes back what was said before a restart", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			g := newGPUWorld(t, newFake(t, simtest.Config{}),
				sim.Config{Seed: 6, Cards: []sim.Card{sim.Workstation, sim.Workstation}}, nil)
			s := g.run("greedy", 1500)
			var pids []int
			for _, grant := range s.Grants.GPUs {
				pids = append(pids, g.machine.Run(sim.Program{Container: s.Container(), Device: grant.Device,
					Kind: sim.Holding, Memory: grant.Memory + 2*gpu.GiB}))
			}
			warned := func(count int) session.Session {
				return g.await(s.ID, "warned", func(s session.Session) bool {
					over := 0
					for _, w := range s.Warnings {
						if w.Code == session.CodeMemoryOver {
							over++
						}
					}
					return over == count && len(s.Warnings) == count
				})
			}
			s = warned(2)
			if a, b := s.Warnings[0], s.Warnings[1]; a.Device == b.Device || a.Text[:7] == b.Text[:7] ||
				!strings.HasPrefix(a.Text, "GPU ") {
				t.Errorf("the warnings are %+v", s.Warnings)
			}
			g.machine.End(pids[0])
			if s = warned(1); s.Warnings[0].Device != s.Grants.GPUs[1].Device {
				t.Errorf("what remains is %+v", s.Warnings)
			}
			g.halt()
			g.machine.End(pids[1])
			g.start()
			warned(0)
		})
	})
	t.Run("ends the newest process where the policy says so", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			var g *gpuWorld
			ended := make(chan int, 10)
			g = newGPUWorld(t, newFake(t, simtest.Config{}), sim.Config{Seed: 6}, func(c *Config) {
				c.Devices.Guard = gpu.PolicyEndProcess
				c.Devices.EndProcess = func(pid int, start uint64) error {
					if start == 0 {
						return errors.New("which process is meant is not said")
					}
					g.machine.End(pid)
					ended <- pid
					return nil
				}
			})
			s := g.run("greedy", 500)
			grant := s.Grants.GPUs[0]
			g.machine.Run(sim.Program{Container: s.Container(), Device: grant.Device, Kind: sim.Holding,
				Memory: grant.Memory / 2})
			time.Sleep(time.Minute)
			newest := g.machine.Run(sim.Program{Container: s.Container(), Device: grant.Device, Kind: sim.Holding,
				Memory: grant.Memory})
			if pid := <-ended; pid != newest {
				t.Errorf("process %d was ended, the newest is %d", pid, newest)
			}
			s = g.await(s.ID, "well again", func(s session.Session) bool { return len(s.Warnings) == 0 })
			if s.Status != session.Running || len(ended) > 0 {
				t.Errorf("it is %s, and %d more processes were ended", s.Status, len(ended))
			}
		})
	})
	t.Run("ends the session where the policy says so", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			g := newGPUWorld(t, newFake(t, simtest.Config{}), sim.Config{Seed: 6},
				func(c *Config) { c.Devices.Guard = gpu.PolicyEndSession })
			s := g.run("greedy", 500)
			over(g, s)
			s = g.awaitStatus(s.ID, session.Terminated)
			if s.Reason != session.ReasonDeviceMemory || s.Error == nil || s.Error.Code != session.CodeMemoryOver {
				t.Errorf("ended as %s, %+v", s.Reason, s.Error)
			}
			g.audit()
		})
	})
}

func TestThatThereAreNoDevicesIsToldOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{}), nil)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		events := make(chan session.Event, 1000)
		go w.agent.Watch(ctx, session.Cursor{},
			func(e session.Event) error { events <- e; return nil }) //nolint:errcheck // ends with ctx
		boards := func() (told []session.DeviceBoard) {
			// the drivers are asked anew every minute, and no moment of the test is one of the agent's
			time.Sleep(3*time.Minute + time.Second/2)
			for len(events) > 0 {
				if e := <-events; e.Devices != nil {
					told = append(told, *e.Devices)
				}
			}
			return told
		}
		set := func(devices ...gpu.Device) {
			w.gpus.mu.Lock()
			defer w.gpus.mu.Unlock()
			w.gpus.devices = devices
		}
		if told := boards(); len(told) != 1 || len(told[0].Devices) != 0 || told[0].Text == "" ||
			strings.Contains(told[0].Text, "not looked") {
			t.Fatalf("without devices watchers are told %+v", told)
		}
		set(gpu.Device{UUID: "GPU-a", Model: "Test", Memory: 8 * gpu.GiB})
		if told := boards(); len(told) < 5 || len(told[len(told)-1].Devices) != 1 {
			t.Fatalf("of a device that comes watchers are told %d times", len(told))
		}
		set()
		if told := boards(); len(told) == 0 || len(told[len(told)-1].Devices) != 0 {
			t.Fatalf("that the device has gone is not told by %d boards", len(told))
		}
	})
}
