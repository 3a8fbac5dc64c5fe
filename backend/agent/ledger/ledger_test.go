package ledger

import (
	"strings"
	"testing"
	"time"

	"slipway/backend/agent/devices"
	"slipway/backend/engine"
	"slipway/backend/session"
	"slipway/gpu"
)

func TestLabelsOfOthersAreNotTrusted(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for text, want := range map[string]string{"train": "train (of bob, another Slipway)",
		"": "a session (of bob, another Slipway)", "a\x1b[2J": "a session (of bob, another Slipway)",
		long: long[:64] + " (of bob, another Slipway)"} {
		n := Other{State: engine.State{Labels: map[string]string{engine.LabelName: text, engine.LabelOwner: "bob"}}}
		if n.String() != want {
			t.Errorf("%.20q is %q", text, n)
		}
	}
}

// What a session was promised and has not taken yet is not free, whatever its
// driver kept for itself since.
func TestThePromiseOfASessionCountsWhenItsDriverKeepsMore(t *testing.T) {
	device := gpu.Device{UUID: "GPU-0", Model: "T", Memory: 80 * gpu.GiB}
	live := []session.Session{{ID: "aaaaaaaaaaaa", Status: session.Running,
		Allocation: session.Allocation{Grants: session.Grants{GPUs: []gpu.Grant{
			{Device: device.UUID, Share: gpu.WholeDevice, Memory: device.Usable(), Whole: true},
		}}}}}
	device.Reserved += gpu.MiB
	free := device.Usable()
	sample := gpu.Sample{Devices: []gpu.DeviceSample{{UUID: device.UUID, MemoryFree: &free}}}
	book := devices.State{Devices: []gpu.Device{device}, Recent: []gpu.Sample{sample}}
	list := New(book, gpu.Config{}, live, nil, time.Now()).Measured()
	if len(list) != 1 || list[0].Free > 0 {
		t.Errorf("the device has %+v to give", list)
	}
}
