package nvml

import (
	"slices"

	"slipway/gpu"
)

// busyPart is for how much of the time the instance kept its device busy, in
// hundredths of a percent of the device: one that is an eighth of it and always
// busy makes an eighth of it busy. Nil where that is not known.
func (in instanceReading) busyPart() *int {
	if in.Busy == nil || in.Part <= 0 {
		return nil
	}
	return new(*in.Busy * int(in.Part) / int(gpu.WholeDevice))
}

// instancesUtil is how busy a divided device is: as much as its instances
// together, once all of them are told.
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

// instanceUtil is the utilisation of a process on an instance, in hundredths of
// a percent of the device. An instance is granted to one session, so that what
// it does is that session's; the processes in it share that evenly, because the
// driver does not tell them apart.
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
