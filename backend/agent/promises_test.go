package agent

import (
	"testing"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// What a session was promised and has not taken yet is not free, whatever its
// driver kept for itself since.
func TestThePromiseOfASessionCountsWhenItsDriverKeepsMore(t *testing.T) {
	device := gpu.Device{UUID: "GPU-0", Model: "T", Memory: 80 * gpu.GiB}
	live := []session.Session{{ID: "aaaaaaaaaaaa", Status: session.Running,
		Grants: session.Grants{GPUs: []gpu.Grant{
			{Device: device.UUID, Share: gpu.WholeDevice, Memory: device.Usable(), Whole: true},
		}}}}
	device.Reserved += gpu.MiB
	free := device.Usable()
	sample := gpu.Sample{Devices: []gpu.DeviceSample{{UUID: device.UUID, MemoryFree: &free}}}
	book := deviceBook{Devices: []gpu.Device{device}, Recent: []gpu.Sample{sample}}
	list := measured(live, nil, book, gpu.Config{}, time.Now())
	if len(list) != 1 || list[0].Free > 0 {
		t.Errorf("the device has %+v to give", list)
	}
}
