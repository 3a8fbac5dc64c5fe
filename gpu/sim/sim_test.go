package sim

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"slipway/gpu"
)

// clock is a time that tests set.
type clock struct{ at gpu.Moment }

func newClock() *clock {
	return &clock{gpu.Moment{BootID: "boot-1", Boot: time.Hour, Awake: time.Hour,
		Wall: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}}
}

func (c *clock) now() gpu.Moment { return c.at }

func (c *clock) pass(d time.Duration) {
	c.at.Boot, c.at.Awake, c.at.Wall = c.at.Boot+d, c.at.Awake+d, c.at.Wall.Add(d)
}

func (c *clock) sleep(d time.Duration) {
	c.at.Boot, c.at.Wall = c.at.Boot+d, c.at.Wall.Add(d)
}

func box(letter string) string { return strings.Repeat(letter, 64) }

func read(t *testing.T, m *Machine) gpu.Sample {
	t.Helper()
	s, err := m.Sample(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func inventory(t *testing.T, m *Machine) []gpu.Device {
	t.Helper()
	devices, err := m.Inventory(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return devices
}

func TestMachineRepeatsItselfWhateverItIsAsked(t *testing.T) {
	run := func(every time.Duration) string {
		c := newClock()
		m := Open(Config{Seed: 7, Cards: []Card{Server, Workstation}, Clock: c.now, Foreign: true, Desktop: true,
			Truth: true})
		m.Run(Program{Container: box("a"), Device: inventory(t, m)[0].UUID, Memory: 20 * gpu.GiB})
		for passed := time.Duration(0); passed < 20*time.Minute; passed += every {
			c.pass(every)
			read(t, m)
		}
		truth := m.Truth()
		s := read(t, m)
		for i := range s.Processes {
			s.Processes[i].Util = nil // an average since the last look
		}
		for i := range s.Devices {
			s.Devices[i].Util = nil
		}
		s.Since = 0
		data, err := json.Marshal([]any{s, truth[Place{box("a"), m.cards[0].device.UUID}].Busy, len(truth)})
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	first, second := run(2*time.Second), run(10*time.Second)
	if first != second {
		t.Errorf("asked every 2 s and every 10 s it says\n%s\n%s", first, second)
	}
	if !strings.Contains(first, "Xorg") {
		t.Error("no desktop is there")
	}
}

func TestMachineBehavesLikeDevices(t *testing.T) {
	c := newClock()
	m := Open(Config{Seed: 3, Cards: []Card{Server}, Clock: c.now})
	device := inventory(t, m)[0]
	c.pass(10 * time.Second)
	idle := read(t, m)
	if d := idle.Devices[0]; *d.Util != 0 || *d.MemoryUsed != 0 || *d.Power < 60_000 || *d.Power > 80_000 {
		t.Errorf("idle it says util %d, %s used, %d mW", *d.Util, *d.MemoryUsed, *d.Power)
	}
	pids := m.RunGranted(box("a"), Training, []gpu.Grant{{Device: device.UUID, Share: 500, Memory: 39 * gpu.GiB}})
	c.pass(4 * time.Second)
	if got := *read(t, m).Devices[0].MemoryUsed; got < 5*gpu.GiB || got > 30*gpu.GiB {
		t.Errorf("while it loads %s is used", got)
	}
	before := read(t, m)
	c.pass(5 * time.Minute)
	busy := read(t, m)
	d := busy.Devices[0]
	if *d.Util < 8000 || *d.Power < 500_000 || *d.Power > 700_000 || *d.Temperature < 60 || *d.Temperature > 90 {
		t.Errorf("busy it says util %d, %d mW, %d degrees", *d.Util, *d.Power, *d.Temperature)
	}
	if *d.MemoryUsed != 39*gpu.GiB/10*9 || *d.MemoryUsed+*d.MemoryFree != device.Usable() {
		t.Errorf("busy it uses %s and has %s free", *d.MemoryUsed, *d.MemoryFree)
	}
	if joules := (*d.Energy - *before.Devices[0].Energy) / 1000; joules < 120_000 || joules > 210_000 {
		t.Errorf("5 minutes at about 600 W are %d J", joules)
	}
	if p := busy.Processes[0]; p.PID != pids[0] || p.Container != box("a") || *p.Util > *d.Util+1 ||
		*p.Util < *d.Util-1 {
		t.Errorf("the only process says %+v, util %d of %d", p, *p.Util, *d.Util)
	}
	m.EndContainer(box("a"))
	c.pass(5 * time.Minute)
	read(t, m)
	c.pass(2 * time.Second)
	if s := read(t, m); len(s.Processes) != 0 || *s.Devices[0].Power > 80_000 || *s.Devices[0].MemoryUsed != 0 ||
		*s.Devices[0].Temperature > 45 {
		t.Errorf("after the end it says %+v, %d mW, %d degrees", s.Processes, *s.Devices[0].Power,
			*s.Devices[0].Temperature)
	}
}

func TestMachineSharesTurnsAndMemory(t *testing.T) {
	c := newClock()
	m := Open(Config{Seed: 5, Cards: []Card{Workstation}, Clock: c.now})
	device := inventory(t, m)[0]
	for _, letter := range []string{"a", "b", "c"} {
		m.Run(Program{Container: box(letter), Device: device.UUID, Memory: 15 * gpu.GiB})
	}
	for range 60 {
		c.pass(2 * time.Second)
		s := read(t, m)
		util, memory := 0, gpu.Bytes(0)
		for _, p := range s.Processes {
			util, memory = util+*p.Util, memory+*p.Memory
		}
		if util > *s.Devices[0].Util+3 || *s.Devices[0].Util > 10000 || memory != *s.Devices[0].MemoryUsed ||
			memory > device.Usable() {
			t.Fatalf("processes have %d of %d, and %s of %s", util, *s.Devices[0].Util, memory,
				*s.Devices[0].MemoryUsed)
		}
	}
}

func TestMachineEndsWhatIsToEnd(t *testing.T) {
	c := newClock()
	m := Open(Config{Seed: 5, Clock: c.now, Truth: true})
	device := inventory(t, m)[0].UUID
	m.Run(Program{Device: device, For: 5 * time.Second})
	pid := m.Run(Program{Device: device})
	c.pass(6 * time.Second)
	if s := read(t, m); len(s.Processes) != 1 || s.Processes[0].PID != pid {
		t.Errorf("after its time there is %+v", s.Processes)
	}
	c.sleep(time.Hour)
	before := m.Truth()[Place{"", device}].Busy
	read(t, m)
	if after := m.Truth()[Place{"", device}].Busy; after != before {
		t.Errorf("asleep it worked for %s", after-before)
	}
	m.Reload()
	if s := read(t, m); len(s.Processes) != 0 || *s.Devices[0].Energy != 0 || s.Epoch.Driver != "sim-2" {
		t.Errorf("after the driver was loaded anew: %+v", s)
	}
	c.at.BootID, c.at.Boot, c.at.Awake = "boot-2", time.Second, time.Second
	if s := read(t, m); s.Epoch.Boot != "boot-2" || s.At.Boot != time.Second {
		t.Errorf("after the boot: %+v", s.Epoch)
	}
}

func TestMachineFailsWhenToldTo(t *testing.T) {
	c := newClock()
	m := Open(Config{Clock: c.now})
	gone := &gpu.Error{Code: gpu.CodeSourceUnavailable, Message: "The driver is gone."}
	m.Break(gone)
	if _, err := m.Sample(context.Background()); !errors.Is(err, gone) {
		t.Errorf("broken it says %v", err)
	}
	m.Break(nil)
	read(t, m)
	if err := errors.Join(m.Close(), m.Close()); err != nil {
		t.Error(err)
	}
	var e *gpu.Error
	if _, err := m.Inventory(context.Background()); !errors.As(err, &e) || e.Code != gpu.CodeSourceUnavailable {
		t.Errorf("closed it says %v", err)
	}
}

func TestForeignProgramsComeAndGo(t *testing.T) {
	c := newClock()
	m := Open(Config{Seed: 11, Cards: []Card{Server, Server}, Clock: c.now, Foreign: true})
	came, went, there := 0, 0, 0
	for range 1800 {
		c.pass(2 * time.Second)
		n := len(read(t, m).Processes)
		came, went, there = came+max(0, n-there), went+max(0, there-n), n
	}
	if came < 4 || went < 4 || came > 40 {
		t.Errorf("in an hour %d came and %d went", came, went)
	}
}

func TestInstancesAreNamedByTheirProfiles(t *testing.T) {
	c := newClock()
	m := Open(Config{Clock: c.now,
		Cards: []Card{{Model: "A100", Memory: 40 * gpu.GiB, Idle: 50_000, Limit: 400_000,
			Instances: []string{"1g.5gb", "3g.20gb", "1g.5gb+me"}}}})
	d := inventory(t, m)[0]
	if len(d.Instances) != 3 || d.Instances[0].Memory != 5*gpu.GiB || d.Instances[1].Memory != 20*gpu.GiB ||
		d.Instances[2].Memory != 5*gpu.GiB || d.Instances[0].UUID == d.Instances[1].UUID {
		t.Errorf("instances are %+v", d.Instances)
	}
}

func TestLookingTakesNothingFromTheNextSample(t *testing.T) {
	run := func(look bool) (gpu.Sample, gpu.Sample) {
		c := newClock()
		m := Open(Config{Seed: 4, Clock: c.now})
		m.RunGranted(box("a"), Training, []gpu.Grant{{Device: inventory(t, m)[0].UUID, Memory: 8 * gpu.GiB}})
		read(t, m)
		c.pass(20 * time.Second)
		var seen gpu.Sample
		if look {
			for range 2 {
				c.pass(time.Second)
				var err error
				if seen, err = m.Look(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		} else {
			c.pass(2 * time.Second)
		}
		return read(t, m), seen
	}
	plain, _ := run(false)
	looked, seen := run(true)
	if *plain.Devices[0].Util != *looked.Devices[0].Util || *plain.Processes[0].Util != *looked.Processes[0].Util {
		t.Errorf("the load is %d, and %d where somebody looked", *plain.Devices[0].Util, *looked.Devices[0].Util)
	}
	if *seen.Devices[0].Util != *looked.Devices[0].Util || *seen.Devices[0].Util == 0 ||
		*seen.Processes[0].Memory == 0 {
		t.Errorf("who looks sees %+v", seen.Devices[0])
	}
}
