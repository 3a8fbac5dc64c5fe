package node

import (
	"os"
	"time"

	"slipway/backend/engine"
	"slipway/backend/engine/cgroup"
)

// measure returns a sample of the job's task. Of the network it has that of the given process.
func measure(pid int) (engine.Stats, error) {
	own, err := cgroup.Machine().Of("self")
	if err != nil {
		return engine.Stats{}, err
	}
	gauge, err := own.Open(pid)
	if err != nil {
		return engine.Stats{}, err
	}
	defer gauge.Close()
	return gauge.Sample(time.Now(), &cgroup.Page{})
}

// oomKills returns how many processes of the job's task the kernel has killed for memory.
func oomKills() int {
	sample, _ := measure(os.Getpid()) // zero if there is none
	return sample.OOMKills
}
