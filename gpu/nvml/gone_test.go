//go:build linux && cgo

package nvml_test

import (
	"slices"
	"strings"
	"testing"

	"slipway/gpu"
)

func gone(s gpu.Sample) (list []string) {
	for _, g := range s.Gone {
		list = append(list, string(g.UUID)+" "+string(g.Kind)+": "+g.Why)
	}
	return list
}

func TestADeviceIsLostAndBackWhileItIsRead(t *testing.T) {
	lost := func(call, code string) string { return "code call=" + call + " gpu=0 value=" + code }
	for name, c := range map[string]struct {
		state []string
		want  string
		kept  bool // the inventory goes on to list it
	}{
		"its memory cannot be read because it fell off the bus": {[]string{card(0), card(1),
			lost("nvmlDeviceGetMemoryInfo_v2", "15"), lost("nvmlDeviceGetMemoryInfo", "15")},
			"GPU-0 fallen: it fell off the bus", true},
		"it has no handle because it fell off the bus": {[]string{card(0), card(1),
			lost("nvmlDeviceGetHandleByIndex_v2", "15")}, "GPU-0 fallen: it fell off the bus", true},
		"its name is not told because it fell off the bus": {[]string{card(0), card(1),
			lost("nvmlDeviceGetUUID", "28")}, "GPU-0 fallen: it fell off the bus", true},
		"it must be reset": {[]string{card(0), card(1), lost("nvmlDeviceGetMemoryInfo_v2", "16"),
			lost("nvmlDeviceGetMemoryInfo", "16")}, "GPU-0 reset: it must be reset", true},
		"the driver has lost count of it": {[]string{card(1)}, "GPU-0 unlisted: the driver does not list it any more",
			false},
		"another took its place": {[]string{strings.ReplaceAll(card(0), "GPU-0", "GPU-9"), card(1)},
			"GPU-0 unlisted: the driver does not list it any more", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			s := l.open()
			mustInventory(t, s)
			if sample := mustSample(t, s); len(sample.Gone) > 0 {
				t.Fatalf("at first %q", gone(sample))
			}
			l.set(c.state...)
			for range 2 { // as well after the inventory has seen it
				sample := mustSample(t, s)
				if _, read := sample.Device("GPU-0"); read {
					t.Errorf("it was read: %+v", sample)
				}
				mustDevice(t, sample, "GPU-1")
				if told := gone(sample); !slices.Equal(told, []string{c.want}) {
					t.Errorf("told %q, want %q", told, c.want)
				}
				devices := mustInventory(t, s)
				i := slices.IndexFunc(devices, func(d gpu.Device) bool { return d.UUID == "GPU-0" })
				if (i >= 0) != c.kept || i >= 0 && (devices[i].Lost == nil || devices[i].Memory != 80*gpu.GiB ||
					devices[i].Capabilities.Energy.State != gpu.Unknown) {
					t.Errorf("it is listed as %+v", devices)
				}
				if i := slices.IndexFunc(devices, func(d gpu.Device) bool { return d.UUID == "GPU-1" }); i < 0 ||
					devices[i].Lost != nil {
					t.Errorf("the other is listed as %+v", devices)
				}
				if !c.kept {
					break
				}
			}
			l.set(card(0), card(1))
			if devices := mustInventory(t, s); len(devices) != 2 || devices[0].Lost != nil ||
				devices[0].Capabilities.Energy.State != gpu.Yes {
				t.Errorf("after its return it is listed as %+v", devices)
			}
			sample := mustSample(t, s)
			mustDevice(t, sample, "GPU-0")
			if len(sample.Gone) > 0 || len(sample.Lost) > 0 {
				t.Errorf("after its return %q, %q", gone(sample), sample.Lost)
			}
		})
	}
}

func TestADeviceThatCannotBeNamedIsNotCalledLost(t *testing.T) {
	l := newLab(t)
	s := l.open()
	mustInventory(t, s)
	l.set(card(0), card(1), "code call=nvmlDeviceGetUUID gpu=0 value=999")
	if sample := mustSample(t, s); len(sample.Gone) > 0 || len(sample.Devices) != 1 {
		t.Errorf("told %q of %+v", gone(sample), sample)
	}
}
