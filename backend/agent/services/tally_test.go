package services

import (
	"testing"
	"time"

	"slipway/backend/router"
)

func TestTrafficOfTheLastStreamsAndTheLastMinute(t *testing.T) {
	var all tally
	all.follow(map[string]*service{"llama": {}})
	began := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	for i := range 250 {
		record := router.Record{Service: "llama", Stream: true, FirstWord: time.Duration(i+1) * time.Millisecond / 2}
		record.Completion = 6
		all.add(began.Add(time.Duration(i)*time.Second), record, countsOf(record))
	}
	got, last := all.read("llama"), began.Add(249*time.Second)
	// The last hundred took 75.5 to 125 ms.
	if p50, p99 := got.firstWord(50), got.firstWord(99); p50 != 101 || p99 != 125 {
		t.Errorf("the first word takes %d and %d ms", p50, p99)
	}
	for later, want := range map[time.Duration]float64{0: 6, 30 * time.Second: 3, time.Minute: 0, time.Hour: 0} {
		if mean := got.pace.mean(last.Add(later)); mean != want {
			t.Errorf("%v later it is %v tokens a second, want %v", later, mean, want)
		}
	}
	if none := all.read("other"); none.firstWord(50) != 0 || none.pace.mean(last) != 0 {
		t.Errorf("an unknown service has %+v", none)
	}
	quick := router.Record{Service: "llama", Stream: true, FirstWord: time.Microsecond}
	all.add(last, quick, countsOf(quick))
	if least := all.read("llama").firstWord(0); least != 1 {
		t.Errorf("a word after 1 µs takes %d ms", least)
	}
}
