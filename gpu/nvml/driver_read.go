//go:build linux && cgo

package nvml

import (
	"encoding/binary"
	"slices"

	lib "github.com/NVIDIA/go-nvml/pkg/nvml"
)

// probed are the codes of calls that an inventory tries to learn what a device can do.
func (l *library) probed(d device) map[string]int {
	tried := map[string]func() lib.Return{
		"nvmlDeviceGetComputeRunningProcesses": func() lib.Return { _, r := d.GetComputeRunningProcesses(); return r },
		"nvmlDeviceGetProcessUtilization":      func() lib.Return { _, r := d.GetProcessUtilization(0); return r },
		"nvmlDeviceGetTotalEnergyConsumption":  func() lib.Return { _, r := d.GetTotalEnergyConsumption(); return r },
		"nvmlDeviceGetMemoryLimits_v1": func() lib.Return {
			_, r := d.GetMemoryLimits_v1("/sys/fs/cgroup")
			return r
		},
	}
	codes := make(map[string]int, len(tried))
	for name, do := range tried {
		codes[name] = l.call(name, d.uuid, do)
	}
	if codes["nvmlDeviceGetTotalEnergyConsumption"] != 0 && l.field(d, lib.FI_DEV_TOTAL_ENERGY_CONSUMPTION) != nil {
		codes["nvmlDeviceGetTotalEnergyConsumption"] = 0
	}
	return codes
}

func (l *library) inventory(omit []omission) ([]deviceFacts, []loss, *fault) {
	if f := l.begin(omit); f != nil {
		return nil, nil, f
	}
	devices, f := l.devices()
	if f != nil {
		return nil, nil, f
	}
	version, _ := askFor(l, "nvmlSystemGetDriverVersion", "", l.nvml.SystemGetDriverVersion)
	facts := make([]deviceFacts, 0, len(devices))
	for _, d := range devices {
		before := len(l.lost)
		one := l.facts(d, version)
		if !fellOff(l.lost[before:]) {
			facts = append(facts, one)
		}
	}
	return facts, l.lost, l.fault
}

func (l *library) facts(d device, version string) deviceFacts {
	f := deviceFacts{UUID: d.uuid, Index: d.index, Driver: version, Probes: l.probed(d)}
	f.Name, _ = askFor(l, "nvmlDeviceGetName", d.uuid, d.GetName)
	info, _ := askFor(l, "nvmlDeviceGetPciInfo", d.uuid, d.GetPciInfo)
	f.PCI = text(info.BusId[:])
	m := l.memory(d)
	f.Total, f.Reserved = m.total, m.reserved
	f.Accounts, f.Probes["nvmlDeviceGetAccountingMode"] = l.keepsRecords(d)
	if f.Accounts {
		f.Probes["nvmlDeviceGetAccountingPids"] = l.records(d)
	}
	f.Probes["nvmlDeviceGetCudaComputeCapability"] = l.call("nvmlDeviceGetCudaComputeCapability", d.uuid,
		func() (r lib.Return) {
			f.Major, _, r = d.GetCudaComputeCapability()
			return r
		})
	_, f.Probes["nvmlDeviceGetMigMode"] = l.migMode(d)
	if f.MIG = l.migOn(d); f.MIG {
		instances, _ := l.instances(d)
		f.Instances = l.instanceFacts(d, instances)
		f.Probes["nvmlGpmMigSampleGet"] = l.probeMonitoring(d, instances)
	}
	return f
}

func (l *library) instanceFacts(d device, instances []device) []instanceFacts {
	facts := make([]instanceFacts, 0, len(instances))
	for _, in := range instances {
		i := instanceFacts{UUID: in.uuid}
		i.Name, _ = askFor(l, "nvmlDeviceGetName", d.uuid, in.GetName)
		in.uuid = d.uuid // losses and omissions go by the device
		i.Total = l.memory(in).total
		facts = append(facts, i)
	}
	return facts
}

// memoryFacts is a device's memory; known is false if it is not reported, as on machines with unified memory.
type memoryFacts struct {
	total, reserved, used, free uint64
	known                       bool
}

// memory asks the second version, which separates what the driver keeps from what programs use, and else the first,
// which counts both as used.
func (l *library) memory(d device) memoryFacts {
	v2, code := read(l, "nvmlDeviceGetMemoryInfo_v2", d.uuid, d.GetMemoryInfo_v2)
	if code == 0 || code == codeOmitted {
		return memoryFacts{total: v2.Total, reserved: v2.Reserved, used: v2.Used, free: v2.Free, known: code == 0}
	}
	v, known := askFor(l, "nvmlDeviceGetMemoryInfo", d.uuid, d.GetMemoryInfo)
	return memoryFacts{total: v.Total, used: v.Used, free: v.Free, known: known}
}

func (l *library) sample(r request) (*reading, []loss, *fault) {
	if f := l.begin(r.Omit); f != nil {
		return nil, nil, f
	}
	devices, f := l.devices()
	if f != nil {
		return nil, nil, f
	}
	out := &reading{}
	out.Driver, _ = askFor(l, "nvmlSystemGetDriverVersion", "", l.nvml.SystemGetDriverVersion)
	for _, d := range devices {
		before := len(l.lost)
		last, ok := r.Last[d.uuid]
		if !ok {
			last = r.Since
		}
		one := l.readDevice(d, last)
		if !fellOff(l.lost[before:]) {
			out.Devices = append(out.Devices, one)
		}
	}
	return out, l.lost, l.fault
}

func fellOff(lost []loss) bool {
	return slices.ContainsFunc(lost, func(one loss) bool { return one.ends() != "" })
}

func (l *library) readDevice(d device, last uint64) deviceReading {
	out := deviceReading{UUID: d.uuid, MIG: l.migOn(d)}
	if m := l.memory(d); m.known {
		out.Used, out.Free = &m.used, &m.free
	}
	out.Energy = l.energy(d)
	out.Power = l.power(d)
	out.PowerLimit = l.amount32("nvmlDeviceGetEnforcedPowerLimit", d, d.GetEnforcedPowerLimit)
	if degrees, ok := askFor(l, "nvmlDeviceGetTemperature", d.uuid,
		func() (uint32, lib.Return) { return d.GetTemperature(lib.TEMPERATURE_GPU) }); ok {
		out.Temperature = &degrees
	}
	if rates, ok := askFor(l, "nvmlDeviceGetUtilizationRates", d.uuid, d.GetUtilizationRates); ok {
		out.Rate = &rates.Gpu
	}
	if out.MIG {
		instances, known := l.instances(d)
		out.Processes, out.Listed = l.processesIn(d, instances)
		out.Listed = out.Listed && known
		out.RowsCode = int(lib.ERROR_NOT_SUPPORTED) // the driver charges no process for a divided device
		out.Instances = l.instanceReadings(d, instances)
		return out
	}
	out.Processes, out.Listed = l.processesOf(d, d.uuid, "")
	out.Ticks = l.ticks(d, last)
	out.Rows, out.RowsCode = l.rows(d, last)
	out.Ended = l.endedProcesses(d, out.Processes)
	return out
}

func (l *library) amount32(call string, d device, get func() (uint32, lib.Return)) *uint64 {
	value, ok := askFor(l, call, d.uuid, get)
	if !ok {
		return nil
	}
	return new(uint64(value))
}

func (l *library) energy(d device) *uint64 {
	value, code := read(l, "nvmlDeviceGetTotalEnergyConsumption", d.uuid, d.GetTotalEnergyConsumption)
	if code == 0 {
		return &value
	}
	if value := l.field(d, lib.FI_DEV_TOTAL_ENERGY_CONSUMPTION); value != nil {
		return value
	}
	l.note("nvmlDeviceGetTotalEnergyConsumption", d.uuid, code)
	return nil
}

// power prefers the driver's average over a second to its function, which covers a quarter of that on some cards.
func (l *library) power(d device) *uint64 {
	if value := l.field(d, lib.FI_DEV_POWER_AVERAGE); value != nil {
		return value
	}
	return l.amount32("nvmlDeviceGetPowerUsage", d, d.GetPowerUsage)
}

// ticks are the driver's samples of the whole device since last. None is no loss.
func (l *library) ticks(d device, last uint64) []tick {
	var ticks []tick
	code := l.call("nvmlDeviceGetSamples", d.uuid, func() lib.Return {
		kind, samples, r := d.GetSamples(lib.GPU_UTILIZATION_SAMPLES, last)
		ticks = ticks[:0]
		for _, s := range samples {
			value := binary.NativeEndian.Uint64(s.SampleValue[:])
			if kind == lib.VALUE_TYPE_UNSIGNED_INT {
				value = uint64(binary.NativeEndian.Uint32(s.SampleValue[:]))
			}
			ticks = append(ticks, tick{At: s.TimeStamp, Value: value})
		}
		return r
	})
	if code == codeNotFound {
		return nil
	}
	l.note("nvmlDeviceGetSamples", d.uuid, code)
	if code != 0 {
		return nil
	}
	return ticks
}

func (l *library) rows(d device, last uint64) ([]row, int) {
	var rows []row
	code := l.call("nvmlDeviceGetProcessUtilization", d.uuid, func() lib.Return {
		samples, r := d.GetProcessUtilization(last)
		rows = rows[:0]
		for _, s := range samples {
			rows = append(rows, row{PID: s.Pid, At: s.TimeStamp, SM: s.SmUtil})
		}
		return r
	})
	if code != codeNotFound {
		l.note("nvmlDeviceGetProcessUtilization", d.uuid, code)
	}
	if code != 0 {
		return nil, code
	}
	return rows, code
}

// processesIn lists the processes on the instances of a divided device. listed is false when some may be missing.
func (l *library) processesIn(d device, instances []device) (found []processInfo, listed bool) {
	listed = true
	for _, in := range instances {
		more, ok := l.processesOf(in, d.uuid, in.uuid)
		found, listed = append(found, more...), listed && ok
	}
	return found, listed
}

// processesOf merges the lists of one handle. A process may be in several, each with its whole memory, so the largest
// counts. The list of MPS clients exists on some drivers only and repeats the first.
func (l *library) processesOf(d device, uuid, instance string) (found []processInfo, listed bool) {
	at := map[uint32]int{}
	add := func(call string, get func() ([]lib.ProcessInfo, lib.Return)) bool {
		infos, code := read(l, call, uuid, get)
		if call != "nvmlDeviceGetMPSComputeRunningProcesses" || code != codeMissing {
			l.note(call, uuid, code)
		}
		if code != 0 {
			return false
		}
		for _, info := range infos {
			i, ok := at[info.Pid]
			if !ok {
				at[info.Pid] = len(found)
				found = append(found, processInfo{PID: info.Pid, Memory: info.UsedGpuMemory, Instance: instance})
				continue
			}
			found[i].Memory = larger(found[i].Memory, info.UsedGpuMemory)
		}
		return true
	}
	listed = add("nvmlDeviceGetComputeRunningProcesses", d.GetComputeRunningProcesses)
	add("nvmlDeviceGetGraphicsRunningProcesses", d.GetGraphicsRunningProcesses)
	add("nvmlDeviceGetMPSComputeRunningProcesses", d.GetMPSComputeRunningProcesses)
	return found, listed
}

// larger is the larger of two amounts, either of which may be unavailable.
func larger(a, b uint64) uint64 {
	switch {
	case a == notAvailable:
		return b
	case b == notAvailable:
		return a
	}
	return max(a, b)
}

func text(chars []int8) string {
	var out []byte
	for _, c := range chars {
		if c == 0 {
			break
		}
		out = append(out, byte(c))
	}
	return string(out)
}

// keepsRecords reports whether accounting mode is on. It is never switched here.
func (l *library) keepsRecords(d device) (bool, int) {
	mode, code := read(l, "nvmlDeviceGetAccountingMode", d.uuid, d.GetAccountingMode)
	return code == 0 && mode == lib.FEATURE_ENABLED, code
}

func (l *library) records(d device) int {
	_, code := read(l, "nvmlDeviceGetAccountingPids", d.uuid, d.GetAccountingPids)
	if code == 0 && !l.has("nvmlDeviceGetAccountingStats") {
		return codeMissing
	}
	return code
}

// endedProcesses are the driver's records of processes that ended, or nil if it keeps none. A record does not change,
// so each is read once: until its number is on the device again, or the driver forgets it.
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

// endedProcess reads one record; false for a process that still runs, and for a dropped record.
func (l *library) endedProcess(d device, pid uint32) (endedInfo, bool) {
	stats, code := read(l, "nvmlDeviceGetAccountingStats", d.uuid,
		func() (lib.AccountingStats, lib.Return) { return d.GetAccountingStats(pid) })
	if code != codeNotFound {
		l.note("nvmlDeviceGetAccountingStats", d.uuid, code)
	}
	return endedInfo{PID: pid, Start: stats.StartTime, Time: stats.Time, Util: stats.GpuUtilization,
		Peak: stats.MaxMemoryUsage}, code == 0 && stats.IsRunning == 0
}
