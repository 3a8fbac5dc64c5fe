package gpu

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

// An audit that finds nothing is worth something only if it finds what is
// wrong.
func TestCheckFindsWhatIsWrongWithALedger(t *testing.T) {
	half := Holding{"a", Grant{Device: "GPU-0", Share: 500}}
	for name, c := range map[string]struct {
		spoil func(*Ledger, *slot)
		want  string
	}{
		"a holder the devices do not know": {func(l *Ledger, _ *slot) { l.holders["b"] = []Grant{half.Grant} },
			"b holds"},
		"a device held by nobody": {func(l *Ledger, _ *slot) { delete(l.holders, "a") }, "holds nothing"},
		"a wrong sum": {func(_ *Ledger, s *slot) { s.used = 100 },
			"counts 0.1 and 9.9 GiB promised"},
		"too many shares": {func(_ *Ledger, s *slot) {
			s.holdings = append(s.holdings, half, half)
			s.recount()
		}, "1.5 of it is allocated, held by a"},
		"kinds mixed": {func(_ *Ledger, s *slot) {
			s.holdings = append(s.holdings, Holding{"a", Grant{Device: "GPU-0", Share: 1000, Whole: true}})
		}, "allocated by shares and by whole"},
		"an instance twice": {func(_ *Ledger, s *slot) {
			i := Holding{"a", Grant{Device: "GPU-0", Instance: "M"}}
			s.holdings, s.device.Instances = []Holding{i, i}, []Instance{{UUID: "M"}}
		}, "instance M is allocated twice"},
		"a whole device twice": {func(_ *Ledger, s *slot) {
			w := Holding{"a", Grant{Device: "GPU-0", Share: 1000, Whole: true}}
			s.holdings = []Holding{w, w}
		}, "as a whole 2 times"},
		"too much memory": {func(_ *Ledger, s *slot) { s.device.Memory = 1; s.holdings[0].Grant.Memory = 2 },
			"of memory"},
		"a device misfiled":    {func(l *Ledger, s *slot) { s.device.UUID = "X" }, "under another name"},
		"a device not indexed": {func(l *Ledger, _ *slot) { delete(l.index, "GPU-0") }, "index"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := NewLedger(cards(1, 20*GiB), Config{})
			must(t, err)
			half.Grant = filled(l, half.Grant)[0]
			must(t, l.Hold("a", []Grant{half.Grant}))
			c.spoil(l, l.slots[0])
			var text []string
			for _, err := range l.Check() {
				text = append(text, err.Error())
			}
			if !strings.Contains(strings.Join(text, "\n"), c.want) {
				t.Errorf("the audit says %q, want something with %q", text, c.want)
			}
		})
	}
}

func TestCheckFindsWhatIsWrongWithAccounts(t *testing.T) {
	for name, spoil := range map[string]func(*Accounts){
		"busy time from nowhere":    func(a *Accounts) { a.state.Rows[0].Counters.BusyGPUMs++ },
		"energy that went missing":  func(a *Accounts) { a.state.Devices[0].Counted.EnergyDyn++ },
		"memory from nowhere":       func(a *Accounts) { a.state.Devices[0].Counted.VRAM = Held(1, 1) },
		"time that is not known of": func(a *Accounts) { a.state.Rows[0].Held++ },
		"a negative counter":        func(a *Accounts) { a.state.Rows[0].Counters.VRAMPeak = -1 },
		"estimates beyond all":      func(a *Accounts) { a.state.Rows[0].Counters.EnergyEstimated = 1 << 40 },
		"two open rows":             func(a *Accounts) { a.state.Rows = append(a.state.Rows, a.state.Rows[0]) },
	} {
		t.Run(name, func(t *testing.T) {
			a := NewAccounts(State{})
			at := Moment{BootID: "b", Boot: time.Second, Awake: time.Second, Wall: time.Unix(1, 0)}
			a.Start(at, Holder{Session: "a", Grants: []Grant{{Device: "G", Share: 100}}})
			a.Book(Sample{At: at, Devices: []DeviceSample{{UUID: "G"}}})
			if errs := a.Check(); len(errs) > 0 {
				t.Fatal(errs)
			}
			spoil(a)
			if len(a.Check()) == 0 {
				t.Error("the audit finds nothing")
			}
		})
	}
}

func TestLedgerClonesAreIndependent(t *testing.T) {
	l := ledgerOf(t, cards(2, 20*GiB), Config{})
	must(t, l.Hold("a", filled(l, Grant{Device: "GPU-0", Share: 500})))
	before := snapshot(l)
	c := l.Clone()
	must(t, c.Hold("b", filled(c, Grant{Device: "GPU-0", Share: 500},
		Grant{Device: "GPU-1", Share: 1000, Whole: true})))
	c.Release("a")
	if snapshot(l) != before {
		t.Error("what was tried on a clone changed the ledger")
	}
	audit(t, c)
	if reflect.DeepEqual(l.holders["b"], c.holders["b"]) || len(holdersOf(c)) != 1 {
		t.Errorf("the clone has %v", holdersOf(c))
	}
}

func TestLedgerKeepsAFloorForWhatIsNoSession(t *testing.T) {
	l := ledgerOf(t, cards(2, 20*GiB), Config{Floor: GiB})
	usable := cards(1, 20*GiB)[0].Usable()
	views := l.Free()
	if views[0].FreeMemory != usable-GiB || views[1].FreeMemory != usable-GiB {
		t.Errorf("%s and %s can be promised", views[0].FreeMemory, views[1].FreeMemory)
	}
	p, err := l.Propose(Request{Devices: 2})
	must(t, err)
	if p.Grants[0].Memory != usable-GiB {
		t.Errorf("a whole device is %s", p.Grants[0].Memory)
	}
}

func TestLedgersThatMakeNoSenseAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		devices []Device
		config  Config
	}{
		"a quantum of two devices": {nil, Config{Quantum: 2000}},
		"a negative quantum":       {nil, Config{Quantum: -1}},
		"an unknown strategy":      {nil, Config{Strategy: "best"}},
		"a device twice":           {append(cards(1, GiB), cards(1, GiB)...), Config{}},
		"a device without a name":  {[]Device{{}}, Config{}},
	} {
		if _, err := NewLedger(c.devices, c.config); code(err) != CodeHoldInvalid {
			t.Errorf("%s gives %v", name, err)
		}
	}
	l := ledgerOf(t, nil, Config{})
	if l.Quantum() != DefaultQuantum {
		t.Errorf("the quantum is %s", l.Quantum())
	}
	if _, err := l.Propose(Request{Shares: 500}); code(err) != CodeGrantImpossible ||
		err.Error() != "This machine has no devices." {
		t.Errorf("without devices: %v", err)
	}
	if err := l.Hold("", nil); code(err) != CodeHoldInvalid {
		t.Errorf("nobody holds: %v", err)
	}
}

func TestDevicesThatDoNotTellTheirMemoryAreShared(t *testing.T) {
	l := ledgerOf(t, []Device{{UUID: "U", Model: "Unified"}}, Config{})
	grants, ok := l.Offer(Request{Shares: 500}, Room{"U": 0})
	if !ok || grants[0].Memory != 0 {
		t.Errorf("a half is %+v, %v", grants, ok)
	}
	if _, err := l.Propose(Request{Memory: GiB}); code(err) != CodeGrantImpossible {
		t.Errorf("memory of it: %v", err)
	}
}

func TestAccountsGoOnWhenASessionIsStartedAgainAtOnce(t *testing.T) {
	b := newBench(t)
	b.start("a", 1000, GiB)
	b.book(DeviceSample{Util: ptr(0)})
	b.pass(time.Second)
	b.a.Stop(b.at, "a")
	b.pass(time.Second)
	b.start("a", 500, GiB)
	b.start("a", 1, 1) // told again
	b.pass(time.Second)
	b.book(DeviceSample{Util: ptr(5000)}, proc("a", 5000, GiB))
	b.want("promise", b.row("a").AllocGPUMs, int64(1500))
	b.want("covered", b.row("a").CoveredMs, int64(2000))
	if got := b.a.Sessions(); len(got) != 1 || got[0] != "a" {
		t.Errorf("running are %v", got)
	}
}

func TestIdlePowerFollowsTheDevice(t *testing.T) {
	b := newBench(t)
	draw := func(n int, watts MilliWatt) {
		for range n {
			b.pass(2 * time.Second)
			b.book(DeviceSample{Util: ptr(0), Power: &watts})
		}
	}
	draw(70, 80_000)
	b.want("learned at 80 W", b.a.Devices()[0].Idle.Power(), MilliWatt(80_000))
	draw(70, 30_000)
	b.want("learned at 30 W", b.a.Devices()[0].Idle.Power(), MilliWatt(30_000))
}

func TestEmptyMachinesAreSampled(t *testing.T) {
	at := Moment{BootID: "b", Boot: time.Second, Awake: time.Second, Wall: time.Unix(7, 0)}
	source := Empty{Now: func() Moment { return at }}
	devices, err := source.Inventory(context.Background())
	must(t, err)
	s, err := source.Sample(context.Background())
	must(t, err)
	must(t, source.Close())
	if len(devices) != 0 || s.At != at || s.Epoch.Boot != "b" {
		t.Errorf("an empty machine has %v and says %+v", devices, s)
	}
}

func TestBytesAreReadAsTheyAreWritten(t *testing.T) {
	for text, want := range map[string]Bytes{
		"512m": 512 * MiB, "1.5g": GiB + GiB/2, "2TiB": 2 * TiB, "1048576": MiB, "4 KB": 4 * KiB,
		"1.5 GiB": GiB + GiB/2, "7 B": 7, "0": 0,
	} {
		got, err := ParseBytes(text)
		if err != nil || got != want {
			t.Errorf("%q is %d, %v", text, got, err)
		}
		if again, err := ParseBytes(got.String()); err != nil || again != got {
			t.Errorf("%s is read as %d, %v", got, again, err)
		}
		var read Bytes
		if err := json.Unmarshal([]byte(`"`+text+`"`), &read); err != nil || read != want {
			t.Errorf("%q in JSON is %d, %v", text, read, err)
		}
	}
	for _, text := range []string{"-1", "x", "1i", "9e", "1.2.3g", "99999999t", ""} {
		if got, err := ParseBytes(text); err == nil {
			t.Errorf("%q is read as %d", text, got)
		}
	}
	for _, data := range []string{`-1`, `1.5`, `"x"`, `true`} {
		var read Bytes
		if err := json.Unmarshal([]byte(data), &read); err == nil {
			t.Errorf("%s in JSON is read as %d", data, read)
		}
	}
}
