package gpu

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// changing is a machine that changes under the books: it knows what was promised
// to whom by itself, and counts without a ledger.
type changing struct {
	t       *testing.T
	rng     *rand.Rand
	seed    uint64
	step    int
	devices []Device // those that the machine has, listed or not
	gone    map[UUID]bool
	config  Config
	ledger  *Ledger
	stored  map[string][]Grant
	made    int // instances, so that no name is used twice
	given   int
	turned  int // changes of the machine while something was held
}

func newChanging(t *testing.T, seed uint64) *changing {
	c := &changing{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 22)), gone: map[UUID]bool{},
		stored: map[string][]Grant{}}
	c.devices = cards(1+c.rng.IntN(4), Bytes(4+c.rng.IntN(80))*GiB)
	if c.rng.IntN(8) == 0 {
		c.devices[0].Memory, c.devices[0].Reserved = 0, 0 // it does not tell
	}
	c.configure()
	c.restart()
	return c
}

func (c *changing) configure() {
	c.config = Config{Quantum: []Share{1, 10, 100, 250, 300}[c.rng.IntN(5)],
		Strategy:           []Strategy{Fill, Evenly}[c.rng.IntN(2)],
		AllowFragmentation: c.rng.IntN(2) == 0, Floor: Bytes(c.rng.IntN(3)) * GiB,
		Slack: []int{0, -1, 200}[c.rng.IntN(3)]}
	if c.rng.IntN(4) == 0 {
		c.config.Exclude = []UUID{c.devices[c.rng.IntN(len(c.devices))].UUID}
	}
}

// listed is what the drivers tell of now.
func (c *changing) listed() []Device {
	return slices.DeleteFunc(slices.Clone(c.devices), func(d Device) bool { return c.gone[d.UUID] })
}

// restart forgets everything but what was stored.
func (c *changing) restart() {
	c.ledger = Restore(c.listed(), c.config, c.stored)
}

// change is one change of the machine.
func (c *changing) change() {
	d := &c.devices[c.rng.IntN(len(c.devices))]
	switch c.rng.IntN(8) {
	case 0:
		d.Reserved += []Bytes{1, MiB, GiB, d.Memory / 9}[c.rng.IntN(4)]
	case 1:
		d.Reserved = max(0, d.Reserved-[]Bytes{1, GiB, d.Reserved, d.Reserved}[c.rng.IntN(4)])
	case 2:
		if d.Memory > 0 {
			d.Memory = Bytes(8+c.rng.IntN(80))*GiB + Bytes(c.rng.IntN(1000))
		}
	case 3, 4:
		c.divide(d)
	case 5:
		c.gone[d.UUID] = !c.gone[d.UUID] && c.rng.IntN(3) == 0
	case 6:
		if d.Lost == nil && c.rng.IntN(3) == 0 {
			d.Lost = &Loss{Kind: LossFallen, Why: "it fell off the bus"}
		} else {
			d.Lost = nil
		}
	default:
		c.configure() // the agent was started with other settings
		c.restart()
	}
	if len(c.stored) > 0 {
		c.turned++
	}
	if c.rng.IntN(2) == 0 {
		c.restart()
		return
	}
	c.ledger = relisted(c.ledger, c.listed())
}

// divide makes MIG instances of a device, others, or none.
func (c *changing) divide(d *Device) {
	if len(d.Instances) > 0 && c.rng.IntN(3) > 0 {
		d.Instances = nil
		return
	}
	d.Instances = nil
	for range 1 + c.rng.IntN(4) {
		name := UUID(fmt.Sprintf("MIG-%d", c.made))
		if c.made++; c.rng.IntN(3) == 0 {
			name = UUID(fmt.Sprintf("MIG-%s-%d", d.UUID, len(d.Instances))) // as it was called before
		}
		d.Instances = append(d.Instances, Instance{UUID: name, Profile: "1g.10gb", Memory: d.Usable() / 8, Slices: 125})
	}
}

// operate does one thing and checks everything.
func (c *changing) operate() {
	holder := fmt.Sprintf("s%d", c.rng.IntN(10))
	switch n := c.rng.IntN(10); {
	case n < 5:
		if _, has := c.stored[holder]; has {
			break
		}
		p, err := c.ledger.Propose(anyRequest(c.rng))
		if err != nil || len(p.Grants) == 0 {
			break
		}
		c.judge(holder, p.Grants)
		if err := c.ledger.Hold(holder, p.Grants); err != nil {
			c.t.Fatalf("seed %d step %d: %+v was proposed and is refused: %v", c.seed, c.step, p.Grants, err)
		}
		c.stored[holder] = p.Grants
		c.given++
	case n < 7:
		c.ledger.Release(holder)
		delete(c.stored, holder)
	case n < 8:
		c.restart()
	default:
		c.change()
	}
	c.check()
}

// judge fails the test where what is about to be given is another's.
func (c *changing) judge(holder string, grants []Grant) {
	for i, g := range grants {
		at := slices.IndexFunc(c.devices, func(d Device) bool { return d.UUID == g.Device })
		if at < 0 || c.gone[g.Device] || c.devices[at].Lost != nil || slices.Contains(c.config.Exclude, g.Device) {
			c.t.Fatalf("seed %d step %d: %s is given %+v, which is not there", c.seed, c.step, holder, g)
		}
		d := c.devices[at]
		if divided := len(d.Instances) > 0; divided != (g.Instance != "") {
			c.t.Fatalf("seed %d step %d: %s is given %+v of %+v", c.seed, c.step, holder, g, d)
		}
		others := append(c.heldOn(g.Device), grants[:i]...)
		others = slices.DeleteFunc(others, func(o Grant) bool { return o.Device != g.Device })
		if wrong := collision(d, append(others, g), c.config.Floor); wrong != "" {
			c.t.Fatalf("seed %d step %d: %s is given %+v: %s", c.seed, c.step, holder, g, wrong)
		}
	}
}

func (c *changing) heldOn(device UUID) (held []Grant) {
	for _, grants := range c.stored {
		for _, g := range grants {
			if g.Device == device {
				held = append(held, g)
			}
		}
	}
	return held
}

// collision says why grants of one device do not go together on it.
func collision(d Device, grants []Grant, floor Bytes) string {
	var share Share
	var memory Bytes
	whole, instances := 0, map[UUID]bool{}
	for _, g := range grants {
		switch {
		case g.Instance == "":
			share, memory = share+g.Share, memory+g.Memory
		case instances[g.Instance]:
			return "an instance is held twice"
		case !slices.ContainsFunc(d.Instances, func(i Instance) bool { return i.UUID == g.Instance }):
			return "an instance is not there"
		default:
			instances[g.Instance] = true
		}
		if g.Whole {
			whole++
		}
	}
	switch {
	case share > 0 && len(d.Instances) > 0:
		return "it is divided"
	case share > WholeDevice || whole > 0 && len(grants) > 1:
		return fmt.Sprintf("it is held %s times over", share)
	case whole == 0 && d.Memory > 0 && share > 0 && memory > max(0, d.Usable()-floor):
		return fmt.Sprintf("%s of %s of memory is held", memory, d.Usable()-floor)
	}
	return ""
}

// check compares the ledger with what is known without it.
func (c *changing) check() {
	if got, want := len(holdersOf(c.ledger)), len(c.stored); got != want {
		c.t.Fatalf("seed %d step %d: %d hold devices and %d should", c.seed, c.step, got, want)
	}
	for holder, grants := range c.stored {
		if !slices.Equal(c.ledger.holders[holder], grants) {
			c.t.Fatalf("seed %d step %d: %s holds %+v and should hold %+v", c.seed, c.step, holder,
				c.ledger.holders[holder], grants)
		}
	}
	views := c.ledger.Free()
	for _, v := range views {
		held := c.heldOn(v.Device.UUID)
		if len(held) != len(v.Holdings) {
			c.t.Fatalf("seed %d step %d: %d hold %s and %d should", c.seed, c.step, len(v.Holdings), v.Device.UUID,
				len(held))
		}
		if c.gone[v.Device.UUID] != v.Absent {
			c.t.Fatalf("seed %d step %d: %s is seen as %+v", c.seed, c.step, v.Device.UUID, v)
		}
		wrong := collision(v.Device, held, 0)
		if !v.Absent && (wrong != "") != (v.Over != "") {
			c.t.Fatalf("seed %d step %d: %s is over-allocated as %q, and it is %q", c.seed, c.step, v.Device.UUID,
				v.Over, wrong)
		}
		if (wrong != "" || v.Absent || v.Device.Lost != nil || v.Excluded) && (v.Free > 0 || len(v.Instances) > 0) {
			c.t.Fatalf("seed %d step %d: %s has something to give: %+v", c.seed, c.step, v.Device.UUID, v)
		}
		if len(v.Device.Instances) == 0 && v.Free%c.config.Quantum != 0 {
			c.t.Fatalf("seed %d step %d: %s of %s is free, in quanta of %s", c.seed, c.step, v.Free, v.Device.UUID,
				c.config.Quantum)
		}
	}
	if len(views) < len(c.listed()) {
		c.t.Fatalf("seed %d step %d: %d devices are seen of %d", c.seed, c.step, len(views), len(c.listed()))
	}
	if c.step%32 == 0 {
		c.compare()
	}
}

// compare holds the ledger against one that is made of what was stored.
func (c *changing) compare() {
	for _, wrong := range Restore(c.listed(), c.config, nil).Check() {
		c.t.Fatalf("seed %d step %d: with nothing held: %v", c.seed, c.step, wrong)
	}
	fresh := Restore(c.listed(), c.config, c.stored)
	seen := func(l *Ledger) string {
		for _, s := range l.slots {
			if s.absent { // of one that is gone only its holders are known
				s.device, s.capacity, s.floor, s.excluded = Device{UUID: s.device.UUID}, 0, 0, false
			}
		}
		l.sort()
		return snapshot(l)
	}
	if got, want := seen(c.ledger.Clone()), seen(fresh); got != want {
		c.t.Fatalf("seed %d step %d: the ledger says\n%s\nand after a restart\n%s", c.seed, c.step, got, want)
	}
}

// Whatever happens to the machine, nobody who holds a device is forgotten, and
// nothing is given that another holds. 200,000 operations.
func TestPromisesOutliveWhateverHappensToTheMachine(t *testing.T) {
	const seeds, steps = 1000, 200
	given, turned := 0, 0
	for seed := range uint64(seeds) {
		c := newChanging(t, seed)
		for c.step = range steps {
			c.operate()
		}
		for holder := range c.stored {
			c.ledger.Release(holder)
		}
		clear(c.stored)
		c.check()
		c.compare()
		given, turned = given+c.given, turned+c.turned
	}
	t.Logf("%d operations gave %d times, and the machine changed %d times under what was held", seeds*steps, given,
		turned)
	if given < seeds*steps/25 || turned < seeds*steps/10 {
		t.Error("too little happened")
	}
}
