package nvml

import (
	"slices"
	"strings"
	"time"

	"slipway/gpu"
	"slipway/gpu/procs"
)

// runs reports whether a process is on the device.
func (d deviceReading) runs(pid uint32) bool {
	return slices.ContainsFunc(d.Processes, func(p processInfo) bool { return p.PID == pid })
}

// ended are the processes of which the driver has a record that was not counted yet. Those of the first reading ended
// before it and are never counted.
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

// busyOf says how long each of those kept the device busy since the previous sample: as the driver's samples charged
// it, or else as its record says for the part of its time that lies behind that sample.
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
			Peak: known(&e.Peak)}
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

// nameEnded says whose each ended process was: of one that gave up the device and lives on, or was seen before it
// ended, that is known.
func (s *Source) nameEnded(ended []gpu.EndedProcess) {
	for i := range ended {
		e := &ended[i]
		was := func(p procs.Process) bool { return startedAt(p.Start) <= e.Began+time.Second }
		who, err := s.config.Procs.Recall(e.PID)
		if err != nil || !was(who) {
			who, err = s.config.Procs.Lookup(e.PID)
		}
		if err == nil && was(who) {
			e.Known, e.Name, e.User, e.Container = true, who.Name, who.User, strings.Join(who.Containers, ",")
		}
	}
}
