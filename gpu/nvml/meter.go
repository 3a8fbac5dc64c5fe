package nvml

import (
	"cmp"
	"slices"
	"time"

	"slipway/gpu"
)

// meter turns readings into samples. It knows up to which moment of the driver's clock each device was read, so that no
// time counts twice or is skipped. It is pure: time comes with the readings.
type meter struct {
	cursors map[string]*cursor
	last    gpu.Moment // of the previous sample; zero before the first
}

// cursor is how far one device was read.
type cursor struct {
	read   uint64             // microseconds of the driver's clock, which is the wall clock
	silent time.Duration      // since when, on the Boot clock, the busy device names no process; 0: it does
	ended  map[endedInfo]bool // records that were counted; nil: none was read yet
}

// Limits of the driver's times that are believed.
const (
	// bufferSpan is how far back the driver remembers.
	bufferSpan = 10 * time.Second
	// futureSlack is how far ahead of the wall clock a time may be.
	futureSlack = 2 * time.Second
	// stepSlack is how far the wall clock may drift from the boot clock between two samples.
	stepSlack = time.Second
	maxUtil   = 100
)

type asked struct {
	last  map[string]uint64
	other uint64 // for the devices that are not in last
}

func (a asked) of(uuid string) uint64 {
	if last, ok := a.last[uuid]; ok {
		return last
	}
	return a.other
}

// ask returns from when on each device is to be read. A device that was never read is read as far back as the previous
// sample, and all of the driver's memory if there is none.
func (m *meter) ask(now gpu.Moment) asked {
	if back, stepped := m.stepped(now); stepped && back {
		// Times before that are in the future now and hide what comes: start over at the previous sample.
		for _, c := range m.cursors {
			c.read, c.silent = m.previous(now), 0
		}
	}
	a := asked{last: make(map[string]uint64, len(m.cursors))}
	for uuid, c := range m.cursors {
		a.last[uuid] = c.read
	}
	if m.last.BootID != "" {
		a.other = m.previous(now)
	}
	return a
}

// stepped reports whether the wall clock was set since the last sample, and whether backward.
func (m *meter) stepped(now gpu.Moment) (back, stepped bool) {
	if m.last.BootID == "" || m.last.BootID != now.BootID {
		return false, false
	}
	step := now.Wall.Sub(m.last.Wall) - (now.Boot - m.last.Boot)
	return step < 0, step.Abs() > stepSlack
}

func (m *meter) previous(now gpu.Moment) uint64 {
	return micros(now.Wall.Add(-(now.Boot - m.last.Boot)))
}

func micros(t time.Time) uint64 { return uint64(max(0, t.UnixMicro())) }

// take makes the device and process samples of one reading. at is when the reading began; from is what ask returned.
func (m *meter) take(r reading, at gpu.Moment, from asked) (s gpu.Sample, lost []loss) {
	if m.cursors == nil {
		m.cursors = map[string]*cursor{}
	}
	first := m.last.BootID == ""
	oldest := at.Boot
	for _, d := range r.Devices {
		valid := d.validTicks(at, from.of(d.UUID))
		ended := m.ended(d)
		rows, oddities := d.validRows(at, from.of(d.UUID), ended)
		lost = append(lost, oddities...)
		if len(valid) > 0 {
			oldest = min(oldest, at.Boot-age(valid[0].At, at))
		} else if len(rows) > 0 {
			oldest = at.Boot - bufferSpan
		}
		s.Devices = append(s.Devices, d.sample(valid))
		utils := shares(rows, mean(valid))
		s.Processes = append(s.Processes, d.processes(rows, utils)...)
		s.Ended = append(s.Ended, m.busyOf(ended, d, utils, at)...)
		m.advance(d, at, valid, rows)
	}
	if first && oldest < at.Boot {
		s.Since = oldest
	}
	s.At = at
	m.last = at
	slices.SortFunc(s.Processes, func(a, b gpu.ProcessSample) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.PID, b.PID))
	})
	return s, lost
}

func age(at uint64, now gpu.Moment) time.Duration {
	return min(bufferSpan, max(0, now.Wall.Sub(time.UnixMicro(int64(at)))))
}

func (d deviceReading) validTicks(at gpu.Moment, from uint64) []tick {
	until := micros(at.Wall.Add(futureSlack))
	valid := slices.DeleteFunc(slices.Clone(d.Ticks), func(t tick) bool {
		return t.At <= from || t.At > until || t.Value > maxUtil
	})
	slices.SortFunc(valid, func(a, b tick) int { return cmp.Compare(a.At, b.At) })
	return valid
}

// validRows are the possible uses of the processes that are on the device, or ended a moment ago. Some drivers answer a
// hundred rows of garbage when there is no process.
func (d deviceReading) validRows(at gpu.Moment, from uint64, ended []endedInfo) (rows []row, lost []loss) {
	until := micros(at.Wall.Add(futureSlack))
	ahead := false
	for _, r := range d.Rows {
		ran := d.runs(r.PID) || slices.ContainsFunc(ended, func(e endedInfo) bool { return e.PID == r.PID })
		switch {
		case !ran || r.SM > maxUtil || r.At <= from:
		case r.At > until:
			ahead = true
		default:
			rows = append(rows, r)
		}
	}
	if ahead && len(rows) == 0 {
		lost = append(lost, loss{Device: d.UUID, Call: "nvmlDeviceGetProcessUtilization", Code: codeNonsense})
	}
	return rows, lost
}

func (m *meter) cursor(uuid string) *cursor {
	if m.cursors[uuid] == nil {
		m.cursors[uuid] = &cursor{}
	}
	return m.cursors[uuid]
}

// advance moves the cursor to the newest time that was read. If a busy device names no process for longer than the
// driver remembers, its clock is another: it is read from the start.
func (m *meter) advance(d deviceReading, at gpu.Moment, ticks []tick, rows []row) {
	c := m.cursor(d.UUID)
	if n := len(ticks); n > 0 {
		c.read = max(c.read, ticks[n-1].At)
	}
	for _, r := range rows {
		c.read = max(c.read, r.At)
	}
	busy := d.Rate != nil && *d.Rate > 0 && len(d.Processes) > 0
	idle := d.RowsCode == codeNotFound || d.RowsCode == 0 && len(rows) == 0
	switch {
	case !busy || !idle:
		c.silent = 0
	case c.silent == 0:
		c.silent = at.Boot
	case at.Boot-c.silent >= bufferSpan:
		c.read, c.silent = 0, 0
	}
}

// sample is the sample of the device. Its use is the mean of new ticks, or else the driver's current rate.
func (d deviceReading) sample(ticks []tick) gpu.DeviceSample {
	s := gpu.DeviceSample{UUID: gpu.UUID(d.UUID), Blind: !d.Listed}
	if s.Util = mean(ticks); d.MIG {
		s.Util = d.instancesUtil()
	} else if s.Util == nil && d.Rate != nil && *d.Rate <= maxUtil {
		s.Util = new(int(*d.Rate) * 100)
	}
	s.MemoryUsed, s.MemoryFree = known[gpu.Bytes](d.Used), known[gpu.Bytes](d.Free)
	s.Energy = known[gpu.MilliJoule](d.Energy)
	s.Power, s.PowerLimit = known[gpu.MilliWatt](d.Power), known[gpu.MilliWatt](d.PowerLimit)
	if d.Temperature != nil && *d.Temperature < 1000 {
		s.Temperature = new(int(*d.Temperature))
	}
	return s
}

// mean is in hundredths of a percent; nil without samples.
func mean(ticks []tick) *int {
	if len(ticks) == 0 {
		return nil
	}
	var sum uint64
	for _, t := range ticks {
		sum += t.Value
	}
	return new(int(sum * 100 / uint64(len(ticks))))
}

// known returns the amount at v, or nil if it is not available or too large to be true.
func known[T ~int64](v *uint64) *T {
	if v == nil || *v > 1<<62 {
		return nil
	}
	return new(T(*v))
}

// processes are the samples of the processes. One without rows was idle, if the driver reports rows at all.
func (d deviceReading) processes(rows []row, utils map[uint32]int) []gpu.ProcessSample {
	charges := d.RowsCode == 0 || d.RowsCode == codeNotFound
	if charges && len(rows) == 0 && slices.ContainsFunc(d.Rows, func(r row) bool { return d.runs(r.PID) }) {
		charges = false // all rows are impossible, so nothing is known
	}
	samples := make([]gpu.ProcessSample, 0, len(d.Processes))
	for _, p := range d.Processes {
		if p.PID == 0 || p.PID > 1<<31 {
			continue
		}
		s := gpu.ProcessSample{PID: int(p.PID), Device: gpu.UUID(d.UUID), Instance: gpu.UUID(p.Instance),
			Memory: known[gpu.Bytes](&p.Memory)}
		if d.MIG {
			s.Util = d.instanceUtil(p)
		} else if charges {
			s.Util = new(utils[p.PID])
		}
		samples = append(samples, s)
	}
	return samples
}

// shares are the uses of processes in hundredths of a percent, scaled down so that together they are at most the
// device's own. Each sample of the driver charges one process, so that an excess can only be rounding.
func shares(rows []row, device *int) map[uint32]int {
	sum, count := map[uint32]int{}, map[uint32]int{}
	for _, r := range rows {
		sum[r.PID] += int(r.SM) * 100
		count[r.PID]++
	}
	total := 0
	for pid := range sum {
		sum[pid] /= count[pid]
		total += sum[pid]
	}
	limit := maxUtil * 100
	if device != nil {
		limit = *device
	}
	if total <= limit {
		return sum
	}
	return scaled(sum, total, limit)
}

// scaled divides limit in proportion to parts, whose sum is total, by the largest remainder, without a rest.
func scaled(parts map[uint32]int, total, limit int) map[uint32]int {
	pids := make([]uint32, 0, len(parts))
	for pid := range parts {
		pids = append(pids, pid)
	}
	slices.SortFunc(pids, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(parts[b]*limit%total, parts[a]*limit%total), cmp.Compare(a, b))
	})
	left := limit
	out := make(map[uint32]int, len(parts))
	for _, pid := range pids {
		out[pid] = parts[pid] * limit / total
		left -= out[pid]
	}
	for _, pid := range pids[:left] {
		out[pid]++
	}
	return out
}

// busyPart is how much of the time the instance kept its device busy, in hundredths of a percent of the device: an
// instance that is an eighth of it and always busy makes it an eighth busy. Nil if unknown.
func (in instanceReading) busyPart() *int {
	if in.Busy == nil || in.Part <= 0 {
		return nil
	}
	return new(*in.Busy * int(in.Part) / int(gpu.WholeDevice))
}

// instancesUtil is how busy a divided device is: the sum over its instances; nil if one is unknown.
func (d deviceReading) instancesUtil() *int {
	sum := 0
	for _, in := range d.Instances {
		busy := in.busyPart()
		if busy == nil {
			return nil
		}
		sum += *busy
	}
	if len(d.Instances) == 0 {
		return nil
	}
	return new(min(sum, maxUtil*100))
}

// instanceUtil is the use of a process on an instance, in hundredths of a percent of the device. An instance is granted
// to one session; its processes share the use evenly, because the driver does not separate them.
func (d deviceReading) instanceUtil(p processInfo) *int {
	i := slices.IndexFunc(d.Instances, func(in instanceReading) bool { return in.UUID == p.Instance })
	if i < 0 {
		return nil
	}
	busy := d.Instances[i].busyPart()
	if busy == nil {
		return nil
	}
	beside, before := 0, 0
	for _, other := range d.Processes {
		if other.Instance != p.Instance {
			continue
		}
		if other.PID == p.PID {
			before = beside
		}
		beside++
	}
	util := *busy / beside
	if before < *busy%beside {
		util++
	}
	return &util
}

func (d deviceReading) runs(pid uint32) bool {
	return slices.ContainsFunc(d.Processes, func(p processInfo) bool { return p.PID == pid })
}

// ended are the records that were not counted yet. Those of the first reading ended before it and are never counted.
func (m *meter) ended(d deviceReading) (fresh []endedInfo) {
	if d.Ended == nil {
		return nil
	}
	c := m.cursor(d.UUID)
	first := c.ended == nil
	counted := make(map[endedInfo]bool, len(*d.Ended))
	for _, e := range *d.Ended {
		if !first && !c.ended[e] && !counted[e] {
			fresh = append(fresh, e)
		}
		counted[e] = true
	}
	c.ended = counted
	return fresh
}

// busyOf returns how long each ended process kept the device busy since the previous sample: from the driver's samples,
// or else from its record, for the part of its time after that sample.
func (m *meter) busyOf(ended []endedInfo, d deviceReading, utils map[uint32]int,
	at gpu.Moment) (list []gpu.EndedProcess) {
	if m.last.BootID != at.BootID {
		return nil
	}
	since := at.Boot - m.last.Boot
	for _, e := range ended {
		if e.PID == 0 || e.PID > 1<<31 || e.Util > maxUtil || e.Time > uint64(time.Hour*24*3650/time.Millisecond) {
			continue
		}
		began := at.Wall.Sub(time.UnixMicro(int64(e.Start))) // ago
		lasted := time.Duration(e.Time) * time.Millisecond
		p := gpu.EndedProcess{PID: int(e.PID), Device: gpu.UUID(d.UUID), Began: max(0, at.Boot-began),
			Peak: known[gpu.Bytes](&e.Peak)}
		util, sampled := utils[e.PID]
		if sampled && !d.runs(e.PID) {
			p.Busy = since * time.Duration(util) / (maxUtil * 100)
		} else {
			over := min(began, since) - max(0, began-lasted) // from the later beginning to the earlier end
			p.Busy = min(lasted, max(0, over)) * time.Duration(e.Util) / maxUtil
		}
		list = append(list, p)
	}
	return list
}
