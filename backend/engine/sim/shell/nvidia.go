package shell

import (
	"fmt"
	"strings"
	"time"

	"slipway/gpu"
)

// queries are what nvidia-smi --query-gpu may be asked for: the unit, "" for
// none, and the value.
var queries = map[string]struct {
	unit  string
	value func(d gpu.Device, s gpu.DeviceSample) string
}{
	"index":           {"", func(d gpu.Device, _ gpu.DeviceSample) string { return fmt.Sprint(d.Index) }},
	"name":            {"", func(d gpu.Device, _ gpu.DeviceSample) string { return d.Model }},
	"uuid":            {"", func(d gpu.Device, _ gpu.DeviceSample) string { return string(d.UUID) }},
	"pci.bus_id":      {"", func(d gpu.Device, _ gpu.DeviceSample) string { return d.PCI }},
	"driver_version":  {"", func(d gpu.Device, _ gpu.DeviceSample) string { return d.Driver }},
	"memory.total":    {"MiB", func(d gpu.Device, _ gpu.DeviceSample) string { return mebibytes(&d.Memory) }},
	"memory.used":     {"MiB", func(_ gpu.Device, s gpu.DeviceSample) string { return mebibytes(s.MemoryUsed) }},
	"memory.free":     {"MiB", func(_ gpu.Device, s gpu.DeviceSample) string { return mebibytes(s.MemoryFree) }},
	"utilization.gpu": {"%", func(_ gpu.Device, s gpu.DeviceSample) string { return percent(s.Util) }},
	"temperature.gpu": {"", func(_ gpu.Device, s gpu.DeviceSample) string { return told(s.Temperature) }},
	"power.draw":      {"W", func(_ gpu.Device, s gpu.DeviceSample) string { return watts(s.Power, "%.2f") }},
	"power.limit":     {"W", func(_ gpu.Device, s gpu.DeviceSample) string { return watts(s.PowerLimit, "%.2f") }},
}

// unknown is what is said of a value that a device does not tell.
const unknown = "[N/A]"

func told(n *int) string {
	if n == nil {
		return unknown
	}
	return fmt.Sprint(*n)
}

func percent(hundredths *int) string {
	if hundredths == nil {
		return unknown
	}
	return fmt.Sprint((*hundredths + 50) / 100)
}

func mebibytes(b *gpu.Bytes) string {
	if b == nil {
		return unknown
	}
	return fmt.Sprint(int64(*b / gpu.MiB))
}

func watts(power *gpu.MilliWatt, format string) string {
	if power == nil {
		return unknown
	}
	return fmt.Sprintf(format, float64(*power)/1000)
}

// nvidia tells of the simulated devices of the container as NVIDIA's program
// tells of real ones.
func nvidia(c *command) int {
	f, operands, err := c.parse("Lq:f:", map[string]byte{"list-gpus": 'L', "query-gpu": 'q', "format": 'f'})
	if err != nil || len(operands) > 0 {
		c.usage("[-L] [--query-gpu=NAME,… --format=csv[,noheader][,nounits]]")
		return 1
	}
	devices, sample, err := c.world.granted(c.ctx)
	switch {
	case err != nil:
		return c.fail("%v", err)
	case len(devices) == 0:
		c.printf("No devices were found\n")
		c.fail("this session was given no GPU")
		return 6
	case f.has("L"):
		for _, d := range devices {
			c.printf("GPU %d: %s (UUID: %s)\n", d.Index, d.Model, d.UUID)
		}
		return 0
	case f.has("q"):
		return c.queried(strings.Split(f['q'], ","), f['f'], devices, sample)
	}
	c.board(devices, sample)
	return 0
}

// sampleOf finds what is measured of a device, which may be nothing.
func sampleOf(d gpu.Device, sample gpu.Sample) gpu.DeviceSample {
	for _, s := range sample.Devices {
		if s.UUID == d.UUID {
			return s
		}
	}
	return gpu.DeviceSample{UUID: d.UUID}
}

// queried answers --query-gpu.
func (c *command) queried(names []string, format string, devices []gpu.Device, sample gpu.Sample) int {
	units := !strings.Contains(format, "nounits")
	var heads []string
	for i, name := range names {
		names[i] = strings.TrimSpace(name)
		q, ok := queries[names[i]]
		if !ok {
			c.printf("Field \"%s\" is not a valid field to query.\n\n", names[i])
			return 2
		}
		if units && q.unit != "" {
			name += " [" + q.unit + "]"
		}
		heads = append(heads, strings.TrimSpace(name))
	}
	if !strings.Contains(format, "noheader") {
		c.printf("%s\n", strings.Join(heads, ", "))
	}
	for _, d := range devices {
		var values []string
		for _, name := range names {
			q := queries[name]
			value := q.value(d, sampleOf(d, sample))
			if units && q.unit != "" && value != unknown {
				value += " " + q.unit
			}
			values = append(values, value)
		}
		c.printf("%s\n", strings.Join(values, ", "))
	}
	return 0
}

// The widths of the table are those of NVIDIA's.
const (
	boardWidth = 89
	boardRule  = "+-----------------------------------------+------------------------+----------------------+\n"
)

// board prints the table of devices and the one of processes.
func (c *command) board(devices []gpu.Device, sample gpu.Sample) {
	line := strings.Repeat("-", boardWidth)
	c.printf("%s\n+%s+\n", sample.At.Wall.UTC().Format(time.ANSIC), line)
	c.printf("| %-87s |\n",
		"NVIDIA-SMI (simulated by Slipway)     Driver Version: "+devices[0].Driver+"     CUDA Version: N/A")
	c.printf("|%s", strings.ReplaceAll(boardRule[1:], "+\n", "|\n"))
	c.printf("| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |\n")
	c.printf("| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |\n")
	c.printf("|=========================================+========================+======================|\n")
	for _, d := range devices {
		s := sampleOf(d, sample)
		c.printf("|%4d  %-31sOff |   %-16s Off | %20s |\n", d.Index, cutTo(d.Model, 30), "0000"+d.PCI, "N/A")
		c.printf("| N/A %4sC    %s       %16s | %22s | %8s      Default |\n", told(s.Temperature), performance(s),
			watts(s.Power, "%.0fW")+" / "+watts(s.PowerLimit, "%.0fW"),
			mebibytes(s.MemoryUsed)+"MiB / "+mebibytes(&d.Memory)+"MiB", percent(s.Util)+"%")
		c.printf("%s", boardRule)
	}
	c.printf("\n+%s+\n| %-87s |\n", line, "Processes:")
	c.printf("|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |\n")
	c.printf("|        ID   ID                                                               Usage      |\n")
	c.printf("|%s|\n", strings.Repeat("=", boardWidth))
	shown := 0
	for _, p := range c.world.numbered(sample.Processes) {
		for _, d := range devices {
			if d.UUID == p.Device {
				c.printf("| %4d   N/A  N/A %10d      C   %-39s %11s |\n", d.Index, p.PID, cutTo(p.Name, 39),
					mebibytes(p.Memory)+"MiB")
				shown++
			}
		}
	}
	if shown == 0 {
		c.printf("| %-87s |\n", " No running processes found")
	}
	c.printf("+%s+\n", line)
}

// performance is the state that a device of that load is in.
func performance(s gpu.DeviceSample) string {
	if s.Util != nil && *s.Util > 0 {
		return "P2"
	}
	return "P8"
}

func cutTo(text string, n int) string {
	if len(text) > n {
		return text[:n-3] + "..."
	}
	return text
}
