package main

import (
	"testing"
	"time"

	"slipway/gpu"
)

func ptr[T any](v T) *T { return &v }

func TestAnIntegralSumsWhatSamplesSay(t *testing.T) {
	at := func(s int, util, device int, energy gpu.MilliJoule, power gpu.MilliWatt, memory gpu.Bytes) gpu.Sample {
		return gpu.Sample{
			At:      gpu.Moment{Boot: time.Duration(s) * time.Second},
			Devices: []gpu.DeviceSample{{UUID: "A", Util: ptr(device), Energy: ptr(energy), Power: ptr(power)}},
			Processes: []gpu.ProcessSample{
				{PID: 1, Device: "A", Util: ptr(util), Memory: ptr(memory)}, {PID: 1, Device: "B", Util: ptr(10000)},
				{PID: 2, Device: "A", Util: ptr(100)},
			},
		}
	}
	var in integral
	mine := func(pid int) bool { return pid == 1 }
	a, b, c := at(10, 9999, 9999, 1000, 100, 5), at(12, 5000, 6000, 1600, 300, 9), at(14, 2500, 3000, 1700, 300, 7)
	in.add(a, b, "A", mine)
	in.add(b, c, "A", mine)
	if in.covered != 4*time.Second || in.busy != 1500*time.Millisecond || in.device != 1800*time.Millisecond ||
		in.energy != 700 || in.power != 1000 || in.peak != 9 || in.strangers != 2 || in.unseen != 0 {
		t.Errorf("got %+v", in)
	}
	in.add(c, gpu.Sample{At: gpu.Moment{Boot: 16 * time.Second}, Lost: []string{"all"}}, "A", mine)
	if in.unseen != 1 || in.covered != 6*time.Second || len(in.lost) != 1 {
		t.Errorf("got %+v", in)
	}
}
