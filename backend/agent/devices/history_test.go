package devices

import (
	"reflect"
	"testing"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

func TestTrackKeepsAnHourWholeAndADayByTheMinute(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	util, memory, power, temperature := 10_000, 80*gpu.GiB, gpu.MilliWatt(700_000), -3
	none := session.DevicePoint{At: begin}
	whole := session.DevicePoint{At: begin.Add(2 * time.Second), Util: &util, MemoryUsed: &memory, Power: &power,
		Temperature: &temperature}
	var k track
	k.add(none)
	k.add(whole)
	if got := k.since(time.Time{}); !reflect.DeepEqual(got, []session.DevicePoint{none, whole}) {
		t.Errorf("%+v came back", got)
	}
	if got := k.since(begin); !reflect.DeepEqual(got, []session.DevicePoint{whole}) {
		t.Errorf("%+v is newer than the first", got)
	}
	const length = 30 * time.Hour
	for at := 4 * time.Second; at <= length; at += 2 * time.Second {
		k.add(session.DevicePoint{At: begin.Add(at), Util: &util})
	}
	now := begin.Add(length)
	if n := len(k.since(now.Add(-time.Hour))); n != 1800 {
		t.Errorf("%d points of the last hour are kept", n)
	}
	if all := k.since(time.Time{}); len(all) < 1800+23*60-1 || len(all) > 1800+23*60+1 ||
		now.Sub(all[0].At) > keepTracks {
		t.Errorf("%d points are kept, the first %s old", len(all), now.Sub(all[0].At))
	}
}

func TestHistoryIsThinnedAfterAnHour(t *testing.T) {
	var tr track
	begun := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for at := time.Duration(0); at < 30*time.Hour; at += 2 * time.Second {
		tr.add(session.DevicePoint{At: begun.Add(at)})
	}
	end := begun.Add(30 * time.Hour)
	if dense := tr.since(end.Add(-time.Hour)); len(dense) < 1795 {
		t.Errorf("%d points of the last hour", len(dense))
	}
	if all := tr.since(time.Time{}); len(all) > 1801+24*60 || len(all) < 1795+22*60 ||
		end.Sub(all[0].At) > 25*time.Hour {
		t.Errorf("%d points since %s", len(all), all[0].At)
	}
}
