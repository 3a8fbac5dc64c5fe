package main

import (
	"time"

	"slipway/gpu"
)

// integral sums samples of some processes on one device as accounts do: utilisation times the time that it covers.
type integral struct {
	covered   time.Duration
	busy      time.Duration  // of the processes
	device    time.Duration  // of the device as a whole
	energy    gpu.MilliJoule // by the counter; 0 without one
	power     gpu.MilliJoule // power summed over time
	peak      gpu.Bytes      // of the processes together
	strangers int            // samples in which other processes were on the device
	unseen    int            // samples in which none of the processes was
	lost      []string
}

// add adds the time between two samples. mine selects the processes.
func (in *integral) add(prev, next gpu.Sample, device gpu.UUID, mine func(pid int) bool) {
	dt := next.At.Boot - prev.At.Boot
	in.covered += dt
	var memory gpu.Bytes
	seen, others := false, false
	for _, p := range next.Processes {
		switch {
		case p.Device != device:
			continue
		case !mine(p.PID):
			others = true
			continue
		}
		seen = true
		if p.Util != nil {
			in.busy += part(dt, *p.Util)
		}
		if p.Memory != nil {
			memory += *p.Memory
		}
	}
	if others {
		in.strangers++
	}
	if !seen {
		in.unseen++
	}
	in.peak = max(in.peak, memory)
	in.lost = append(in.lost, next.Lost...)
	before, ok1 := prev.Device(device)
	after, ok2 := next.Device(device)
	if !ok1 || !ok2 {
		return
	}
	if after.Util != nil {
		in.device += part(dt, *after.Util)
	}
	if before.Energy != nil && after.Energy != nil && *after.Energy >= *before.Energy {
		in.energy += *after.Energy - *before.Energy
	}
	if before.Power != nil && after.Power != nil {
		in.power += gpu.MilliJoule(float64(*before.Power+*after.Power) / 2 * dt.Seconds())
	}
}

// part is util hundredths of a percent of a duration.
func part(d time.Duration, util int) time.Duration { return d * time.Duration(util) / 10000 }
