package meter

import (
	"cmp"
	"sync"
	"time"

	"github.com/shirou/gopsutil/v3/cpu"
	"github.com/shirou/gopsutil/v3/disk"
	"github.com/shirou/gopsutil/v3/host"
	"github.com/shirou/gopsutil/v3/mem"

	"slipway/gpu"
)

// BootTime is when the operating system was started, as it reports.
func BootTime() (time.Time, error) {
	seconds, err := host.BootTime()
	return time.Unix(int64(seconds), 0), err
}

type probe struct {
	mu   sync.Mutex // guards last
	last []cpu.TimesStat
}

// load measures the load since the previous call. It returns what it can measure, with the first error.
func (p *probe) load(dataRoot string) (Load, error) {
	var l Load
	times, err := cpu.Times(true)
	if err == nil {
		p.mu.Lock()
		l.Busy = busySince(p.last, times)
		p.last = times
		p.mu.Unlock()
		for _, busy := range l.Busy {
			l.CPU += busy
		}
	}
	memory, memErr := mem.VirtualMemory()
	if memErr == nil {
		l.Memory = gpu.Bytes(memory.Total - memory.Available)
	}
	usage, diskErr := disk.Usage(dataRoot)
	if diskErr == nil {
		l.DiskFree, l.DiskTotal = gpu.Bytes(usage.Free), gpu.Bytes(usage.Total)
	}
	return l, cmp.Or(err, memErr, diskErr)
}

// busySince is how busy each CPU was between two readings of its times.
func busySince(before, now []cpu.TimesStat) map[int]float64 {
	if len(before) != len(now) {
		return nil
	}
	busy := make(map[int]float64, len(now))
	for i := range now {
		idle := (now[i].Idle + now[i].Iowait) - (before[i].Idle + before[i].Iowait)
		total := sum(now[i]) - sum(before[i])
		if total > 0 {
			busy[i] = min(1, max(0, 1-idle/total))
		}
	}
	return busy
}

// sum is the total time of a CPU; guests' time is part of user and nice.
func sum(t cpu.TimesStat) float64 {
	return t.User + t.System + t.Idle + t.Nice + t.Iowait + t.Irq + t.Softirq + t.Steal
}
