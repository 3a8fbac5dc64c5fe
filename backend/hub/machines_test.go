package hub

import (
	"testing"

	"slipway/backend/session"
	"slipway/gpu"
)

func TestDevicesAreSummedUpByWhatIsKnownOfThem(t *testing.T) {
	const half = gpu.WholeDevice / 2
	device := gpu.Device{UUID: "GPU-1", Memory: 8 << 30}
	holders := []session.DeviceHolder{{Share: half, Promised: 4 << 30}}
	lost := device
	lost.Lost = &gpu.Loss{}
	for name, c := range map[string]struct {
		state                 session.DeviceState
		promised, total, free gpu.Share
	}{
		"one in use": {session.DeviceState{Device: device,
			DeviceStatus: session.DeviceStatus{Holders: holders, Free: half}}, half,
			gpu.WholeDevice, half},
		"one whose driver does not answer": {session.DeviceState{Device: device,
			DeviceStatus: session.DeviceStatus{Holders: holders, Unread: true}}, half,
			gpu.WholeDevice, 0},
		"one that is lost": {session.DeviceState{Device: lost,
			DeviceStatus: session.DeviceStatus{Holders: holders}}, half, half, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var r Resources
			r.addDevice(c.state, 0)
			if r.Promised.GPU != c.promised || r.Total.GPU != c.total || r.Free.GPU != c.free {
				t.Errorf("promised %d of %d, free %d", r.Promised.GPU, r.Total.GPU, r.Free.GPU)
			}
			if r.Promised.VRAM != 4<<30 {
				t.Errorf("%d bytes are promised", r.Promised.VRAM)
			}
		})
	}
}
