package shell

import (
	"context"

	"slipway/gpu"
)

// GPUs are the devices that a container was granted.
type GPUs interface {
	// Read says what the devices are and do now. Processes are those of the
	// container only.
	Read(ctx context.Context) ([]gpu.Device, gpu.Sample, error)
	// Compute keeps the devices busy and their memory full, as far as they were
	// granted, with a program of that name, until end is called.
	Compute(name string) (pids []int, end func())
}

// granted reads the devices of the container; there may be none.
func (w *World) granted(ctx context.Context) ([]gpu.Device, gpu.Sample, error) {
	if w.GPUs == nil {
		return nil, gpu.Sample{}, nil
	}
	return w.GPUs.Read(ctx)
}

// compute has a process use the devices of the container, if it has some, until
// end is called.
func (w *World) compute(p *Process, name string) (end func()) {
	if w.GPUs == nil {
		return func() {}
	}
	pids, release := w.GPUs.Compute(name)
	w.mu.Lock()
	defer w.mu.Unlock()
	p.onGPUs = pids
	return func() {
		w.mu.Lock()
		p.onGPUs = nil
		w.mu.Unlock()
		release()
	}
}

// numbered gives processes on devices the numbers that the container knows them
// by: those that one of its commands runs have the number of the command.
func (w *World) numbered(processes []gpu.ProcessSample) []gpu.ProcessSample {
	w.mu.Lock()
	defer w.mu.Unlock()
	inside := map[int]int{}
	for _, p := range w.procs {
		for _, pid := range p.onGPUs {
			inside[pid] = p.PID
		}
	}
	for i, p := range processes {
		if pid, ok := inside[p.PID]; ok {
			processes[i].PID = pid
		}
	}
	return processes
}

// table is the process table with the programs that are on the container's
// devices without a command of its own, as a notebook's kernel is.
func (c *command) table() []Process {
	table := c.world.Processes()
	known := map[int]bool{}
	for _, p := range table {
		known[p.PID] = true
	}
	_, sample, err := c.world.granted(c.ctx)
	if err != nil {
		return table // nvidia-smi says why
	}
	for _, p := range c.world.numbered(sample.Processes) {
		if !known[p.PID] {
			known[p.PID] = true
			table = append(table, Process{PID: p.PID, Command: p.Name + " -m ipykernel_launcher", TTY: "?",
				Started: c.world.Started, memory: baseMemory})
		}
	}
	return table
}
