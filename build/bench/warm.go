package main

import (
	"fmt"
	"strings"
	"time"

	"slipway/backend/api/route"
	"slipway/build/bench/measure"
	"slipway/gpu"
)

// noneWaits has no container wait for a launch, so that launches are ordinary ones.
const noneWaits = "SLIPWAY_SESSION_WARM=0"

// measureWarm compares launches for which a container waits with docker run, in pairs, on a control plane of its own,
// and measures what such a container uses.
func (b *bench) measureWarm() {
	host := dockerHost()
	p, err := startPlane(b.ctx, b.o.binary, host, "SLIPWAY_SESSION_WARM=1")
	measure.OK(err)
	defer func() { measure.OK(p.stop()) }()
	warm := *b
	warm.plane = p
	warm.startOnce() // launches like this one find a container from now on
	var ours, theirs samples
	for range b.o.pairs {
		warm.awaitWarm()
		accepted, _ := warm.startOnce()
		ours, theirs = append(ours, accepted), append(theirs, b.dockerOnce())
	}
	b.add(against("accepted → prompt, warm", ours, "docker run -it", theirs, "≤ 0.5", 0.5))
	warm.awaitWarm()
	b.measureWaitingContainer()
}

// awaitWarm waits until a container waits.
func (b *bench) awaitWarm() {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		machines := measure.Get(route.Machines.Ask(b.ctx, b))
		if len(machines) == 1 && machines[0].Warm == 1 {
			return
		}
		if time.Now().After(deadline) {
			measure.Fail("no container waits: %+v", machines)
		}
	}
}

// measureWaitingContainer measures the only container that runs: the one that waits.
func (b *bench) measureWaitingContainer() {
	const most = 8 * gpu.MiB
	said := b.output("docker", "stats", "--no-stream", "--format", "{{.CPUPerc}} {{.MemUsage}}")
	cpu, memory, _ := strings.Cut(said, " ")
	memory, _, _ = strings.Cut(memory, " /")
	used, err := gpu.ParseBytes(memory)
	if err != nil {
		measure.Fail("docker stats says %q: %w", said, err)
	}
	b.add(row{"a container that waits", fmt.Sprintf("CPU %s, memory %s", cpu, memory), "", "",
		"0.0 %, ≤ 8 MiB", cpu == "0.00%" && used <= most})
}
