//go:build unix

package drm_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"slipway/gpu"
	"slipway/gpu/drm"
	"slipway/gpu/procs"
)

const (
	amd   = gpu.UUID("GPU-9f1c2d3e4b5a6978")
	intel = gpu.UUID("PCI-0000:08:00.0")
)

// machine is the tree of testdata in a directory, with a clock.
type machine struct {
	t    *testing.T
	root string
	now  gpu.Moment
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{t: t, root: t.TempDir(), now: gpu.Moment{BootID: "boot-1", Boot: 2 * time.Hour, Awake: time.Hour,
		Wall: time.Unix(1_800_000_000, 0)}}
	text, err := os.ReadFile("testdata/machine.tree")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		top, _, _ := strings.Cut(line, "/")
		if !slices.Contains([]string{"sys", "proc", "etc"}, top) {
			continue
		}
		if link, target, ok := strings.Cut(line, " -> "); ok {
			m.link(link, target)
		} else if path, content, ok := strings.Cut(line, " = "); ok {
			m.write(path, content+"\n")
		} else if path, ok := strings.CutSuffix(line, ":"); ok {
			end := i + 1 + slices.Index(lines[i+1:], ".")
			m.write(path, strings.Join(lines[i+1:end], "\n")+"\n")
			i = end
		}
	}
	return m
}

func (m *machine) path(name string) string {
	m.t.Helper()
	path := filepath.Join(m.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.t.Fatal(err)
	}
	return path
}

func (m *machine) write(name, content string) {
	m.t.Helper()
	if err := os.WriteFile(m.path(name), []byte(content), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) link(name, target string) {
	m.t.Helper()
	if err := os.Symlink(target, m.path(name)); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) remove(name string) {
	m.t.Helper()
	if err := os.RemoveAll(m.path(name)); err != nil {
		m.t.Fatal(err)
	}
}

// replace changes a text in a file.
func (m *machine) replace(name, old, text string) {
	m.t.Helper()
	data, err := os.ReadFile(m.path(name))
	if err != nil || !strings.Contains(string(data), old) {
		m.t.Fatalf("%s does not hold %q: %v", name, old, err)
	}
	m.write(name, strings.ReplaceAll(string(data), old, text))
}

// pass lets time go by, of which the machine slept some.
func (m *machine) pass(awake, asleep time.Duration) {
	m.now.Awake += awake
	m.now.Boot += awake + asleep
	m.now.Wall = m.now.Wall.Add(awake + asleep)
}

func (m *machine) open() *drm.Source {
	return drm.Open(drm.Config{Root: m.root, Now: func() gpu.Moment { return m.now },
		Procs: procs.NewTable(procs.Config{Root: m.root, Name: func(int) (string, bool) { return "", false }})})
}

func mustInventory(t *testing.T, s *drm.Source) []gpu.Device {
	t.Helper()
	devices, err := s.Inventory(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return devices
}

func mustSample(t *testing.T, s *drm.Source) gpu.Sample {
	t.Helper()
	sample, err := s.Sample(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return sample
}

func mustDevice(t *testing.T, s gpu.Sample, uuid gpu.UUID) gpu.DeviceSample {
	t.Helper()
	d, ok := s.Device(uuid)
	if !ok {
		t.Fatalf("%s was not read: %+v", uuid, s)
	}
	return d
}

func process(t *testing.T, s gpu.Sample, pid int) gpu.ProcessSample {
	t.Helper()
	i := slices.IndexFunc(s.Processes, func(p gpu.ProcessSample) bool { return p.PID == pid })
	if i < 0 {
		t.Fatalf("%d was not seen: %+v", pid, s.Processes)
	}
	return s.Processes[i]
}

func TestInventoryListsCardsAndLeavesOutWhatIsNotOne(t *testing.T) {
	m := newMachine(t)
	devices := mustInventory(t, m.open())
	if len(devices) != 2 {
		t.Fatalf("got %+v", devices)
	}
	a, b := devices[0], devices[1]
	if a.UUID != amd || a.Vendor != gpu.AMD || a.Model != "Radeon RX 7900 XTX" || a.Index != 0 ||
		a.PCI != "0000:03:00.0" || a.Memory != 25753026560 ||
		!slices.Equal(a.Nodes, []string{"/dev/kfd", "/dev/dri/renderD129"}) || a.Driver != "amdgpu" {
		t.Errorf("AMD: %+v", a)
	}
	if b.UUID != intel || b.Vendor != gpu.Intel || b.Model != "Intel device e20b" || b.Index != 1 ||
		b.Memory != 12*gpu.GiB || !slices.Equal(b.Nodes, []string{"/dev/dri/renderD130"}) {
		t.Errorf("Intel: %+v", b)
	}
	if a.Capabilities.Energy.State != gpu.No || b.Capabilities.Energy.State != gpu.Yes ||
		a.Capabilities.MIG.State != gpu.No || a.Capabilities.MemoryLimit.State != gpu.No {
		t.Errorf("capabilities: %+v, %+v", a.Capabilities, b.Capabilities)
	}
}

func TestCapabilitiesOfProcessesAreTriedOnOneself(t *testing.T) {
	m := newMachine(t)
	probe := func() gpu.Probe { return mustInventory(t, m.open())[0].Capabilities.ProcessUtil }
	if p := probe(); p.State != gpu.Unknown || !strings.Contains(p.Why, "may not open /dev/dri/renderD129") {
		t.Errorf("without rights: %+v", p)
	}
	m.write("dev/dri/renderD129", "")
	if p := probe(); p.State != gpu.No || !strings.Contains(p.Why, "kernel does not say") {
		t.Errorf("on an old kernel: %+v", p)
	}
	for fd := range 64 {
		m.write("proc/self/fdinfo/"+strconv.Itoa(fd), "drm-client-id:\t1\ndrm-pdev:\t0000:03:00.0\n")
	}
	if p := probe(); p.State != gpu.Yes || p.Why != "" {
		t.Errorf("got %+v", p)
	}
}

func TestSampleReadsTheDevices(t *testing.T) {
	m := newMachine(t)
	s := mustSample(t, m.open())
	a := mustDevice(t, s, amd)
	if *a.Util != 4200 || *a.MemoryUsed != 3*gpu.GiB || *a.MemoryFree != 25753026560-3*gpu.GiB || *a.Power != 95000 ||
		*a.PowerLimit != 339000 || a.Energy != nil || *a.Temperature != 51 || a.Blind {
		t.Errorf("AMD: %+v", a)
	}
	b := mustDevice(t, s, intel)
	if b.Util != nil || *b.MemoryUsed != 4*gpu.GiB || *b.Energy != 7_200_000 || *b.Temperature != 44 || b.Power != nil {
		t.Errorf("Intel: %+v", b)
	}
	if s.At != m.now || s.Epoch.Boot != "boot-1" || !strings.HasPrefix(s.Epoch.Driver, "amdgpu/") ||
		!strings.Contains(s.Epoch.Driver, ",xe/") || len(s.Lost) != 0 {
		t.Errorf("got %+v", s)
	}
}

func TestProcessesAreCountedOnceForEachClient(t *testing.T) {
	m := newMachine(t)
	s := mustSample(t, m.open())
	if len(s.Processes) != 3 {
		t.Fatalf("got %+v", s.Processes)
	}
	game := process(t, s, 2000)
	if game.Device != amd || *game.Memory != 513*gpu.MiB || game.Util != nil || game.Start != 300000 ||
		game.User != "mina" || game.Name != "game" || game.Container != "" {
		t.Errorf("game: %+v", game)
	}
	rocm := process(t, s, 2100)
	if *rocm.Memory != 2*gpu.GiB || len(rocm.Container) != 64 {
		t.Errorf("ROCm: %+v", rocm)
	}
	if x := process(t, s, 2200); x.Device != intel || *x.Memory != 4*gpu.GiB {
		t.Errorf("xe: %+v", x)
	}
}

func TestBusyTimeIsTheGrowthOfTheCounters(t *testing.T) {
	m := newMachine(t)
	s := m.open()
	mustSample(t, s)
	m.pass(2*time.Second, time.Hour) // nobody is busy while the machine sleeps
	for _, fd := range []string{"7", "8"} {
		m.replace("proc/2000/fdinfo/"+fd, "drm-engine-gfx:\t1000000000 ns", "drm-engine-gfx:\t2500000000 ns")
	}
	m.replace("proc/2200/fdinfo/5", "1000000\ndrm-total-cycles-ccs:	10000000",
		"3000000\ndrm-total-cycles-ccs:	14000000")
	m.replace("proc/2200/fdinfo/5", "drm-cycles-rcs:	500000\ndrm-total-cycles-rcs:	10000000",
		"drm-cycles-rcs:	1500000\ndrm-total-cycles-rcs:	14000000")
	sample := mustSample(t, s)
	if p := process(t, sample, 2000); *p.Util != 7500 {
		t.Errorf("1.5 s of 2 s: %d", *p.Util)
	}
	// a quarter of one engine of four is less than a quarter of the only one
	if p := process(t, sample, 2200); *p.Util != 2500 {
		t.Errorf("a quarter of the cycles: %d", *p.Util)
	}
	if p := process(t, sample, 2100); p.Util != nil {
		t.Errorf("work in compute queues is not told, yet %d is", *p.Util)
	}
	if d := mustDevice(t, sample, amd); *d.Util != 7500 {
		t.Errorf("the device is less busy (%d) than its processes", *d.Util)
	}
	if d := mustDevice(t, sample, intel); *d.Util != 2500 {
		t.Errorf("Intel: %d", *d.Util)
	}
}

func TestCountersThatShrinkCountNothing(t *testing.T) {
	m := newMachine(t)
	s := m.open()
	mustSample(t, s)
	m.pass(2*time.Second, 0)
	for _, fd := range []string{"7", "8"} {
		m.replace("proc/2000/fdinfo/"+fd, "drm-engine-gfx:\t1000000000 ns", "drm-engine-gfx:\t5 ns")
	}
	if p := process(t, mustSample(t, s), 2000); *p.Util != 0 {
		t.Errorf("got %d", *p.Util)
	}
}

func TestAClientThatIsNewCountsFromItsStart(t *testing.T) {
	m := newMachine(t)
	s := m.open()
	mustSample(t, s)
	m.pass(4*time.Second, 0)
	m.write("proc/2300/stat", "2300 (render) S 1 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 720000 1 2 3\n")
	m.write("proc/2300/status", "Uid:\t1000\t1000\t1000\t1000\n")
	m.write("proc/2300/cgroup", "0::/\n")
	m.link("proc/2300/fd/4", "/dev/dri/renderD129")
	m.write("proc/2300/fdinfo/4",
		"drm-client-id:\t99\ndrm-pdev:\t0000:03:00.0\ndrm-resident-vram:\t8 MiB\ndrm-engine-compute:\t1000000000 ns\n")
	if p := process(t, mustSample(t, s), 2300); *p.Util != 2500 || *p.Memory != 8*gpu.MiB {
		t.Errorf("got %+v", p)
	}
}

func TestAProcessThatTakesADeviceLaterIsFound(t *testing.T) {
	m := newMachine(t)
	s := m.open()
	mustSample(t, s)
	m.link("proc/1/fd/3", "/dev/dri/renderD129")
	m.write("proc/1/fdinfo/3", "drm-client-id:\t77\ndrm-pdev:\t0000:03:00.0\ndrm-resident-vram:\t8 MiB\n")
	for range 6 {
		m.pass(2*time.Second, 0)
		if sample := mustSample(t, s); len(sample.Processes) == 4 {
			return
		}
	}
	t.Error("it was never seen")
}

func TestAProcessThatEndsIsForgotten(t *testing.T) {
	m := newMachine(t)
	s := m.open()
	mustSample(t, s)
	m.remove("proc/2000")
	m.pass(2*time.Second, 0)
	if sample := mustSample(t, s); len(sample.Processes) != 2 {
		t.Errorf("got %+v", sample.Processes)
	}
}

func TestWhatIsNotToldIsNotZero(t *testing.T) {
	m := newMachine(t)
	for _, name := range []string{"mem_info_vram_used", "gpu_busy_percent", "hwmon"} {
		m.remove("sys/class/drm/card1/device/" + name)
	}
	m.remove("sys/class/kfd")
	m.remove("proc")
	s := mustSample(t, m.open())
	d := mustDevice(t, s, amd)
	if d.Util != nil || d.Power != nil || d.Temperature != nil || !d.Blind {
		t.Errorf("got %+v", d)
	}
	if len(s.Lost) != 1 || !strings.Contains(s.Lost[0], "which processes are on AMD and Intel devices is unknown") {
		t.Errorf("got %q", s.Lost)
	}
}

func TestADriverThatWasLoadedAnewBeginsAnEpoch(t *testing.T) {
	m := newMachine(t)
	s := m.open()
	before := mustSample(t, s).Epoch
	if err := os.Rename(m.path("sys/module/amdgpu"), m.path("sys/module/old")); err != nil {
		t.Fatal(err)
	}
	m.write("sys/module/amdgpu/version", "6.9\n")
	if after := mustSample(t, s).Epoch; after == before {
		t.Errorf("still %+v", after)
	}
}

func TestAMachineWithoutCardsIsEmpty(t *testing.T) {
	s := drm.Open(drm.Config{Root: t.TempDir()})
	if devices := mustInventory(t, s); len(devices) != 0 {
		t.Errorf("got %+v", devices)
	}
	if sample := mustSample(t, s); len(sample.Devices) != 0 || len(sample.Lost) != 0 || sample.At.BootID == "" {
		t.Errorf("got %+v", sample)
	}
}

func TestAClosedSourceSaysSo(t *testing.T) {
	s := newMachine(t).open()
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var e *gpu.Error
	if _, err := s.Sample(context.Background()); !errors.As(err, &e) {
		t.Errorf("got %v", err)
	}
	if _, err := s.Inventory(context.Background()); !errors.As(err, &e) {
		t.Errorf("got %v", err)
	}
}

func TestThisMachineCanBeRead(t *testing.T) {
	s := drm.Open(drm.Config{})
	mustInventory(t, s)
	mustSample(t, s)
}
