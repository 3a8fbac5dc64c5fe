package gpu

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func cards(count int, memory Bytes) []Device {
	var list []Device
	for i := range count {
		list = append(list, Device{UUID: UUID(fmt.Sprintf("GPU-%d", i)), Vendor: NVIDIA, Model: "Card", Index: i,
			Memory: memory, Reserved: memory / 100})
	}
	return list
}

func divided3(index int) Device {
	d := Device{UUID: UUID(fmt.Sprintf("GPU-%d", index)), Model: "Card", Index: index, Memory: 40 * GiB}
	for i := range 3 {
		d.Instances = append(d.Instances, Instance{UUID: UUID(fmt.Sprintf("MIG-%d-%d", index, i)), Profile: "1g.10gb",
			Memory: 10 * GiB})
	}
	return d
}

func ledgerOf(t *testing.T, devices []Device, config Config) *Ledger {
	t.Helper()
	l, err := NewLedger(devices, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { audit(t, l) })
	return l
}

// filled are grants with the memory that belongs to their shares.
func filled(l *Ledger, grants ...Grant) []Grant {
	list := slices.Clone(grants)
	for i, g := range list {
		s := l.index[g.Device]
		if s == nil || g.Memory > 0 {
			continue
		}
		list[i].Memory = g.Share.Of(s.promisable())
		for _, instance := range s.device.Instances {
			if instance.UUID == g.Instance {
				list[i].Memory = instance.Memory
			}
		}
	}
	return list
}

func audit(t *testing.T, l *Ledger) {
	t.Helper()
	for _, err := range l.Check() {
		t.Error(err)
	}
}

func code(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// line writes grants for a table: "0:0.5 1:0.5", "0:whole", "0:MIG-0-1".
func line(grants []Grant) string {
	var parts []string
	for _, g := range grants {
		what := g.Share.String()
		switch {
		case g.Whole:
			what = "whole"
		case g.Instance != "":
			what = string(g.Instance)
		}
		parts = append(parts, strings.TrimPrefix(string(g.Device), "GPU-")+":"+what)
	}
	return strings.Join(parts, " ")
}

// The table: devices as what is held of each, a request, and what comes of it.
func TestLedgerGrantsAsTheTableSays(t *testing.T) {
	fragments := Config{AllowFragmentation: true}
	fill := Config{AllowFragmentation: true, Strategy: Fill}
	fine := Config{AllowFragmentation: true, Strategy: Fill, Quantum: 10}
	for _, c := range []struct {
		name   string
		config Config
		held   []Share // of each device beforehand
		ask    string
		want   string // grants, or the code
	}{
		{"fill goes over to the next device", fine, []Share{0, 0}, "1.5", "0:1 1:0.5"},
		{"fill refuses what is not there", fine, []Share{1000, 500}, "1.5", CodeGrantUnavailable},
		{"fill uses seven whole and the rest", fine, []Share{0, 0, 0, 0, 0, 0, 0, 0}, "7.95",
			"0:1 1:1 2:1 3:1 4:1 5:1 6:1 7:0.95"},
		{"fill takes the device with most free", fill, []Share{300, 0, 500}, "0.4", "1:0.4"},
		{"fill pieces together", fill, []Share{100, 400, 900}, "1.5", "0:0.9 1:0.6"},
		{"evenly takes the smallest sufficient part", fragments, []Share{0, 300, 600}, "0.4", "2:0.4"},
		{"evenly breaks ties by order", fragments, []Share{0, 0}, "0.4", "0:0.4"},
		{"evenly halves", fragments, []Share{0, 0}, "1.6", "0:0.8 1:0.8"},
		{"evenly gives odd quanta to the first", fragments, []Share{0, 0}, "1.5", "0:0.8 1:0.7"},
		{"evenly uses three when they are more even than two", fragments, []Share{0, 400, 400}, "1.5",
			"0:0.5 1:0.5 2:0.5"},
		{"evenly takes a small device whole", fragments, []Share{0, 0, 800}, "2.2", "0:1 1:1 2:0.2"},
		{"evenly keeps the larger devices whole", fragments, []Share{0, 0, 200, 200}, "1.6", "2:0.8 3:0.8"},
		{"a share of one device stays on one", fragments, []Share{500, 500}, "0.8", CodeGrantFragmented},
		{"fill keeps it on one too", fill, []Share{500, 500}, "0.8", CodeGrantFragmented},
		{"no fragments: equal shares", Config{}, []Share{0, 0, 0}, "1.5", "0:0.8 1:0.7"},
		{"no fragments: more devices when two have no room", Config{}, []Share{500, 500, 500}, "1.5",
			"0:0.5 1:0.5 2:0.5"},
		{"no fragments: pieces are refused", Config{}, []Share{100, 400, 900}, "1.5", CodeGrantFragmented},
		{"one device, with a point", Config{}, []Share{0}, "1.0", "0:whole"},
		{"whole devices in order", Config{}, []Share{0, 100, 0}, "2", "0:whole 2:whole"},
		{"whole devices wait for shares", Config{}, []Share{0, 100}, "2", CodeGrantUnavailable},
		{"more devices than there are", Config{}, []Share{0, 0}, "3", CodeGrantImpossible},
		{"more shares than there are", fragments, []Share{0, 0}, "2.5", CodeGrantImpossible},
		{"below the quantum", Config{}, []Share{0}, "0.05", CodeRequestQuantum},
		{"memory takes the smallest share that holds it", Config{}, []Share{0}, "vram:3g", "0:0.2"},
		{"memory of a tenth", Config{}, []Share{0}, "vram:1g", "0:0.1"},
		{"memory beyond the card", Config{}, []Share{0, 0}, "vram:21g", CodeGrantImpossible},
		{"memory waits", Config{}, []Share{500, 500}, "vram:12g", CodeGrantUnavailable},
		{"memory on the best fit", Config{}, []Share{0, 300}, "vram:10g", "1:0.6"},
		{"no such profile", Config{}, []Share{0}, "mig:1g.10gb", CodeGrantImpossible},
		{"nothing", Config{}, []Share{0}, "none", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := ledgerOf(t, cards(len(c.held), 20*GiB), c.config)
			for i, share := range c.held {
				if share > 0 {
					d := UUID(fmt.Sprintf("GPU-%d", i))
					must(t, l.Hold("h"+string(d), filled(l, Grant{Device: d, Share: share})))
				}
			}
			request, err := ParseRequest(c.ask)
			must(t, err)
			before := l.Free()
			p, err := l.Propose(request)
			got := line(p.Grants)
			if err != nil {
				got = code(err)
			}
			if got != c.want {
				t.Fatalf("%s gives %q (%v), want %q", c.ask, got, err, c.want)
			}
			if !reflect.DeepEqual(before, l.Free()) {
				t.Error("proposing changed the ledger")
			}
			if err == nil {
				must(t, l.Hold("new", p.Grants))
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestLedgerSaysWhatItRounds(t *testing.T) {
	l := ledgerOf(t, cards(2, 20*GiB), Config{AllowFragmentation: true})
	p, err := l.Propose(Request{Shares: 1750})
	must(t, err)
	if r := p.Rounded; r == nil || !r.Less || r.Asked != 1750 || r.Given != 1700 || !strings.Contains(r.Why, "1.75") ||
		!strings.Contains(r.Why, "1.7") {
		t.Errorf("1.75 in tenths says %+v", p.Rounded)
	}
	if p, err = l.Propose(Request{Shares: 1500}); err != nil || p.Rounded != nil {
		t.Errorf("1.5 in tenths says %+v, %v", p.Rounded, err)
	}
	p, err = l.Propose(Request{Memory: 3 * GiB})
	must(t, err)
	if r := p.Rounded; r == nil || r.Less || r.Given != 200 {
		t.Errorf("3 GiB of 20 says %+v", p.Rounded)
	}
	if p.Grants[0].Memory != 3*GiB {
		t.Errorf("3 GiB was asked for and %s is promised", p.Grants[0].Memory)
	}
}

func TestLedgerKeepsKindsApart(t *testing.T) {
	devices := append(cards(1, 20*GiB), divided3(1))
	half := Grant{Device: "GPU-0", Share: 500}
	whole := Grant{Device: "GPU-0", Share: 1000, Whole: true}
	mig := Grant{Device: "GPU-1", Instance: "MIG-1-0", Share: 250, Memory: 10 * GiB}
	for name, c := range map[string]struct {
		first, second Grant
		want          string
	}{
		"whole after shares":     {half, whole, CodeHoldConflict},
		"shares after whole":     {whole, half, CodeHoldConflict},
		"whole twice":            {whole, whole, CodeHoldConflict},
		"two halves":             {half, half, ""},
		"more than one device":   {half, Grant{Device: "GPU-0", Share: 600}, CodeHoldConflict},
		"an instance twice":      {mig, mig, CodeHoldConflict},
		"two instances":          {mig, Grant{Device: "GPU-1", Instance: "MIG-1-1", Share: 250}, ""},
		"shares of a MIG device": {mig, Grant{Device: "GPU-1", Share: 100}, CodeHoldConflict},
		"a whole MIG device":     {half, Grant{Device: "GPU-1", Share: 1000, Whole: true}, CodeHoldInvalid},
		"no such device":         {half, Grant{Device: "GPU-9", Share: 100}, CodeHoldInvalid},
		"no such instance":       {half, Grant{Device: "GPU-1", Instance: "MIG-9", Share: 100}, CodeHoldInvalid},
		"part of a quantum":      {half, Grant{Device: "GPU-0", Share: 150}, CodeHoldInvalid},
		"nothing of a device":    {half, Grant{Device: "GPU-0"}, CodeHoldInvalid},
		"more memory than is":    {half, Grant{Device: "GPU-0", Share: 100, Memory: 30 * GiB}, CodeHoldInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			l := ledgerOf(t, devices, Config{})
			must(t, l.Hold("a", filled(l, c.first)))
			before := l.Free()
			err := l.Hold("b", filled(l, c.second))
			if code(err) != c.want || (err == nil) != (c.want == "") {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if err != nil && !reflect.DeepEqual(before, l.Free()) {
				t.Error("a refused promise changed the ledger")
			}
		})
	}
}

func TestLedgerGivesInstancesTogether(t *testing.T) {
	l := ledgerOf(t, []Device{divided3(0), divided3(1)}, Config{})
	for _, c := range []struct{ holder, ask, want string }{
		{"a", "mig:1g.10gb:2", "0:MIG-0-0 0:MIG-0-1"},
		{"b", "mig:1g.10gb", "0:MIG-0-2"},
		{"c", "mig:1g.10gb:3", "1:MIG-1-0 1:MIG-1-1 1:MIG-1-2"},
		{"d", "mig:1g.10gb", CodeGrantUnavailable},
		{"d", "0.5", CodeGrantImpossible},
		{"d", "1", CodeGrantImpossible},
		{"d", "mig:1g.10gb:7", CodeGrantImpossible},
	} {
		request, err := ParseRequest(c.ask)
		must(t, err)
		p, err := l.Propose(request)
		got := line(p.Grants)
		if err != nil {
			got = code(err)
		} else {
			must(t, l.Hold(c.holder, p.Grants))
		}
		if got != c.want {
			t.Errorf("%s for %s gives %q, want %q", c.ask, c.holder, got, c.want)
		}
	}
	if g := l.holders["a"][0]; g.Share != 250 || g.Memory != 10*GiB {
		t.Errorf("an instance of 10 of 40 GiB is granted as %+v", g)
	}
}

func TestLedgerHoldIsAllOrNoneAndRepeatable(t *testing.T) {
	l := ledgerOf(t, cards(2, 20*GiB), Config{})
	both := filled(l, Grant{Device: "GPU-0", Share: 500}, Grant{Device: "GPU-1", Share: 500})
	must(t, l.Hold("a", both))
	must(t, l.Hold("a", both))
	before := l.Free()
	if err := l.Hold("b", filled(l, Grant{Device: "GPU-0", Share: 500}, Grant{Device: "GPU-1", Share: 600})); code(
		err) != CodeHoldConflict {
		t.Errorf("got %v", err)
	}
	if err := l.Hold("a", both[:1]); code(err) != CodeHoldConflict {
		t.Errorf("another promise for the same holder gives %v", err)
	}
	l.Release("nobody")
	if !reflect.DeepEqual(before, l.Free()) {
		t.Error("failed promises left traces")
	}
	l.Release("a")
	if len(holdersOf(l)) != 0 || l.Free()[0].Kind != KindFree {
		t.Errorf("after the release there is still %+v", l.Free()[0])
	}
}

func TestLedgerKeepsPromisesOnLostDevices(t *testing.T) {
	grants := map[string][]Grant{
		"a": {{Device: "GPU-0", Share: 500}},
		"b": {{Device: "GPU-GONE", Share: 1000, Whole: true}},
		"c": {{Device: "GPU-0", Share: 700}},
		"d": {{Device: "GPU-1", Share: 250}},
	}
	l := Restore(cards(2, 20*GiB), Config{Exclude: []UUID{"GPU-1"}}, grants)
	wrong := l.Check()
	if len(wrong) != 1 || !strings.Contains(wrong[0].Error(), "1.2 of it is allocated, held by a (0.5), c (0.7)") {
		t.Fatalf("wrong is %v, want that two hold 1.2 of a device", wrong)
	}
	if got := holdersOf(l); !reflect.DeepEqual(got, []string{"a", "b", "c", "d"}) {
		t.Errorf("holders are %v", got)
	}
	if v := l.Free()[0]; v.Over == "" || v.Free != 0 {
		t.Errorf("it is seen as %+v", v)
	}
	l.Release("c")
	audit(t, l)
	if _, err := l.Propose(Request{Shares: 600}); !Waits(err) {
		t.Errorf("0.6 with 0.5 free and one device excluded gives %v", err)
	}
	l = relisted(l, cards(1, 20*GiB))
	audit(t, l)
	if v := l.Free(); len(v) != 3 || !v[1].Absent && !v[2].Absent {
		t.Errorf("devices are %+v", v)
	}
	for _, holder := range holdersOf(l) {
		l.Release(holder)
	}
	if v := l.Free(); len(v) != 1 {
		t.Errorf("absent devices stay though nobody holds them: %+v", v)
	}
	audit(t, l)
}

// Whatever is held, released, or forgotten in a crash and restored from the
// stored grants, nothing is promised twice, and what is released is as it was.
func TestLedgerNeverOverPromises(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		devices := cards(1+rng.IntN(6), Bytes(4+rng.IntN(80))*GiB)
		if rng.IntN(2) == 0 {
			devices = append(devices, divided3(len(devices)))
		}
		config := Config{Quantum: []Share{10, 100, 250, 300}[rng.IntN(4)],
			Strategy:           []Strategy{Fill, Evenly}[rng.IntN(2)],
			AllowFragmentation: rng.IntN(2) == 0, Floor: Bytes(rng.IntN(3)) * GiB}
		l, err := NewLedger(devices, config)
		must(t, err)
		stored := map[string][]Grant{}
		for step := range 150 {
			holder := fmt.Sprintf("s%d", rng.IntN(12))
			switch n := rng.IntN(10); {
			case n < 6:
				before := snapshot(l)
				p, err := l.Propose(anyRequest(rng))
				if err != nil || len(p.Grants) == 0 {
					continue
				}
				if _, has := stored[holder]; has {
					continue
				}
				must(t, l.Hold(holder, p.Grants))
				if rng.IntN(4) == 0 {
					l.Release(holder)
					if after := snapshot(l); after != before {
						t.Fatalf("seed %d step %d: release does not restore:\n%s\n%s", seed, step, before, after)
					}
					continue
				}
				stored[holder] = throughJSON(t, p.Grants)
			case n < 9:
				l.Release(holder)
				delete(stored, holder)
			default:
				before := snapshot(l)
				l = Restore(devices, config, stored)
				if after := snapshot(l); after != before {
					t.Fatalf("seed %d step %d: the crash changed the book:\n%s\n%s", seed, step, before, after)
				}
			}
			if errs := append(l.Check(), overPromised(devices, config, stored)...); len(errs) > 0 {
				t.Fatalf("seed %d step %d: %v", seed, step, errs)
			}
		}
	}
}

func anyRequest(rng *rand.Rand) Request {
	switch rng.IntN(4) {
	case 0:
		return Request{Devices: 1 + rng.IntN(3)}
	case 1:
		return Request{Memory: Bytes(1+rng.IntN(30)) * GiB}
	case 2:
		return Request{Profile: "1g.10gb", Count: 1 + rng.IntN(2)}
	}
	return Request{Shares: Share(1 + rng.IntN(2500))}
}

func throughJSON(t *testing.T, grants []Grant) (read []Grant) {
	t.Helper()
	data, err := json.Marshal(grants)
	must(t, err)
	must(t, json.Unmarshal(data, &read))
	return read
}

func snapshot(l *Ledger) string {
	data, _ := json.Marshal(struct {
		Views   []View
		Holders []string
	}{l.Free(), holdersOf(l)})
	return string(data)
}

// overPromised checks stored grants with arithmetic of its own.
func overPromised(devices []Device, config Config, stored map[string][]Grant) (errs []error) {
	for _, d := range devices {
		var share Share
		var memory Bytes
		kinds, instances := map[Kind]int{}, map[UUID]int{}
		for _, grants := range stored {
			for _, g := range grants {
				if g.Device != d.UUID {
					continue
				}
				kinds[g.kind()]++
				share, memory = share+g.Share, memory+g.Memory
				instances[g.Instance]++
				if g.kind() == KindShares && g.Share%config.Quantum != 0 {
					errs = append(errs, fmt.Errorf("%s of %s is not in quanta", g.Share, d.UUID))
				}
			}
		}
		delete(instances, "")
		for instance, n := range instances {
			if n > 1 {
				errs = append(errs, fmt.Errorf("%s is promised %d times", instance, n))
			}
		}
		if share > WholeDevice || memory > d.Memory-d.Reserved-config.Floor && memory > 0 && len(d.Instances) == 0 ||
			len(kinds) > 1 || kinds[KindWhole] > 1 {
			errs = append(errs, fmt.Errorf("%s has %s, %s promised as %v", d.UUID, share, memory, kinds))
		}
	}
	return errs
}

func TestLedgerGivesWhatIsAskedWheneverItCan(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 2))
		config := Config{Strategy: []Strategy{Fill, Evenly}[rng.IntN(2)], AllowFragmentation: true}
		devices := cards(1+rng.IntN(5), 10*GiB)
		l, err := NewLedger(devices, config)
		must(t, err)
		var free, most Share
		for i, d := range devices {
			held := Share(rng.IntN(11)) * 100
			if held > 0 {
				must(t, l.Hold(fmt.Sprint(i), filled(l, Grant{Device: d.UUID, Share: held})))
			}
			free, most = free+WholeDevice-held, max(most, WholeDevice-held)
		}
		want := Share(1+rng.IntN(len(devices)*10)) * 100
		fits := want <= most || want > WholeDevice && want <= free
		p, err := l.Propose(Request{Shares: want})
		var sum Share
		for _, g := range p.Grants {
			sum += g.Share
		}
		if fits != (err == nil) || fits && sum != want {
			t.Errorf("seed %d: %s asked, %s free, %s on one: %v %v", seed, want, free, most, line(p.Grants), err)
		}
	}
}

func TestALostDeviceGivesNothingAndKeepsItsPromises(t *testing.T) {
	devices := []Device{{UUID: "a", Model: "X", Memory: 80 * GiB}, {UUID: "b", Model: "X", Index: 1, Memory: 80 * GiB}}
	l, err := NewLedger(devices, Config{})
	if err != nil {
		t.Fatal(err)
	}
	held := []Grant{{Device: "a", Share: 300, Memory: 24 * GiB}}
	if err := l.Hold("s1", held); err != nil {
		t.Fatal(err)
	}
	before := l.Free()
	devices[0].Lost = &Loss{Kind: LossFallen, Why: "it fell off the bus"}
	l = relisted(l, devices)
	if v := l.Free()[0]; v.Free != 0 || v.FreeMemory != 0 || len(v.Holdings) != 1 || v.Absent {
		t.Errorf("it is seen as %+v", v)
	}
	for _, r := range []Request{{Shares: 100}, {Memory: 8 * GiB}, {Devices: 1}} {
		if p, err := l.Propose(r); err != nil || p.Grants[0].Device != "b" {
			t.Errorf("%s is given %+v, %v", r, p.Grants, err)
		}
	}
	if err := l.Hold("s2", []Grant{{Device: "a", Share: 100, Memory: GiB}}); err == nil {
		t.Error("it was given")
	}
	if _, err := l.Propose(Request{Devices: 2}); !Waits(err) {
		t.Errorf("two devices: %v", err)
	}
	if restored := Restore(devices, Config{}, map[string][]Grant{"s1": held}); len(restored.Check()) > 0 ||
		len(restored.Free()[0].Holdings) != 1 {
		t.Errorf("it is restored with %v", restored.Check())
	}
	l = relisted(l, Mended(devices))
	if after := l.Free(); !reflect.DeepEqual(before, after) {
		t.Errorf("after its return %+v, before its loss %+v", after, before)
	}
	for _, wrong := range l.Check() {
		t.Error(wrong)
	}
}

// relisted is what a ledger is after another inventory.
func relisted(l *Ledger, devices []Device) *Ledger {
	config := l.config
	if config.Slack == 0 {
		config.Slack = -1 // none, which 0 is not in what a ledger is made of
	}
	return Restore(devices, config, l.holders)
}

// holdersOf lists who holds anything, sorted.
func holdersOf(l *Ledger) []string { return slices.Sorted(maps.Keys(l.holders)) }
