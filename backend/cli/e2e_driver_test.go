//go:build linux && !race

package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway/backend/api"
	"slipway/backend/engine/enginetest"
	"slipway/backend/hub"
	"slipway/backend/session"
	"slipway/gpu"
)

// sampledTwice awaits two more samples of the made-up device.
func (p *installed) sampledTwice() {
	p.t.Helper()
	at := func() (newest time.Time) {
		var boards []api.DeviceBoard
		if err := json.Unmarshal([]byte(p.must("gpu", "-o", "json")), &boards); err != nil {
			p.t.Fatal(err)
		}
		for _, b := range boards {
			newest = b.At
		}
		return newest
	}
	for range 2 {
		before := at()
		eventually(p.t, "another sample is taken", func() (bool, any) {
			now := at()
			return now.After(before), now
		})
	}
}

// What is real here: the program with its reader, Docker, the container and its
// processes. What is made up: the device, and the records that its driver keeps.
func TestAShortProcessIsChargedOnce(t *testing.T) {
	docker := enginetest.RequireModernDocker(t)
	d := newDriver(t)
	d.records = 1
	d.hold(nil)
	p := installBuilt(t, d, docker)
	p.must("run", "--image", p.image, "--name", "holder", "--type", "batch", "--mem", "128m", "--gpu", "0.5", "--",
		"cp $(command -v sleep) /tmp/short; /tmp/short 900 & exec sleep 900")
	holder := p.runs("holder")
	pid := pidIn(t, holder.Kernels[0].Container, "short")
	began := time.Now() // to use the device
	d.hold(map[int]int64{pid: 3 * gibibyte})
	p.holder("the process is seen", func(h session.DeviceHolder) bool {
		return h.Session == holder.ID && h.Memory != nil && *h.Memory == 3*gpu.GiB
	})

	// It ends; what it did since the last sample only its record tells, and so
	// that it once held more than was ever seen.
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	record := fmt.Sprintf("ended gpu=0 pid=%d start=%d time=%d util=80 mem=%d\n", pid, began.UnixMicro(),
		time.Since(began).Milliseconds(), 5*gibibyte)
	d.write(d.holding(80, nil) + record)
	var charged hub.Account
	eventually(t, "its record is charged", func() (bool, any) {
		charged = p.used(holder)
		return charged.VRAMPeak == 5*gpu.GiB && charged.BusyGPUMs > 0, charged
	})
	if most := int64(4000); charged.BusyGPUMs > most {
		t.Errorf("charged %d ms of the time since the sample before", charged.BusyGPUMs)
	}

	// The driver keeps the record, and neither later samples nor another life of
	// the program count it again.
	again := func(when string) {
		t.Helper()
		p.sampledTwice()
		if used := p.used(holder); used.BusyGPUMs != charged.BusyGPUMs || used.VRAMPeak != charged.VRAMPeak {
			t.Errorf("%s: charged %+v, after %+v", when, used, charged)
		}
	}
	again("with the record still there")
	p.kill()
	again("after a crash")
	if s := p.session("show", "holder"); s.Status != session.Running ||
		s.Kernels[0].Container != holder.Kernels[0].Container {
		t.Errorf("holder is %s", s.Status)
	}
	if board := p.must("gpu"); strings.Contains(board, "lost") {
		t.Errorf("the devices are\n%s", board)
	}
}

// A driver that is updated while sessions compute answers no new question, and
// the programs that it serves go on.
func TestNothingIsGivenWhileTheDriverDoesNotAnswer(t *testing.T) {
	docker := enginetest.RequireModernDocker(t)
	d := newDriver(t)
	p := installBuilt(t, d, docker)
	p.half("holder")
	holder := p.runs("holder")
	d.fail()
	eventually(t, "the failure is noticed", func() (bool, any) {
		board := p.must("gpu")
		return strings.Contains(board, "cannot be measured") && strings.Contains(board, "GPU 0 is not allocated"),
			board
	})
	p.half("next")
	p.waits("next", `Needs 0\.5 of the GPU on \S+\. GPU 0: its driver does not report what is free\.`)
	p.kill()
	p.waits("next", `.`) // nor does another life of the program give what it knows less of
	if s := p.session("show", "holder"); s.Status != session.Running || len(s.Warnings) > 0 {
		t.Errorf("holder is %s and is told %+v", s.Status, s.Warnings)
	}
	d.hold(nil)
	if next := p.runs("next"); next.Kernels[0].Grants.GPUs[0].Device != madeUpDevice {
		t.Errorf("next was granted %+v", next.Kernels[0].Grants.GPUs)
	}
	if s := p.session("show", "holder"); s.ID != holder.ID || s.Kernels[0].Container != holder.Kernels[0].Container {
		t.Errorf("holder was started anew: %+v", s)
	}
}
