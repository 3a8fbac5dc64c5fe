package gpu

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A thousand waiting sessions on eight devices must be planned in less than
// five milliseconds.
func BenchmarkProposeAThousandThatWait(b *testing.B) {
	l, err := NewLedger(cards(8, 80*GiB), Config{})
	if err != nil {
		b.Fatal(err)
	}
	for i := range 8 {
		if err := l.Hold(fmt.Sprint("h", i),
			filled(l, Grant{Device: UUID(fmt.Sprint("GPU-", i)), Share: 800})); err != nil {
			b.Fatal(err)
		}
	}
	requests := []Request{{Shares: 500}, {Devices: 1}, {Memory: 40 * GiB}, {Shares: 1500}}
	room := Room{"GPU-0": 10 * GiB, "GPU-1": 5 * GiB}
	for b.Loop() {
		for i := range 1000 {
			if _, ok := l.Offer(requests[i%4], room); ok {
				b.Fatal("it does not wait")
			}
		}
	}
}

// A sample of eight devices with a hundred containers is booked every two
// seconds.
func BenchmarkBookAHundredContainers(b *testing.B) {
	a := NewAccounts(State{})
	at := Moment{BootID: "b", Boot: time.Hour, Awake: time.Hour, Wall: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	s := Sample{Epoch: Epoch{Boot: "b"}}
	for i := range 8 {
		s.Devices = append(s.Devices, DeviceSample{UUID: UUID(fmt.Sprint("GPU-", i)), Util: ptr(9000),
			MemoryUsed: ptr(60 * GiB), Energy: ptr(MilliJoule(0))})
	}
	for i := range 100 {
		device, container := UUID(fmt.Sprint("GPU-", i%8)), fmt.Sprintf("%02d%s", i, strings.Repeat("c", 62))
		a.Start(at, Holder{Session: fmt.Sprint("s", i), Containers: []string{container},
			Grants: []Grant{{Device: device, Share: 50, Memory: 4 * GiB}}})
		s.Processes = append(s.Processes, ProcessSample{PID: i + 1, Start: 1, Device: device, Container: container,
			Util: ptr(700), Memory: ptr(3 * GiB)})
	}
	for b.Loop() {
		at.Boot, at.Awake, at.Wall = at.Boot+2*time.Second, at.Awake+2*time.Second, at.Wall.Add(2*time.Second)
		for i := range s.Devices {
			s.Devices[i].Energy = ptr(*s.Devices[i].Energy + 1_000_000)
		}
		s.At = at
		a.Book(s)
		a.Committed(a.Checkpoint())
	}
}
