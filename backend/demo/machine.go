package demo

import (
	"slipway/gpu"
	"slipway/gpu/sim"
)

// Machine is what a simulated machine pretends to be.
type Machine struct {
	Name    string // of its agent
	Host    string // what it calls itself
	CPUs    int
	Memory  gpu.Bytes
	Cards   []sim.Card
	Desktop bool   // a desktop draws on the first device
	Foreign bool   // programs of other people come and go
	Fresh   bool   // nobody has used it before
	Seed    uint64 // of everything that is random on it
	Time    Time   // that goes by on it; zero: that on the wall
}

// LabAgent is the name of the agent on the lab server.
const LabAgent = "lab"

// Workstation is the presenter's own computer: two consumer devices.
func Workstation(o Options) Machine {
	return Machine{
		Name: "workstation", Host: "workstation", CPUs: 16, Memory: 64 * gpu.GiB, Desktop: true, Seed: o.Seed,
		Cards: []sim.Card{sim.Workstation, sim.Workstation},
	}
}

// Lab is a server with eight data-centre devices that many people use. What is random on it has nothing to do with what
// is random on the workstation.
func Lab(o Options) Machine {
	m := Machine{Name: LabAgent, Host: "lab-dgx-1", CPUs: 128, Memory: 1024 * gpu.GiB, Foreign: true,
		Seed: o.Seed + labSeed}
	for range 8 {
		m.Cards = append(m.Cards, sim.Server)
	}
	return m
}

// labSeed keeps the random numbers of the two machines apart.
const labSeed = 1 << 32
