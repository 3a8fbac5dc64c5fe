//go:build linux && cgo

package nvml_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"slipway/gpu"
	"slipway/gpu/nvml"
)

// divided is GPU-0 in two instances of an eighth and a quarter, and who is on
// them. worked says how long of how long each had work, in any unit.
func divided(more string, worked ...string) []string {
	instance := func(name string, gi int, profile string, size gpu.Bytes, how string) string {
		return fmt.Sprintf("mig gpu=0 uuid=%s gi=%d name=NVIDIA_Test_MIG_%s total=%d %s", name, gi, profile, size, how)
	}
	return []string{
		fmt.Sprintf("gpu uuid=GPU-0 name=NVIDIA_Test pci=00000000:01:00.0 total=%d used=0 reserved=0 power=65000 "+
			"energy=1 temp=41 mig=1 cc=90 %s", 80*gpu.GiB, more),
		instance("MIG-a", 3, "1g.10gb", 10*gpu.GiB, worked[0]), instance("MIG-b", 5, "2g.20gb", 20*gpu.GiB, worked[1]),
		"proc gpu=0 mig=0 pid=7 mem=100", "proc gpu=0 mig=1 pid=8 mem=100", "proc gpu=0 mig=1 pid=9 mem=100",
		"proc gpu=0 mig=1 pid=10 mem=100",
	}
}

// sampleLater samples once the driver's monitoring may be asked again.
func sampleLater(t *testing.T, l *lab, s *nvml.Source) gpu.Sample {
	t.Helper()
	time.Sleep(100 * time.Millisecond) // two of its samples must be so far apart
	l.pass(2*time.Second, 0)
	return mustSample(t, s)
}

func dividedLab(t *testing.T, without ...string) *lab {
	l := newLab(t, without...)
	for pid := 7; pid <= 10; pid++ {
		l.process(pid, "python", 1000, "/docker/"+containerID)
	}
	return l
}

func TestInstancesThatAreMonitoredAreChargedTheirBusyTime(t *testing.T) {
	l := dividedLab(t)
	l.set(divided("gpm=1", "worked=100 passed=1000", "worked=0 passed=1000")...)
	s := l.open()
	if p := mustInventory(t, s)[0].Capabilities.ProcessUtil; p.State != gpu.Yes {
		t.Errorf("the capability is %+v", p)
	}
	first := mustSample(t, s)
	if p := process(first, 7); p == nil || p.Util != nil || mustDevice(t, first, "GPU-0").Util != nil ||
		len(first.Lost) > 0 {
		t.Errorf("before there are two samples to compare: %+v", first)
	}
	// The eighth works half of the time, the quarter always, for three processes.
	l.set(divided("gpm=1", "worked=600 passed=2000", "worked=1000 passed=2000")...)
	sample := sampleLater(t, l, s)
	if util := mustDevice(t, sample, "GPU-0").Util; util == nil || *util != 625+2500 {
		t.Errorf("the device: %v", util)
	}
	for pid, want := range map[int]int{7: 625, 8: 834, 9: 833, 10: 833} {
		if p := process(sample, pid); p == nil || p.Util == nil || *p.Util != want {
			t.Errorf("process %d: %+v, want %d", pid, p, want)
		}
	}
	if len(sample.Lost) > 0 {
		t.Errorf("lost %q", sample.Lost)
	}
	// Nobody works. What is told is of the time since the sample before.
	l.set(divided("gpm=1", "worked=600 passed=4000", "worked=1000 passed=4000")...)
	if sample := sampleLater(t, l, s); *process(sample, 7).Util != 0 || *mustDevice(t, sample, "GPU-0").Util != 0 {
		t.Errorf("an idle device: %+v", sample)
	}
	// No sample of the driver is kept that is not needed: it would run out of them.
	for i := range 40 {
		l.set(divided("gpm=1", fmt.Sprintf("worked=600 passed=%d", 5000+i), "worked=1000 passed=5000")...)
		mustInventory(t, s)
	}
	l.set(divided("gpm=1", "worked=1600 passed=6000", "worked=2000 passed=6000")...)
	if sample := sampleLater(t, l, s); *process(sample, 7).Util != 625 || len(sample.Lost) > 0 {
		t.Errorf("after many looks: %+v", sample)
	}
}

func TestInstancesWithoutTrueAnswersStayUnknown(t *testing.T) {
	for name, c := range map[string]struct {
		more, worked string
		orders       []string
		lost, why    string
		state        gpu.ProbeState
	}{
		"the device is not monitored": {worked: "worked=1 passed=2", why: "from the Hopper generation on",
			state: gpu.No},
		"the driver does not know": {more: "gpm=1", worked: "worked=1 passed=2",
			orders: []string{"code call=nvmlGpmQueryDeviceSupport value=13"}, state: gpu.Unknown,
			lost: "this driver lacks the function"},
		"this user may not ask": {more: "gpm=1", worked: "worked=1 passed=2",
			orders: []string{"code call=nvmlGpmMigSampleGet value=4"}, state: gpu.Unknown,
			why: "this user may not ask"},
		"the value is not available": {more: "gpm=1", worked: "worked=1 passed=2 metric=3", state: gpu.Yes},
		"the value fails": {more: "gpm=1", worked: "worked=1 passed=2 metric=999", state: gpu.Yes,
			lost: "how busy its instances are is unknown"},
		"the value is no number": {more: "gpm=1", worked: "percent=nan", state: gpu.Yes,
			lost: "answered what cannot be true"},
		"the value is too large": {more: "gpm=1", worked: "percent=2147483632", state: gpu.Yes,
			lost: "answered what cannot be true"},
		"the value is less than nothing": {more: "gpm=1", worked: "percent=-1", state: gpu.Yes,
			lost: "answered what cannot be true"},
		"samples cannot be compared": {more: "gpm=1", worked: "worked=1 passed=2",
			orders: []string{"code call=nvmlGpmMetricsGet value=999"}, state: gpu.Yes,
			lost: "how busy its instances are is unknown"},
		"there is no memory for a sample": {more: "gpm=1", worked: "worked=1 passed=2",
			orders: []string{"code call=nvmlGpmSampleAlloc value=20"}, state: gpu.Unknown,
			lost: "how busy its instances are is unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := dividedLab(t)
			l.set(append(divided(c.more, c.worked, "percent=10"), c.orders...)...)
			s := l.open()
			if p := mustInventory(t, s)[0].Capabilities.ProcessUtil; p.State != c.state ||
				!strings.Contains(p.Why, c.why) {
				t.Errorf("the capability is %+v", p)
			}
			mustSample(t, s)
			sample := sampleLater(t, l, s)
			if p := process(sample, 7); p == nil || p.Util != nil || *p.Memory != 100 || mustDevice(t, sample, "GPU-0").
				Util != nil {
				t.Errorf("got %+v", sample)
			}
			if c.lost != "" {
				says(t, sample.Lost, "GPU 0", c.lost)
			} else if len(sample.Lost) > 0 {
				t.Errorf("lost %q", sample.Lost)
			}
		})
	}
}

func TestADividedDeviceIsReadWithoutAnyFunctionOfTheMonitoring(t *testing.T) {
	for symbol := range symbolCases {
		if !strings.HasPrefix(symbol, "nvmlGpm") && symbol != "nvmlDeviceGetGpuInstanceId" {
			continue
		}
		t.Run(symbol, func(t *testing.T) {
			t.Parallel()
			l := dividedLab(t, symbol)
			l.set(divided("gpm=1", "worked=1 passed=2", "worked=1 passed=2")...)
			s := l.open()
			if p := mustInventory(t, s)[0].Capabilities.ProcessUtil; p.State != gpu.No ||
				!strings.Contains(p.Why, "lacks") {
				t.Errorf("the capability is %+v", p)
			}
			mustSample(t, s)
			sample := sampleLater(t, l, s)
			if p := process(sample, 7); p == nil || p.Util != nil || *p.Memory != 100 || len(sample.Lost) > 0 {
				t.Errorf("got %+v", sample)
			}
		})
	}
}

func TestComputeInstancesOfOneInstanceAreNotToldApart(t *testing.T) {
	l := dividedLab(t)
	lines := divided("gpm=1", "worked=1 passed=2", "worked=1 passed=2")
	lines[2] = strings.Replace(lines[2], "gi=5", "gi=3", 1)
	l.set(lines...)
	s := l.open()
	mustInventory(t, s)
	mustSample(t, s)
	sample := sampleLater(t, l, s)
	if p := process(sample, 7); p.Util != nil || len(sample.Lost) > 0 {
		t.Errorf("got %+v", sample)
	}
}
