//go:build linux && cgo

package nvml

import (
	lib "github.com/NVIDIA/go-nvml/pkg/nvml"
)

// keepsRecords reports whether accounting mode is on. It is never switched on
// or off here.
func (l *library) keepsRecords(d device) (bool, int) {
	mode, code := read(l, "nvmlDeviceGetAccountingMode", d.uuid, d.GetAccountingMode)
	return code == 0 && mode == lib.FEATURE_ENABLED, code
}

// records tries to read the records, as an inventory does.
func (l *library) records(d device) int {
	_, code := read(l, "nvmlDeviceGetAccountingPids", d.uuid, d.GetAccountingPids)
	if code == 0 && !l.has("nvmlDeviceGetAccountingStats") {
		return codeMissing
	}
	return code
}

// endedProcesses are the driver's records of processes that ended, or nil where
// it keeps none. A record does not change any more, so each is read once: until
// its number is on the device again, or the driver forgets it.
func (l *library) endedProcesses(d device, running []processInfo) *[]endedInfo {
	if on, _ := l.keepsRecords(d); !on {
		return nil
	}
	pids, ok := askFor(l, "nvmlDeviceGetAccountingPids", d.uuid, d.GetAccountingPids)
	if !ok {
		return nil
	}
	known := l.ended[d.uuid]
	for _, p := range running {
		delete(known, p.PID)
	}
	next := make(map[uint32]endedInfo, len(pids))
	list := make([]endedInfo, 0, len(pids))
	for _, pid := range pids {
		pid := uint32(pid)
		one, ok := known[pid]
		if !ok {
			one, ok = l.endedProcess(d, pid)
		}
		if ok {
			next[pid] = one
			list = append(list, one)
		}
	}
	l.ended[d.uuid] = next
	return &list
}

// endedProcess reads one record; false for a process that still runs, and for
// one that the driver has just forgotten.
func (l *library) endedProcess(d device, pid uint32) (endedInfo, bool) {
	stats, code := read(l, "nvmlDeviceGetAccountingStats", d.uuid,
		func() (lib.AccountingStats, lib.Return) { return d.GetAccountingStats(pid) })
	if code != codeNotFound {
		l.note("nvmlDeviceGetAccountingStats", d.uuid, code)
	}
	return endedInfo{PID: pid, Start: stats.StartTime, Time: stats.Time, Util: stats.GpuUtilization,
		Peak: stats.MaxMemoryUsage}, code == 0 && stats.IsRunning == 0
}
