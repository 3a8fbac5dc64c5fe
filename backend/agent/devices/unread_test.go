package devices

import (
	"context"
	"slices"
	"testing"
	"time"

	"slipway/gpu"
)

func driverDied(wait string) error {
	return &gpu.Error{Code: gpu.CodeSourceUnavailable,
		Message: "The NVIDIA driver was updated and is not the one that is loaded.",
		Hint:    "Restart the computer. Next try in " + wait + "."}
}

func TestWhatIsUnread(t *testing.T) {
	at := gpu.Moment{BootID: "b", Boot: time.Hour, Awake: time.Hour, Wall: time.Now()}
	free := 8 * gpu.GiB
	sampled := func(at gpu.Moment, devices ...gpu.DeviceSample) gpu.Sample {
		return gpu.Sample{At: at, Devices: devices}
	}
	one, other := gpu.DeviceSample{UUID: "GPU-a", MemoryFree: &free}, gpu.DeviceSample{UUID: "GPU-b"}
	after := func(d time.Duration) gpu.Moment { return at.Before(-d) }
	for name, test := range map[string]struct {
		do   func(d *Devices)
		when gpu.Moment
		want []gpu.UUID
	}{
		"before the first sample": {func(*Devices) {}, at, []gpu.UUID{"GPU-a", "GPU-b"}},
		"of a sample of all, one of which never tells": {func(d *Devices) { d.Add(sampled(at, one, other), nil) }, at,
			nil},
		"of a sample without one": {func(d *Devices) { d.Add(sampled(at, other), nil) }, at,
			[]gpu.UUID{"GPU-a"}},
		"once one tells no more": {func(d *Devices) {
			d.Add(sampled(at, one, other), nil)
			d.Add(sampled(after(2*time.Second), gpu.DeviceSample{UUID: "GPU-a"}, other), nil)
		}, after(2 * time.Second), []gpu.UUID{"GPU-a"}},
		"after a failure": {func(d *Devices) {
			d.Add(sampled(at, one, other), nil)
			d.Fail(driverDied("4 s"))
		}, at, []gpu.UUID{"GPU-a", "GPU-b"}},
		"after a failure that is over": {func(d *Devices) {
			d.Fail(driverDied("4 s"))
			d.Add(sampled(at, one, other), nil)
		}, at, nil},
		"of a sample that is old": {func(d *Devices) { d.Add(sampled(at, one, other), nil) },
			after(recentFor + time.Second), []gpu.UUID{"GPU-a", "GPU-b"}},
		"of a device that is lost": {func(d *Devices) {
			d.lost["GPU-a"] = lostDevice{}
			d.Fail(driverDied("4 s"))
		}, at, []gpu.UUID{"GPU-b"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := New(nil, func() gpu.Moment { return test.when })
			d.list, d.looked, d.listed = []gpu.Device{{UUID: "GPU-a"}, {UUID: "GPU-b"}}, at, true
			test.do(d)
			if got := d.Now().Unread; !slices.Equal(got, test.want) {
				t.Errorf("unread are %v, not %v", got, test.want)
			}
		})
	}
}

func TestAFailureOfTheDriverIsNewsOnce(t *testing.T) {
	d := New(nil, OwnMoment())
	if !d.Fail(driverDied("4 s")) || d.Fail(driverDied("8 s")) {
		t.Error("the same failure is news again, or was none")
	}
	if !d.Fail(context.DeadlineExceeded) {
		t.Error("another failure is no news")
	}
}
