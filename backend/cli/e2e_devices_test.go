//go:build linux && !race

package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"slipway/backend/api"
	"slipway/backend/engine/enginetest"
	"slipway/backend/hub"
	"slipway/backend/place"
	"slipway/backend/session"
	"slipway/gpu"
)

const (
	// builtProgram is the program as make build leaves it, with the reader of
	// NVIDIA devices inside.
	builtProgram = "../../build/bin/slipway"
	// madeUpDevice is the first that build/ci/moderndocker.sh makes up.
	madeUpDevice = "GPU-11111111-aaaa-4000-8000-000000000001"

	gibibyte = int64(1) << 30
)

// driver is NVIDIA's library as the tests of gpu/nvml build it, with one device
// and a state that the test writes.
type driver struct {
	t      *testing.T
	dir    string
	state  string
	device string // its UUID
	// records is 1 where the driver keeps records of ended processes.
	records int
}

func newDriver(t *testing.T) *driver {
	t.Helper()
	return newDriverOf(t, madeUpDevice)
}

func newDriverOf(t *testing.T, device string) *driver {
	t.Helper()
	dir := t.TempDir()
	d := &driver{t: t, dir: dir, state: filepath.Join(dir, "state"), device: device}
	if out, err := exec.Command("gcc", "-shared", "-fPIC", "-o", d.library(), "../../gpu/nvml/testdata/nvml.c").
		CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	d.hold(nil)
	return d
}

func (d *driver) library() string { return filepath.Join(d.dir, "libnvidia-ml.so.1") }

// hold makes the driver report that processes, by their PIDs on this machine,
// hold so many bytes of the device, and nobody else any.
func (d *driver) hold(bytes map[int]int64) {
	d.t.Helper()
	d.write(d.holding(0, bytes))
}

// holding is the state of the driver in which the device is busy for so many
// percent of the time and processes hold so many bytes of it.
func (d *driver) holding(util int, bytes map[int]int64) string {
	used, rows := int64(0), ""
	for pid, n := range bytes {
		used += n
		rows += fmt.Sprintf("proc gpu=0 pid=%d mem=%d kind=C\n", pid, n)
	}
	return fmt.Sprintf("gpu uuid=%s name=NVIDIA_Test pci=00000000:01:00.0 total=%d used=%d reserved=0 util=%d "+
		"power=65000 limit_power=300000 temp=41 mig=0 acct=%d cc=90\n%s",
		d.device, 80*gibibyte, used, util, d.records, rows)
}

// fail makes the driver answer everything as one that was updated while it was
// loaded.
func (d *driver) fail() {
	d.write("code call=nvmlDeviceGetCount_v2 value=18\ncode call=nvmlInit_v2 value=18\n")
}

// lose makes the device fall off the bus.
func (d *driver) lose() {
	d.write(fmt.Sprintf("gpu uuid=%s name=NVIDIA_Test\ncode call=nvmlDeviceGetHandleByIndex_v2 gpu=0 value=15\n",
		d.device))
}

// write replaces the state at once.
func (d *driver) write(state string) {
	if err := os.WriteFile(d.state+".new", []byte(state), 0o644); err != nil {
		d.t.Error(err)
	}
	if err := os.Rename(d.state+".new", d.state); err != nil {
		d.t.Error(err)
	}
}

// installBuilt is [install] of the built program on the Docker of today, with
// that driver.
func installBuilt(t *testing.T, d *driver, docker string) *installed {
	t.Helper()
	path, err := filepath.Abs(builtProgram)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: run make build first", err)
	}
	p := &installed{t: t, path: path, home: place.Home{Dir: t.TempDir()}, image: enginetest.ImageMinimal}
	p.env = append(os.Environ(), "SLIPWAY_HOME="+p.home.Dir, "SLIPWAY_ENGINE=docker", "DOCKER_HOST="+docker,
		"SLIPWAY_NVML_LIBRARY="+d.library(), "SLIPWAY_NVML_STATE="+d.state)
	t.Cleanup(func() {
		if ids := strings.Fields(p.do("ps", "-q").stdout); len(ids) > 0 {
			p.do(append([]string{"stop", "--force", "--wait", "--wait-timeout", "180s"}, ids...)...)
		}
		if got := p.do("shutdown"); got.code != ExitOK {
			t.Errorf("shutdown: %+v", got)
		}
	})
	return p
}

// half launches a session with half of a device, which sleeps.
func (p *installed) half(name string) {
	p.t.Helper()
	p.must("run", "--image", p.image, "--name", name, "--type", "batch", "--mem", "128m", "--gpu", "0.5", "--",
		"exec sleep 900")
}

// eventually asks until it is so, for longer than use that has just ended and
// shares that were just given may keep a device from being given.
func eventually(t *testing.T, what string, so func() (bool, any)) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		ok, seen := so()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: it still is %+v", what, seen)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// waits awaits that a session is waiting and that its reason matches.
func (p *installed) waits(ref string, pattern string) {
	p.t.Helper()
	reason := regexp.MustCompile(pattern)
	eventually(p.t, ref+" waits for "+pattern, func() (bool, any) {
		s := p.session("show", ref)
		if s.Status != "PENDING" {
			p.t.Fatalf("%s is %s; it should wait for %s", ref, s.Status, pattern)
		}
		return s.Wait != nil && reason.MatchString(s.Wait.Message), s.Wait
	})
}

func (p *installed) runs(ref string) api.Session {
	p.t.Helper()
	var s api.Session
	eventually(p.t, ref+" runs", func() (bool, any) {
		s = p.session("show", ref)
		return s.Status == session.Running, []any{s.Status, s.Reason, s.Wait}
	})
	return s
}

// holder awaits one who holds the made-up device.
func (p *installed) holder(what string, wanted func(session.DeviceHolder) bool) {
	p.t.Helper()
	eventually(p.t, what, func() (bool, any) {
		var boards []api.DeviceBoard
		text := p.must("gpu", "-o", "json")
		if err := json.Unmarshal([]byte(text), &boards); err != nil {
			p.t.Fatal(err)
		}
		if len(boards) != 1 || len(boards[0].Devices) != 1 || boards[0].Devices[0].UUID != madeUpDevice {
			return false, text
		}
		return slices.ContainsFunc(boards[0].Devices[0].Holders, wanted), text
	})
}

// used is what a session made of devices.
func (p *installed) used(s api.Session) (used hub.Account) {
	p.t.Helper()
	var report api.UsageReport
	if err := json.Unmarshal([]byte(p.must("usage", "-o", "json")), &report); err != nil {
		p.t.Fatal(err)
	}
	for _, a := range report.Rows {
		if a.Kind == "session" && a.Session == s.ID {
			used.AllocGPUMs += a.AllocGPUMs
			used.BusyGPUMs += a.BusyGPUMs
			used.VRAMPeak = max(used.VRAMPeak, a.VRAMPeak)
		}
	}
	return used
}

// pidIn finds a process by its name in a container, as this machine counts.
func pidIn(t *testing.T, container, name string) int {
	t.Helper()
	found := 0
	eventually(t, name+" runs in "+container, func() (bool, any) {
		paths, err := filepath.Glob("/proc/[0-9]*")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			groups, _ := os.ReadFile(filepath.Join(path, "cgroup")) // a process may end meanwhile
			comm, _ := os.ReadFile(filepath.Join(path, "comm"))
			if strings.Contains(string(groups), container) && strings.TrimSpace(string(comm)) == name {
				found, err = strconv.Atoi(filepath.Base(path))
				return err == nil, err
			}
		}
		return false, "not there"
	})
	return found
}

// What is real here: the program with its reader, Docker, the containers and all
// processes. What is made up: the device, and what its driver says of it.
func TestSessionsAndAStrangerShareADevice(t *testing.T) {
	docker := enginetest.RequireModernDocker(t)
	d := newDriver(t)
	p := installBuilt(t, d, docker)

	p.half("half-one")
	p.half("half-two")
	one, two := p.runs("half-one"), p.runs("half-two")
	for _, s := range []api.Session{one, two} {
		if len(s.Kernels) != 1 || len(s.Kernels[0].Grants.GPUs) != 1 ||
			s.Kernels[0].Grants.GPUs[0].Device != madeUpDevice ||
			s.Kernels[0].Grants.GPUs[0].Share != 500 {
			t.Fatalf("%s was granted %+v, want half of %s", s.Name, s.Kernels, madeUpDevice)
		}
	}
	p.half("half-three")
	p.waits("half-three", `half-one has 0\.5 \([0-9.]+ GiB\), half-two has 0\.5 \([0-9.]+ GiB\)`)

	stranger := exec.Command("sleep", "900")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stranger.Process.Kill()
		_ = stranger.Wait()
	})
	pid := stranger.Process.Pid
	d.hold(map[int]int64{pid: 20 * gibibyte})
	p.holder("the stranger is seen", func(h session.DeviceHolder) bool {
		return h.Session == "" && h.PID == pid && h.Name == "sleep" && h.Memory != nil && *h.Memory == 20*gpu.GiB
	})
	p.must("stop", "--force", "--wait", "half-two")
	p.waits("half-three", fmt.Sprintf(`20 GiB used by pid %d \(sleep, [^)]+\), not a session`, pid))

	d.hold(nil)
	three := p.runs("half-three") // by itself

	inside := pidIn(t, three.Kernels[0].Container, "sleep")
	d.hold(map[int]int64{inside: 7 * gibibyte})
	p.holder("what it uses is half-three's", func(h session.DeviceHolder) bool {
		return h.Session == three.ID && h.Name == "half-three" && h.Share == 500 && h.Memory != nil &&
			*h.Memory == 7*gpu.GiB
	})
	eventually(t, "it is charged to half-three", func() (bool, any) {
		used := p.used(three)
		return used.VRAMPeak == 7*gpu.GiB && used.AllocGPUMs > 0, used
	})
}

// The same, with a device that falls off the bus while a session holds half of
// it, and comes back.
func TestADeviceIsLostWhileASessionHoldsIt(t *testing.T) {
	docker := enginetest.RequireModernDocker(t)
	d := newDriver(t)
	p := installBuilt(t, d, docker)

	p.half("holder")
	holder := p.runs("holder")
	warned := func(code string) {
		t.Helper()
		eventually(t, "holder is told "+code, func() (bool, any) {
			s := p.session("show", "holder")
			if s.Status != session.Running {
				t.Fatalf("holder is %s", s.Status)
			}
			return len(s.Warnings) == 1 && string(s.Warnings[0].Code) == code && s.Warnings[0].Device == madeUpDevice,
				s.Warnings
		})
	}
	d.lose()
	warned("session_run_device-lost")
	if list := p.must("ps"); !strings.Contains(list, "A GPU of the session is lost") {
		t.Errorf("the list says\n%s", list)
	}
	if board := p.must("gpu"); !strings.Contains(board, "GPU 0 is lost: it fell off the bus. Restart the computer") {
		t.Errorf("the devices are\n%s", board)
	}
	p.half("next")
	p.waits("next", `GPU 0 is lost: it fell off the bus`)

	d.hold(nil)
	warned("session_run_device-back")
	if next := p.runs("next"); next.Kernels[0].Grants.GPUs[0].Device != madeUpDevice {
		t.Errorf("next was granted %+v", next.Kernels[0].Grants.GPUs)
	}
	if again := p.session("show", "holder"); again.ID != holder.ID ||
		again.Kernels[0].Container != holder.Kernels[0].Container {
		t.Errorf("holder was started anew: %+v", again)
	}
}
