//go:build linux && cgo

package nvml_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway/gpu"
	"slipway/gpu/nvml"
)

var containerID = strings.Repeat("0123456789abcdef", 4)

func TestInventoryDescribesTheDevices(t *testing.T) {
	l := newLab(t)
	devices := mustInventory(t, l.open())
	if len(devices) != 2 {
		t.Fatalf("got %+v", devices)
	}
	d := devices[1]
	if d.UUID != "GPU-1" || d.Vendor != gpu.NVIDIA || d.Model != "NVIDIA Test 1" || d.Index != 1 ||
		d.PCI != "0000:02:00.0" ||
		d.Memory != 80*gpu.GiB || d.Reserved != gpu.GiB || d.Driver != "580.105.08" || len(d.Instances) != 0 {
		t.Errorf("got %+v", d)
	}
	for name, c := range map[string]struct {
		got  gpu.Probe
		want gpu.ProbeState
	}{
		"process memory": {d.Capabilities.ProcessMemory, gpu.Yes},
		"process util":   {d.Capabilities.ProcessUtil, gpu.Yes},
		"energy":         {d.Capabilities.Energy, gpu.Yes}, "accounting": {d.Capabilities.Accounting, gpu.No},
		"mig": {d.Capabilities.MIG, gpu.Yes}, "memory limit": {d.Capabilities.MemoryLimit, gpu.No},
		"mps": {d.Capabilities.MPS, gpu.Yes},
	} {
		if c.got.State != c.want || c.want != gpu.Yes && c.got.Why == "" {
			t.Errorf("%s: got %+v, want %s", name, c.got, c.want)
		}
	}
}

func TestCapabilitiesAreTried(t *testing.T) {
	l := newLab(t)
	l.set(strings.Replace(card(0), "acct=0 cc=90", "acct=1 limit=5 cc=61", 1))
	c := mustInventory(t, l.open())[0].Capabilities
	if c.Accounting.State != gpu.Yes || c.MemoryLimit.State != gpu.Yes || c.MPS.State != gpu.No {
		t.Errorf("got %+v", c)
	}
}

func TestSampleReadsWhatThereIs(t *testing.T) {
	l := newLab(t)
	l.process(4312, "python", 1000, "/system.slice/docker-"+containerID+".scope")
	l.process(77, "Xorg", 0, "/user.slice")
	l.set(card(0), card(1),
		fmt.Sprintf("proc gpu=1 pid=4312 mem=%d kind=C", 4*gpu.GiB), fmt.Sprintf("proc gpu=1 pid=77 mem=%d kind=G",
			gpu.MiB),
		fmt.Sprintf("sample gpu=1 at=%d value=30", l.micros(2*time.Second)),
		fmt.Sprintf("sample gpu=1 at=%d value=61", l.micros(time.Second)),
		fmt.Sprintf("row gpu=1 pid=4312 at=%d sm=40", l.micros(time.Second)))
	s := mustSample(t, l.open())
	d := mustDevice(t, s, "GPU-1")
	if *d.Util != 4550 || *d.MemoryUsed != 2*gpu.GiB || *d.MemoryFree != 77*gpu.GiB || *d.Power != 65000 ||
		*d.PowerLimit != 300000 ||
		*d.Energy != 1_000_001 || *d.Temperature != 41 || d.Blind {
		t.Errorf("device: %+v", d)
	}
	p := process(s, 4312)
	if p == nil || p.Start != 4412 || p.Device != "GPU-1" || *p.Memory != 4*gpu.GiB || *p.Util != 4000 ||
		p.Name != "python" || p.User != "mina" || p.Container != containerID {
		t.Errorf("python: %+v", p)
	}
	if x := process(s, 77); x == nil || *x.Util != 0 || x.User != "root" || x.Container != "" {
		t.Errorf("Xorg: %+v", x)
	}
	if s.At != l.moment() || s.Epoch.Boot != "boot-1" || !strings.HasPrefix(s.Epoch.Driver, "580.105.08/") ||
		len(s.Lost) != 0 {
		t.Errorf("got %+v", s)
	}
	if s.Since != l.moment().Boot-2*time.Second {
		t.Errorf("reaches back to %s, want two seconds before %s", s.Since, l.moment().Boot)
	}
}

// symbolCases are the functions of the library, and what people read when one
// is missing: of the whole source when it can do nothing without, else among
// the losses; empty where another function tells the same.
var symbolCases = map[string]struct{ fatal, lost string }{
	"nvmlInit_v2":                                {fatal: "it lacks nvmlInit"},
	"nvmlDeviceGetCount_v2":                      {fatal: "it lacks nvmlDeviceGetCount"},
	"nvmlDeviceGetHandleByIndex_v2":              {lost: "everything about it is unknown"},
	"nvmlDeviceGetUUID":                          {lost: "its name is unknown"},
	"nvmlShutdown":                               {},
	"nvmlErrorString":                            {},
	"nvmlSystemGetDriverVersion":                 {lost: "the version of the driver is unknown"},
	"nvmlDeviceGetName":                          {},
	"nvmlDeviceGetPciInfo_v3":                    {},
	"nvmlDeviceGetMemoryInfo":                    {},
	"nvmlDeviceGetMemoryInfo_v2":                 {},
	"nvmlDeviceGetUtilizationRates":              {lost: "its utilisation is unknown"},
	"nvmlDeviceGetSamples":                       {lost: "the course of its utilisation is unknown"},
	"nvmlDeviceGetProcessUtilization":            {lost: "which process kept it busy is unknown"},
	"nvmlDeviceGetComputeRunningProcesses_v3":    {lost: "which programs compute on it is unknown"},
	"nvmlDeviceGetGraphicsRunningProcesses_v3":   {lost: "which programs draw with it is unknown"},
	"nvmlDeviceGetMPSComputeRunningProcesses_v3": {},
	"nvmlDeviceGetPowerUsage":                    {lost: "its power is unknown"},
	"nvmlDeviceGetEnforcedPowerLimit":            {lost: "the limit of its power is unknown"},
	"nvmlDeviceGetTotalEnergyConsumption":        {lost: "its energy is unknown"},
	"nvmlDeviceGetFieldValues":                   {},
	"nvmlDeviceGetTemperature":                   {lost: "its temperature is unknown"},
	"nvmlDeviceGetMigMode":                       {},
	"nvmlDeviceGetMaxMigDeviceCount":             {},
	"nvmlDeviceGetMigDeviceHandleByIndex":        {},
	"nvmlDeviceGetGpuInstanceId":                 {},
	"nvmlGpmQueryDeviceSupport":                  {},
	"nvmlGpmSampleAlloc":                         {},
	"nvmlGpmSampleFree":                          {},
	"nvmlGpmMigSampleGet":                        {},
	"nvmlGpmMetricsGet":                          {},
	"nvmlDeviceGetAccountingMode":                {},
	"nvmlDeviceGetAccountingPids":                {lost: "which programs ended on it is unknown"},
	"nvmlDeviceGetAccountingStats":               {lost: "what ended programs did on it is unknown"},
	"nvmlDeviceGetCudaComputeCapability":         {},
	"nvmlDeviceGetMemoryLimits_v1":               {},
}

func TestEachSymbolMayBeMissing(t *testing.T) {
	source, err := os.ReadFile("testdata/nvml.c")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(source), "\n") {
		if symbol, ok := strings.CutPrefix(line, "#ifndef WITHOUT_"); ok {
			if _, ok := symbolCases[symbol]; !ok {
				t.Errorf("nothing is said of %s", symbol)
			}
		}
	}
	for symbol, c := range symbolCases {
		t.Run(symbol, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, symbol)
			l.process(4312, "python", 1000, "/docker/"+containerID)
			l.set(strings.Replace(card(0), "acct=0", "acct=1", 1), "proc gpu=0 pid=4312 mem=1048576",
				"ended gpu=0 pid=9")
			s := l.open()
			devices, err := s.Inventory(within(t))
			if c.fatal != "" {
				if e := problem(t, err); !strings.Contains(e.Message, c.fatal) {
					t.Errorf("inventory: %+v", e)
				}
				if _, err := s.Sample(within(t)); !strings.Contains(problem(t, err).Message, c.fatal) {
					t.Errorf("sample: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			sample := mustSample(t, s)
			if c.lost != "" {
				says(t, sample.Lost, c.lost, "the driver's library lacks "+strings.TrimSuffix(strings.TrimSuffix(symbol,
					"_v2"), "_v3"))
			} else if len(sample.Lost) > 0 {
				t.Errorf("lost %q although another function tells it", sample.Lost)
			}
			if strings.Contains(c.lost, "everything") || strings.Contains(c.lost, "its name") {
				return
			}
			if d := mustDevice(t, sample, "GPU-0"); len(devices) != 1 || d.MemoryUsed == nil ||
				d.Blind != strings.Contains(symbol, "ComputeRunning") && !strings.Contains(symbol, "MPS") && d.Blind {
				t.Errorf("the rest was not read: %+v, %+v", devices, d)
			}
			if strings.HasPrefix(symbol, "nvmlDeviceGetComputeRunning") != mustDevice(t, sample, "GPU-0").Blind {
				t.Errorf("blind: %v", mustDevice(t, sample, "GPU-0").Blind)
			}
		})
	}
}

func TestAllOptionalSymbolsMayBeMissingTogether(t *testing.T) {
	var without []string
	for symbol := range symbolCases {
		switch symbol {
		case "nvmlInit_v2", "nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetUUID":
		default:
			without = append(without, symbol)
		}
	}
	s := newLab(t, without...).open()
	if devices := mustInventory(t, s); len(devices) != 2 || devices[0].Memory != 0 {
		t.Errorf("got %+v", devices)
	}
	sample := mustSample(t, s)
	if d := mustDevice(t, sample, "GPU-1"); !d.Blind || d.Util != nil || d.MemoryUsed != nil || d.Energy != nil {
		t.Errorf("got %+v", d)
	}
	says(t, sample.Lost, "GPU 1", "its memory is unknown")
}

func TestAMachineWithoutDevicesIsEmpty(t *testing.T) {
	l := newLab(t)
	c := l.config()
	c.Library = ""
	c.Root = t.TempDir() // neither a card nor WSL
	// The system's own library is hidden, should this machine have one.
	c.Command = []string{"sh", "-c", `exec "$0" "$@" -library libnvidia-ml-absent.so.1`, os.Args[0], nvml.ChildCommand}
	s := nvml.Open(c)
	defer s.Close()
	if devices := mustInventory(t, s); len(devices) != 0 {
		t.Errorf("got %+v", devices)
	}
	if sample := mustSample(t, s); len(sample.Devices) != 0 || len(sample.Lost) != 0 || sample.Epoch.Boot != "boot-1" {
		t.Errorf("got %+v", sample)
	}
}

func TestACardWithoutItsLibraryIsToldOf(t *testing.T) {
	l := newLab(t)
	l.write("sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n")
	l.write("sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n")
	c := l.config()
	c.Library = ""
	c.Command = []string{"sh", "-c", `exec "$0" "$@" -library libnvidia-ml-absent.so.1`, os.Args[0], nvml.ChildCommand}
	s := nvml.Open(c)
	defer s.Close()
	_, err := s.Inventory(within(t))
	if e := problem(t, err); e.Code != gpu.CodeSourceUnavailable ||
		!strings.Contains(e.Message, "libnvidia-ml-absent.so.1") {
		t.Errorf("got %+v", e)
	}
}

func TestALibraryThatWasNamedAndIsAbsentIsToldOf(t *testing.T) {
	l := newLab(t)
	c := l.config()
	c.Library = filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	s := nvml.Open(c)
	defer s.Close()
	_, err := s.Sample(within(t))
	if e := problem(t, err); !strings.Contains(e.Message, "cannot be loaded") {
		t.Errorf("got %+v", e)
	}
}

func TestAnUpdatedDriverIsToldOfAndFoundAgain(t *testing.T) {
	l := newLab(t)
	s := l.open()
	mustSample(t, s)
	l.set(card(0), "code call=nvmlDeviceGetMemoryInfo_v2 value=18", "code call=nvmlDeviceGetMemoryInfo value=18",
		"code call=nvmlInit_v2 value=18")
	_, err := s.Sample(within(t))
	if e := problem(t, err); !strings.Contains(e.Message, "updated while it was running") {
		t.Errorf("got %+v", e)
	}
	l.set(card(0), card(1), "driver value=590.1")
	again := eventually(t, s)
	if !strings.HasPrefix(again.Epoch.Driver, "590.1/") {
		t.Errorf("got %+v", again.Epoch)
	}
}

// eventually samples until it succeeds; a source pauses after a failure.
func eventually(t *testing.T, s *nvml.Source) gpu.Sample {
	t.Helper()
	ctx := within(t)
	for {
		sample, err := s.Sample(ctx)
		if err == nil {
			return sample
		}
		problem(t, err)
		time.Sleep(20 * time.Millisecond)
	}
}

func TestCodesOfTheLibraryBecomeWords(t *testing.T) {
	for code, want := range map[string]string{
		"4": "may not open the NVIDIA devices", "9": "not loaded into the kernel", "18": "of different versions",
		"999": "something unknown went wrong", "777": "answered 777",
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.set("code call=nvmlInit_v2 value=" + code)
			_, err := l.open().Inventory(within(t))
			if e := problem(t, err); !strings.Contains(e.Message, want) {
				t.Errorf("got %+v", e)
			}
		})
	}
}
