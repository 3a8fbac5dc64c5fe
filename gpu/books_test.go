package gpu

import (
	"testing"
	"time"
)

func mem(pid int, device UUID, container string, memory Bytes) ProcessSample {
	return ProcessSample{PID: pid, Start: uint64(pid), Device: device, Container: container, Memory: &memory,
		Name: "python3"}
}

func deviceFree(b Book) Bytes {
	if b.DeviceFree == nil {
		return -1
	}
	return *b.DeviceFree
}

func TestBooksKeepWhatIsPromisedAndNotTaken(t *testing.T) {
	device := Device{UUID: "G", Model: "Card", Memory: 25 * GiB, Reserved: GiB}
	promise := func(memory Bytes) []Grant { return []Grant{{Device: "G", Share: 300, Memory: memory}} }
	na := ProcessSample{PID: 9, Device: "G", Container: "c-b"}
	old, young := time.Hour, 10*time.Second
	for name, c := range map[string]struct {
		used      Bytes
		processes []ProcessSample
		age       Age
		want      Bytes // DeviceFree: of 24 GiB, with 7 promised to each of a and b
		foreign   Bytes
	}{
		"nobody has taken anything": {0, nil, Age{}, 10 * GiB, 0},
		"a has taken some": {2 * GiB, []ProcessSample{mem(1, "G", "c-a", 2*GiB)},
			Age{"a": old, "b": old}, 10 * GiB, 0},
		"a has taken all": {7 * GiB, []ProcessSample{mem(1, "G", "c-a", 7*GiB)},
			Age{"a": old, "b": old}, 10 * GiB, 0},
		"a has taken too much": {9 * GiB, []ProcessSample{mem(1, "G", "c-a", 9*GiB)},
			Age{"a": old, "b": old}, 8 * GiB, 0},
		"another program": {4 * GiB, []ProcessSample{mem(1, "G", "", 4*GiB)}, Age{}, 6 * GiB,
			4 * GiB},
		"use that no process explains":       {3 * GiB, nil, Age{}, 7 * GiB, 3 * GiB},
		"b does not tell and runs long":      {5 * GiB, []ProcessSample{na}, Age{"a": old, "b": old}, 10 * GiB, 0},
		"b does not tell and takes too much": {9 * GiB, []ProcessSample{na}, Age{"a": old, "b": old}, 8 * GiB, 2 * GiB},
		"b does not tell and just started": {5 * GiB, []ProcessSample{na}, Age{"a": old, "b": young}, 5 * GiB,
			5 * GiB},
		"more is used than there is": {30 * GiB, nil, Age{}, 0, 30 * GiB},
	} {
		t.Run(name, func(t *testing.T) {
			l := ledgerOf(t, []Device{device}, Config{})
			must(t, l.Hold("a", promise(7*GiB)))
			must(t, l.Hold("b", promise(7*GiB)))
			holders := Holders{{Session: "a", Containers: []string{"c-a"}}, {Session: "b", Containers: []string{"c-b"}}}
			sample := Sample{Devices: []DeviceSample{{UUID: "G", MemoryUsed: &c.used}}, Processes: c.processes}
			b := Books(l, sample, holders, c.age, nil)[0]
			if deviceFree(b) != c.want || b.Foreign != c.foreign || b.LedgerFree != 10*GiB {
				t.Errorf("really free are %s, foreign %s, free by promise %s; want %s and %s", deviceFree(b), b.Foreign,
					b.LedgerFree, c.want, c.foreign)
			}
		})
	}
}

func TestBooksAdmitOnlyWhereBothAgree(t *testing.T) {
	l := ledgerOf(t, cards(2, 20*GiB), Config{})
	sample := Sample{
		Devices: []DeviceSample{{UUID: "GPU-0", MemoryUsed: ptr(15 * GiB)},
			{UUID: "GPU-1", MemoryUsed: ptr(Bytes(0)), MemoryFree: ptr(19 * GiB)}},
		Processes: []ProcessSample{
			mem(7, "GPU-0", "", 4*GiB), mem(8, "GPU-0", "", 11*GiB), {PID: 9, Device: "GPU-0"},
		},
	}
	books := Books(l, sample, nil, nil, nil)
	room := roomIn(books)
	if o := books[0].Others; len(o) != 3 || o[0].PID != 8 || o[2].PID != 9 {
		t.Errorf("other programs are %+v", o)
	}
	for ask, want := range map[string]string{"vram:4g": "0:0.3", "vram:5g": "1:0.3", "2": "",
		"1": "1:whole", "0.9": "1:0.9", "0.2": "0:0.2", "1.5": ""} {
		r, err := ParseRequest(ask)
		must(t, err)
		grants, ok := l.Offer(r, room)
		if got := line(grants); got != want || ok != (want != "") {
			t.Errorf("%s gives %q (%v), want %q", ask, got, ok, want)
		}
	}
	// A desktop's little use does not keep a device from being given as a whole.
	sample.Devices[0].MemoryUsed, sample.Processes = ptr(700*MiB), nil
	if _, ok := l.Offer(Request{Devices: 2}, roomIn(Books(l, sample, nil, nil, nil))); !ok {
		t.Error("with 700 MiB used by a desktop they are not given")
	}
}

func roomIn(books []Book) Room {
	room := Room{}
	for _, b := range books {
		if b.DeviceFree != nil {
			room[b.Device] = *b.DeviceFree
		}
	}
	return room
}

func TestBooksDoNotLimitWhatIsNotTold(t *testing.T) {
	l := ledgerOf(t, append(cards(2, 20*GiB), divided3(2)), Config{})
	sample := Sample{Devices: []DeviceSample{{UUID: "GPU-0"}, {UUID: "GPU-2", MemoryUsed: ptr(30 * GiB)}}}
	for _, b := range Books(l, sample, nil, nil, nil) {
		if b.DeviceFree != nil {
			t.Errorf("%s is limited to %s", b.Device, *b.DeviceFree)
		}
	}
}

func TestForeignUseFallsOnlyAfterAWhile(t *testing.T) {
	var f Foreign
	for _, c := range []struct {
		at         time.Duration
		used, want Bytes
	}{
		{0, 0, 0},
		{2 * time.Second, 8, 8},
		{4 * time.Second, 3, 8},
		{6 * time.Second, 9, 9},
		{8 * time.Second, 5, 9},
		{15 * time.Second, 1, 9},
		{16 * time.Second, 2, 5},
		{18 * time.Second, 1, 2},
		{28 * time.Second, 1, 1},
		{5 * time.Second, 4, 4}, // a new boot
	} {
		f = f.Observe(c.at, c.used)
		if got := f.Peak(); got != c.want {
			t.Errorf("at %s with %d used the peak is %d, want %d", c.at, c.used, got, c.want)
		}
	}
}
