package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"slipway/gpu"
)

// The behaviour of a card.
const (
	powerLag  = 1200 * time.Millisecond // for power to follow the load
	heatLag   = 45 * time.Second        // for the temperature to follow power
	ambient   = 31.0                    // degrees with nothing drawn
	hot       = 47.0                    // degrees above ambient at the limit
	reserved  = 40                      // a fortieth of the memory is the driver's
	powerBend = 0.85                    // power grows a little slower than load
)

// How far power and temperature come in one step towards where they are going.
var (
	powerGain = 1 - math.Exp(-step.Seconds()/powerLag.Seconds())
	heatGain  = 1 - math.Exp(-step.Seconds()/heatLag.Seconds())
)

type card struct {
	device  gpu.Device
	idle    float64 // watts
	limit   float64 // watts
	watts   float64
	degrees float64
	energy  float64       // joules since the driver was loaded
	busy    time.Duration // since the last sample
	watched time.Duration // how long that is
	level   int           // its load, in hundredths of a percent, when that was last read
	used    gpu.Bytes
	lost    *gpu.Loss
}

func newCard(seed uint64, index int, c Card) *card {
	rng := rand.New(rand.NewPCG(seed, uint64(index)+1))
	yes := gpu.Probe{State: gpu.Yes}
	no := gpu.Probe{State: gpu.No, Why: "The device is simulated."}
	d := gpu.Device{
		UUID: gpu.UUID(fmt.Sprintf("GPU-%08x-%04x-%04x-%04x-%012x", rng.Uint32(), rng.Uint32()>>16, rng.Uint32()>>16,
			rng.Uint32()>>16, rng.Uint64()>>16)),
		Vendor: gpu.Sim, Model: c.Model + " (simulated)", Index: index,
		PCI:    fmt.Sprintf("0000:%02x:00.0", 0x17+index*0x23%0xe0),
		Memory: c.Memory, Reserved: c.Memory / reserved / gpu.MiB * gpu.MiB, Driver: "sim",
		Capabilities: gpu.Capabilities{ProcessMemory: yes, ProcessUtil: yes, Energy: yes, Accounting: no, MIG: no,
			MemoryLimit: no, MPS: no},
	}
	for i, profile := range c.Instances {
		d.Instances = append(d.Instances, gpu.Instance{
			UUID: gpu.UUID(fmt.Sprintf("MIG-%s-%d", strings.TrimPrefix(string(d.UUID), "GPU-"), i)), Profile: profile,
			Memory: memoryOf(profile),
		})
		d.Capabilities.MIG = yes
	}
	return &card{
		device: d, idle: float64(c.Idle) / 1000, limit: float64(c.Limit) / 1000, watts: float64(c.Idle) / 1000,
		degrees: ambient + hot*float64(c.Idle)/float64(c.Limit),
	}
}

func memoryOf(profile string) gpu.Bytes {
	_, memory, _ := strings.Cut(profile, ".")
	n, _ := strconv.Atoi(strings.TrimRight(strings.SplitN(memory, "+", 2)[0], "gb"))
	return gpu.Bytes(n) * gpu.GiB
}

// step moves one card by one step: programs take turns, and the card draws power for that.
func (m *Machine) step(c *card, at time.Duration) {
	var wanted, idle float64 = 0, 1
	here := m.here[:0]
	for _, p := range m.running {
		if p.Device == c.device.UUID {
			p.want(at)
			wanted += p.wish
			idle *= 1 - p.wish
			here = append(here, p)
		}
	}
	busy := 1 - idle
	m.here = here
	c.used = m.fill(c, here)
	dynamic := 0.0
	if busy > 0 {
		dynamic = (c.limit*0.96 - c.idle) * math.Pow(busy, powerBend)
	}
	c.watts += (c.idle + dynamic - c.watts) * powerGain
	c.degrees += (ambient + hot*c.watts/c.limit - c.degrees) * heatGain
	c.energy += c.watts * step.Seconds()
	c.busy += time.Duration(busy * float64(step))
	c.watched += step
	for _, p := range here {
		turn := time.Duration(0)
		if wanted > 0 {
			turn = time.Duration(busy * p.wish / wanted * float64(step))
		}
		p.busy += turn
		p.truth.Busy += turn
		p.truth.Memory = p.truth.Memory.Plus(gpu.Held(p.memory, step.Milliseconds()))
		p.truth.Peak = max(p.truth.Peak, p.memory)
	}
}

// fill gives programs the memory they want, while there is some.
func (m *Machine) fill(c *card, here []*program) gpu.Bytes {
	var used gpu.Bytes
	for _, p := range here {
		used += p.memory
	}
	for _, p := range here {
		grow := min(p.hunger, c.device.Usable()-used)
		p.memory += grow
		used += grow
	}
	return used
}

func (c *card) sample() gpu.DeviceSample {
	c.level = share(c.busy, c.watched, c.level)
	return gpu.DeviceSample{
		UUID: c.device.UUID, Util: new(c.level), MemoryUsed: new(c.used), MemoryFree: new(c.device.Usable() - c.used),
		Power: new(gpu.MilliWatt(c.watts * 1000)), PowerLimit: new(gpu.MilliWatt(c.limit * 1000)),
		Energy: new(gpu.MilliJoule(c.energy * 1000)), Temperature: new(int(math.Round(c.degrees))),
	}
}

func share(part, whole time.Duration, before int) int {
	if whole <= 0 {
		return before
	}
	return int(math.Round(float64(part) / float64(whole) * 10000))
}
