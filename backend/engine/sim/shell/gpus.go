package shell

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"slipway/gpu"
)

// GPUs are the devices granted to a container.
type GPUs interface {
	// Read returns the devices, and a sample with processes of the container only.
	Read(ctx context.Context) ([]gpu.Device, gpu.Sample, error)
	// Compute uses the granted devices and memory with a program of that name, until end is called.
	Compute(name string) (pids []int, end func())
}

type measured struct {
	gpu.Device
	now gpu.DeviceSample
}

// granted reads the container's devices, if it has some. Processes have the numbers of the container's commands.
func (w *World) granted(ctx context.Context) ([]measured, []gpu.ProcessSample, error) {
	if w.GPUs == nil {
		return nil, nil, nil
	}
	devices, sample, err := w.GPUs.Read(ctx)
	all := make([]measured, len(devices))
	for i, d := range devices {
		all[i].Device = d
		all[i].now, _ = sample.Device(d.UUID)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	inside := map[int]int{}
	for _, p := range w.procs {
		for _, pid := range p.onGPUs {
			inside[pid] = p.PID
		}
	}
	for i, p := range sample.Processes {
		if pid, ok := inside[p.PID]; ok {
			sample.Processes[i].PID = pid
		}
	}
	return all, sample.Processes, err
}

// compute lets a process use the container's devices, if it has some, until end is called.
func (w *World) compute(p *Process) (end func()) {
	if w.GPUs == nil {
		return func() {}
	}
	pids, release := w.GPUs.Compute("train")
	set := func(pids []int) {
		w.mu.Lock()
		defer w.mu.Unlock()
		p.onGPUs = pids
	}
	set(pids)
	return func() { set(nil); release() }
}

// table is the process table with programs on the devices that are not commands, such as a notebook's kernel.
func (c *command) table() []Process {
	table := c.world.Processes()
	_, onGPUs, _ := c.world.granted(c.ctx) // nvidia-smi says why they cannot be read
	for _, p := range onGPUs {
		if !slices.ContainsFunc(table, func(known Process) bool { return known.PID == p.PID }) {
			table = append(table, Process{PID: p.PID, Command: p.Name + " -m ipykernel_launcher", TTY: "?",
				Started: c.world.Started, memory: baseMemory})
		}
	}
	return table
}

// told formats a value in a unit, or [unknown].
func told[T ~int | ~int64](value *T, format string, unit float64) string {
	if value == nil {
		return unknown
	}
	return fmt.Sprintf(format, float64(*value)/unit)
}

const unknown = "[N/A]"

func mebibytes(b *gpu.Bytes) string { return told(b, "%.0f", float64(gpu.MiB)) }

// queries are the fields of nvidia-smi --query-gpu, with their units.
var queries = map[string]struct {
	unit  string
	value func(d measured) string
}{
	"index":           {"", func(d measured) string { return fmt.Sprint(d.Index) }},
	"name":            {"", func(d measured) string { return d.Model }},
	"uuid":            {"", func(d measured) string { return string(d.UUID) }},
	"driver_version":  {"", func(d measured) string { return d.Driver }},
	"memory.total":    {"MiB", func(d measured) string { return mebibytes(&d.Memory) }},
	"memory.used":     {"MiB", func(d measured) string { return mebibytes(d.now.MemoryUsed) }},
	"memory.free":     {"MiB", func(d measured) string { return mebibytes(d.now.MemoryFree) }},
	"utilization.gpu": {"%", func(d measured) string { return told(d.now.Util, "%.0f", 100) }},
	"temperature.gpu": {"", func(d measured) string { return told(d.now.Temperature, "%.0f", 1) }},
	"power.draw":      {"W", func(d measured) string { return told(d.now.Power, "%.2f", 1000) }},
	"power.limit":     {"W", func(d measured) string { return told(d.now.PowerLimit, "%.2f", 1000) }},
}

// nvidia imitates nvidia-smi for the simulated devices.
func nvidia(c *command) int {
	devices, processes, err := c.world.granted(c.ctx)
	switch {
	case err != nil:
		return c.fail("%v", err)
	case len(devices) == 0:
		c.printf("No devices were found\n")
		c.fail("this session was given no GPU")
		return 6
	case c.has("L"):
		for _, d := range devices {
			c.printf("GPU %d: %s (UUID: %s)\n", d.Index, d.Model, d.UUID)
		}
	case c.has("query-gpu"):
		return c.queried(strings.Split(c.flags["query-gpu"], ","), devices)
	default:
		c.board(devices, processes)
	}
	return 0
}

func (c *command) queried(names []string, devices []measured) int {
	format := c.flags["format"]
	units := !strings.Contains(format, "nounits")
	rows := make([][]string, 1+len(devices))
	for _, name := range names {
		name = strings.TrimSpace(name)
		q, ok := queries[name]
		if !ok {
			c.printf("Field \"%s\" is not a valid field to query.\n\n", name)
			return 2
		}
		head, unit := name, ""
		if units && q.unit != "" {
			head, unit = name+" ["+q.unit+"]", " "+q.unit
		}
		rows[0] = append(rows[0], head)
		for i, d := range devices {
			rows[1+i] = append(rows[1+i], strings.ReplaceAll(q.value(d)+unit, unknown+unit, unknown))
		}
	}
	if strings.Contains(format, "noheader") {
		rows = rows[1:]
	}
	for _, row := range rows {
		c.printf("%s\n", strings.Join(row, ", "))
	}
	return 0
}

// The widths are those of the real table.
const (
	boardWidth = 89
	boardRule  = "+-----------------------------------------+------------------------+----------------------+\n"
)

func (c *command) board(devices []measured, processes []gpu.ProcessSample) {
	line := strings.Repeat("-", boardWidth)
	c.printf("%s\n+%s+\n", c.world.now().UTC().Format(time.ANSIC), line)
	c.printf("| %-87s |\n|%s", "NVIDIA-SMI (simulated by Slipway)     Driver Version: "+devices[0].Driver+
		"     CUDA Version: N/A", strings.ReplaceAll(boardRule[1:], "+\n", "|\n"))
	c.printf("| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |\n")
	c.printf("| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |\n")
	c.printf("|=========================================+========================+======================|\n")
	for _, d := range devices {
		state := "P8"
		if d.now.Util != nil && *d.now.Util > 0 {
			state = "P2"
		}
		c.printf("|%4d  %-31.30sOff |   %-16s Off | %20s |\n", d.Index, d.Model, "0000"+d.PCI, "N/A")
		c.printf("| N/A %4sC    %s       %16s | %22s | %8s      Default |\n", told(d.now.Temperature, "%.0f", 1), state,
			told(d.now.Power, "%.0fW", 1000)+" / "+told(d.now.PowerLimit, "%.0fW", 1000),
			mebibytes(d.now.MemoryUsed)+"MiB / "+mebibytes(&d.Memory)+"MiB", told(d.now.Util, "%.0f%%", 100))
		c.printf("%s", boardRule)
	}
	c.printf("\n+%s+\n| %-87s |\n", line, "Processes:")
	c.printf("|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |\n")
	c.printf("|        ID   ID                                                               Usage      |\n")
	c.printf("|%s|\n", strings.Repeat("=", boardWidth))
	for _, p := range processes {
		for _, d := range devices {
			if d.UUID == p.Device {
				c.printf("| %4d   N/A  N/A %10d      C   %-39.39s %11s |\n", d.Index, p.PID, p.Name,
					mebibytes(p.Memory)+"MiB")
			}
		}
	}
	if len(processes) == 0 {
		c.printf("| %-87s |\n", " No running processes found")
	}
	c.printf("+%s+\n", line)
}
