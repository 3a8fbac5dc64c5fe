//go:build linux && cgo

package nvml_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway/gpu"
)

const notAvailable = "18446744073709551615"

func TestAmountsThatAreNotAvailableAreNotZero(t *testing.T) {
	l := newLab(t)
	l.process(7, "python", 1000, "/")
	l.set("gpu uuid=GPU-0 name=WSL pci=00000000:01:00.0 total=1000 used="+notAvailable+" energy="+notAvailable,
		"proc gpu=0 pid=7 mem="+notAvailable+" kind=C")
	s := mustSample(t, l.open())
	d := mustDevice(t, s, "GPU-0")
	if d.MemoryUsed != nil || d.Energy != nil || d.Power != nil || d.Temperature != nil || d.Util != nil {
		t.Errorf("device: %+v", d)
	}
	if p := process(s, 7); p == nil || p.Memory != nil {
		t.Errorf("process: %+v", p)
	}
	if len(s.Lost) != 0 {
		t.Errorf("what a device does not support is no loss: %q", s.Lost)
	}
}

func TestAProcessInSeveralListsCountsOnceWithItsLargestAmount(t *testing.T) {
	l := newLab(t)
	l.process(7, "game", 1000, "/")
	l.process(8, "client", 1000, "/")
	l.set(card(0), "proc gpu=0 pid=7 mem=100 kind=C", "proc gpu=0 pid=7 mem=300 kind=G",
		"proc gpu=0 pid=7 mem="+notAvailable+" kind=G",
		"proc gpu=0 pid=8 mem=50 kind=CM")
	s := mustSample(t, l.open())
	if len(s.Processes) != 2 || *process(s, 7).Memory != 300 || *process(s, 8).Memory != 50 {
		t.Errorf("got %+v", s.Processes)
	}
}

func TestManyProcessesAreListed(t *testing.T) {
	l := newLab(t)
	lines := []string{card(0)}
	for pid := 100; pid < 400; pid++ {
		lines = append(lines, fmt.Sprintf("proc gpu=0 pid=%d mem=%d", pid, pid))
	}
	l.set(lines...)
	if s := mustSample(t, l.open()); len(s.Processes) != 300 || *process(s, 399).Memory != 399 {
		t.Errorf("got %d", len(s.Processes))
	}
}

func TestRowsThatCannotBeTrueAreIgnored(t *testing.T) {
	l := newLab(t)
	l.process(7, "python", 1000, "/")
	lines := []string{card(0), "proc gpu=0 pid=7 mem=1",
		fmt.Sprintf("row gpu=0 pid=7 at=%d sm=25", l.micros(time.Second)),
		fmt.Sprintf("row gpu=0 pid=7 at=%d sm=2147483632", l.micros(time.Second)), // as seen from DCGM
		fmt.Sprintf("row gpu=0 pid=7 at=%d sm=99", l.micros(-time.Hour))}          // of tomorrow
	for i := range 100 { // whatever was in memory
		lines = append(lines, fmt.Sprintf("row gpu=0 pid=%d at=%d sm=%d raw=1", 900_000+i, i, i))
	}
	l.set(lines...)
	s := mustSample(t, l.open())
	if p := process(s, 7); len(s.Processes) != 1 || *p.Util != 2500 {
		t.Errorf("got %+v", s.Processes)
	}
}

func TestAListThatGrowsWhileItIsReadIsReadAgainOrLost(t *testing.T) {
	l := newLab(t)
	l.process(7, "python", 1000, "/")
	l.set(card(0), "proc gpu=0 pid=7 mem=1", fmt.Sprintf("row gpu=0 pid=7 at=%d sm=25", l.micros(time.Second)),
		"grow call=nvmlDeviceGetProcessUtilization value=2")
	s := l.open()
	sample := mustSample(t, s)
	if p := process(sample, 7); p == nil || p.Util != nil || *p.Memory != 1 {
		t.Errorf("got %+v", p)
	}
	says(t, sample.Lost, "which process kept it busy is unknown", "changed its answer while it was read")
}

func TestUtilisationIsReadFromWhereItWasReadTo(t *testing.T) {
	l := newLab(t)
	l.process(7, "python", 1000, "/")
	l.set(card(0), "proc gpu=0 pid=7 mem=1", fmt.Sprintf("sample gpu=0 at=%d value=80", l.micros(time.Second)),
		fmt.Sprintf("row gpu=0 pid=7 at=%d sm=80", l.micros(time.Second)))
	s := l.open()
	if p := process(mustSample(t, s), 7); *p.Util != 8000 {
		t.Fatalf("got %+v", p)
	}
	l.pass(2*time.Second, 0)
	idle := mustSample(t, s)
	if p := process(idle, 7); *p.Util != 0 || idle.Since != 0 {
		t.Errorf("the same time was read twice: %+v, since %s", p, idle.Since)
	}
	l.pass(2*time.Second, 0)
	l.set(card(0), "proc gpu=0 pid=7 mem=1", fmt.Sprintf("sample gpu=0 at=%d value=10", l.micros(time.Second)),
		fmt.Sprintf("row gpu=0 pid=7 at=%d sm=10", l.micros(time.Second)))
	kill(t, childOf(t, l)) // the parent knows how far it read
	if p := process(eventually(t, s), 7); *p.Util != 1000 {
		t.Errorf("got %+v", p)
	}
}

func TestProcessesTogetherAreNoBusierThanTheirDevice(t *testing.T) {
	l := newLab(t)
	lines := []string{card(0), fmt.Sprintf("sample gpu=0 at=%d value=50", l.micros(time.Second))}
	for pid := 7; pid < 10; pid++ {
		l.process(pid, "python", 1000, "/")
		lines = append(lines, fmt.Sprintf("proc gpu=0 pid=%d mem=1", pid),
			fmt.Sprintf("row gpu=0 pid=%d at=%d sm=17", pid, l.micros(time.Second)))
	}
	l.set(lines...)
	s := mustSample(t, l.open())
	sum := 0
	for _, p := range s.Processes {
		sum += *p.Util
	}
	if sum != 5000 {
		t.Errorf("together %d hundredths of a percent, the device 5000", sum)
	}
}

func TestTheClockMayBeSet(t *testing.T) {
	for name, step := range map[string]time.Duration{"back": -time.Hour, "forward": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.process(7, "python", 1000, "/")
			tell := func(util int) {
				l.set(card(0), "proc gpu=0 pid=7 mem=1",
					fmt.Sprintf("sample gpu=0 at=%d value=%d", l.micros(time.Second), util),
					fmt.Sprintf("row gpu=0 pid=7 at=%d sm=%d", l.micros(time.Second), util))
			}
			tell(80)
			s := l.open()
			mustSample(t, s)
			l.pass(2*time.Second, step)
			tell(30)
			if p := process(mustSample(t, s), 7); p.Util == nil || *p.Util != 3000 {
				t.Errorf("right after the step: %+v", p)
			}
			l.pass(2*time.Second, 0)
			tell(60)
			if p := process(mustSample(t, s), 7); p.Util == nil || *p.Util != 6000 {
				t.Errorf("later: %+v", p)
			}
		})
	}
}

func TestADriverWhoseClockRunsApartIsReadFromTheStart(t *testing.T) {
	l := newLab(t)
	l.process(7, "python", 1000, "/")
	l.set(card(0), "proc gpu=0 pid=7 mem=1", fmt.Sprintf("row gpu=0 pid=7 at=%d sm=40", l.micros(0)))
	s := l.open()
	mustSample(t, s)
	// behind what was read
	l.set(card(0), "proc gpu=0 pid=7 mem=1", fmt.Sprintf("row gpu=0 pid=7 at=%d sm=40", l.micros(time.Hour)))
	for range 7 {
		l.pass(2*time.Second, 0)
		if p := process(mustSample(t, s), 7); *p.Util == 4000 {
			return
		}
	}
	t.Error("a busy process stays idle for ever")
}

func TestADividedDeviceIsReadByInstance(t *testing.T) {
	l := newLab(t)
	l.process(7, "python", 1000, "/docker/"+containerID)
	l.process(8, "python", 1000, "/")
	l.set(strings.Replace(card(0), "mig=0", "mig=1", 1),
		fmt.Sprintf("mig gpu=0 uuid=MIG-a gi=1 name=NVIDIA_Test_MIG_1g.10gb total=%d", 10*gpu.GiB),
		fmt.Sprintf("mig gpu=0 uuid=MIG-b gi=2 name=NVIDIA_Test_MIG_2g.20gb total=%d", 20*gpu.GiB),
		"proc gpu=0 mig=0 pid=7 mem=100", "proc gpu=0 mig=1 pid=8 mem="+notAvailable)
	s := l.open()
	d := mustInventory(t, s)[0]
	if len(d.Instances) != 2 || d.Instances[0] != (gpu.Instance{UUID: "MIG-a", Profile: "1g.10gb",
		Memory: 10 * gpu.GiB}) || d.Instances[1].Profile != "2g.20gb" {
		t.Errorf("instances: %+v", d.Instances)
	}
	if d.Capabilities.MIG.State != gpu.Yes || d.Capabilities.ProcessUtil.State != gpu.No {
		t.Errorf("capabilities: %+v", d.Capabilities)
	}
	sample := mustSample(t, s)
	p, q := process(sample, 7), process(sample, 8)
	if len(sample.Processes) != 2 || p.Instance != "MIG-a" || *p.Memory != 100 || p.Util != nil ||
		p.Container != containerID || q.Instance != "MIG-b" || q.Memory != nil {
		t.Errorf("processes: %+v", sample.Processes)
	}
	if len(sample.Lost) != 0 || mustDevice(t, sample, "GPU-0").Blind {
		t.Errorf("got %+v", sample)
	}
}

func TestEnergyAndPowerComeFromFieldsWhereTheirFunctionsDoNotTell(t *testing.T) {
	l := newLab(t)
	l.set("gpu uuid=GPU-0 name=X total=1 energy_field=5000000000 power_average=70000 power=1")
	s := l.open()
	if c := mustInventory(t, s)[0].Capabilities; c.Energy.State != gpu.Yes {
		t.Errorf("got %+v", c.Energy)
	}
	if d := mustDevice(t, mustSample(t, s), "GPU-0"); *d.Energy != 5_000_000_000 || *d.Power != 70000 {
		t.Errorf("got %+v", d)
	}
}

func TestADeviceThatFellOffTheBusIsToldOf(t *testing.T) {
	l := newLab(t)
	s := l.open()
	mustInventory(t, s)
	l.set(card(0), card(1), "code call=nvmlDeviceGetMemoryInfo_v2 gpu=0 value=15",
		"code call=nvmlDeviceGetMemoryInfo gpu=0 value=15")
	sample := mustSample(t, s)
	if _, ok := sample.Device("GPU-0"); ok {
		t.Errorf("got %+v", sample)
	}
	mustDevice(t, sample, "GPU-1")
	says(t, sample.Lost, "GPU 0 (GPU-0)", "fell off the bus")
}

func TestADeviceThatIsNotListedAnyMoreIsToldOf(t *testing.T) {
	l := newLab(t)
	s := l.open()
	mustInventory(t, s)
	l.set(card(0))
	says(t, mustSample(t, s).Lost, "GPU 1 (GPU-1): the driver does not list it any more")
	if devices := mustInventory(t, s); len(devices) != 1 {
		t.Errorf("got %+v", devices)
	}
	if sample := mustSample(t, s); len(sample.Lost) != 0 {
		t.Errorf("a device that is known to be gone is told of for ever: %q", sample.Lost)
	}
}

func TestADriverThatWasLoadedAnewBeginsAnEpoch(t *testing.T) {
	l := newLab(t)
	s := l.open()
	before := mustSample(t, s).Epoch
	if again := mustSample(t, s).Epoch; again != before {
		t.Errorf("%+v and %+v", before, again)
	}
	if err := os.Rename(filepath.Join(l.root, "sys/module/nvidia"),
		filepath.Join(l.root, "sys/module/old")); err != nil {
		t.Fatal(err)
	}
	l.write("sys/module/nvidia/version", "580.105.08\n")
	if after := mustSample(t, s).Epoch; after == before {
		t.Errorf("still %+v", after)
	}
}

func TestProcessesThatCannotBeFoundKeepTheirMemory(t *testing.T) {
	l := newLab(t)
	l.set(card(0), "proc gpu=0 pid=7 mem=100")
	s := l.open()
	sample := mustSample(t, s)
	if p := process(sample, 7); *p.Memory != 100 || p.Start != 0 || p.User != "" || len(sample.Lost) != 0 {
		t.Errorf("got %+v, %q", p, sample.Lost)
	}
	mustSample(t, s)
	says(t, mustSample(t, s).Lost, "the driver's numbers mean nothing here")
	if err := os.RemoveAll(filepath.Join(l.root, "proc/1")); err != nil {
		t.Fatal(err)
	}
	says(t, mustSample(t, s).Lost, "hidepid")
}

func TestANumberThatWasGivenToAYoungerProcessIsNotTrusted(t *testing.T) {
	l := newLab(t)
	l.process(7, "python", 1000, "/")
	l.write("proc/7/stat", fmt.Sprintf("7 (python) S 1 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 %d 1 2 3\n",
		(l.moment().Boot+time.Minute)/(10*time.Millisecond)))
	l.set(card(0), "proc gpu=0 pid=7 mem=100")
	if p := process(mustSample(t, l.open()), 7); p.Start != 0 || p.User != "" {
		t.Errorf("got %+v", p)
	}
}

// BenchmarkSample reads eight devices with a hundred processes. Most of its time
// is the library of the tests, which reads its state anew at each call.
func BenchmarkSample(b *testing.B) {
	l := newLab(b)
	var lines []string
	for i := range 8 {
		lines = append(lines, card(i))
	}
	for pid := 1000; pid < 1100; pid++ {
		l.process(pid, "python", 1000, "/docker/"+containerID)
		lines = append(lines, fmt.Sprintf("proc gpu=%d pid=%d mem=1048576", pid%8, pid))
	}
	l.set(lines...)
	s := l.open()
	ctx := within(b)
	if _, err := s.Sample(ctx); err != nil {
		b.Fatal(err)
	}
	var before, after syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &before); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.Sample(ctx); err != nil {
			b.Fatal(err)
		}
	}
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &after); err != nil {
		b.Fatal(err)
	}
	cpu := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
	b.ReportMetric(float64(cpu)/float64(b.N), "own-cpu-ns/op")
}
