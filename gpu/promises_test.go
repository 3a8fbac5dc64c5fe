package gpu

import (
	"testing"
)

// shrunk is cards after their drivers kept more for themselves.
func shrunk(devices []Device, by Bytes) []Device {
	var list []Device
	for _, d := range devices {
		d.Reserved += by
		list = append(list, d)
	}
	return list
}

// A driver that keeps one MiB more for itself takes no promise back: who holds
// the device holds it, and another cannot have it.
func TestWhatIsPromisedStaysPromisedWhenTheDriverKeepsMore(t *testing.T) {
	devices := cards(1, 80*GiB)
	l, err := NewLedger(devices, Config{})
	must(t, err)
	p, err := l.Propose(Request{Devices: 1})
	must(t, err)
	must(t, l.Hold("first", p.Grants))
	after := Restore(shrunk(devices, MiB), Config{}, map[string][]Grant{"first": p.Grants})
	if got := holdersOf(after); len(got) != 1 {
		t.Errorf("after the restart %v hold devices", got)
	}
	for _, r := range []Request{{Devices: 1}, {Shares: 100}, {Memory: MiB}} {
		if p, err := after.Propose(r); err == nil {
			t.Errorf("%s is given to a second session: %s", r, line(p.Grants))
		}
	}
}

// A device that is held in one way gives nothing in another, though its driver
// was told to divide it, or not to any more, meanwhile.
func TestAHeldDeviceThatIsDividedAnewGivesNothing(t *testing.T) {
	whole := Device{UUID: "GPU-0", Model: "Card", Memory: 40 * GiB}
	parts := divided3(0)
	for name, c := range map[string]struct {
		before, after Device
		held          Request
	}{
		"shares, then instances":       {whole, parts, Request{Shares: 700}},
		"all of it, then instances":    {whole, parts, Request{Devices: 1}},
		"an instance, then shares":     {parts, whole, Request{Profile: "1g.10gb"}},
		"an instance, then others":     {parts, renamed(parts), Request{Profile: "1g.10gb"}},
		"all instances, then a device": {parts, whole, Request{Profile: "1g.10gb", Count: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := NewLedger([]Device{c.before}, Config{})
			must(t, err)
			p, err := l.Propose(c.held)
			must(t, err)
			must(t, l.Hold("first", p.Grants))
			l = relisted(l, []Device{c.after})
			restored := Restore([]Device{c.after}, Config{}, map[string][]Grant{"first": p.Grants})
			for _, book := range []*Ledger{l, restored} {
				for _, r := range []Request{{Profile: "1g.10gb"}, {Shares: 300}, {Devices: 1}, {Memory: GiB}} {
					if p, err := book.Propose(r); err == nil {
						t.Errorf("%s is given: %s", r, line(p.Grants))
					}
				}
				if v := book.Free()[0]; v.Free != 0 || v.FreeMemory != 0 || len(v.Instances) != 0 ||
					len(v.Holdings) == 0 {
					t.Errorf("it is seen as %+v", v)
				}
				book.Release("first")
				want := Request{Shares: 300}
				if len(c.after.Instances) > 0 {
					want = Request{Profile: "1g.10gb"}
				}
				if _, err := book.Propose(want); err != nil {
					t.Errorf("after the release: %v", err)
				}
			}
		})
	}
}

// renamed is a device whose instances were made anew.
func renamed(d Device) Device {
	var fresh []Instance
	for _, i := range d.Instances {
		i.UUID += "-new"
		fresh = append(fresh, i)
	}
	d.Instances = fresh
	return d
}

func TestFreeIsInWholeQuanta(t *testing.T) {
	l := Restore(cards(1, 80*GiB), Config{}, map[string][]Grant{"a": {{Device: "GPU-0", Share: 250, Memory: 19 * GiB}}})
	if v := l.Free()[0]; v.Free != 700 {
		t.Errorf("0.75 of a device is left and %s in tenths is free", v.Free)
	}
}

func TestHoldRefusesMemoryThatDoesNotBelongToItsShare(t *testing.T) {
	for name, g := range map[string]Grant{
		"more than the share": {Device: "GPU-0", Share: 100, Memory: 30 * GiB},
		"a byte more": {Device: "GPU-0", Share: 100, Memory: Share(100).Of(cards(1, 80*GiB)[0].Usable()) +
			1},
		"none of what there is":    {Device: "GPU-0", Share: 100},
		"a part, called all of it": {Device: "GPU-0", Share: 100, Memory: GiB, Whole: true},
		"another instance's":       {Device: "GPU-1", Instance: "MIG-1-0", Share: 250, Memory: 20 * GiB},
		"a larger part":            {Device: "GPU-1", Instance: "MIG-1-0", Share: 500, Memory: 10 * GiB},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := NewLedger(append(cards(1, 80*GiB), divided3(1)), Config{})
			must(t, err)
			if err := l.Hold("a", []Grant{g}); code(err) != CodeHoldInvalid {
				t.Errorf("it is promised %+v: %v", g, err)
			}
		})
	}
}
