// Package gpu is the arithmetic of devices: what a machine has, what is allocated to whom, what is really free, and
// what was used. It starts nothing and reads no clock; sub-packages named by technology find and measure real devices.
//
// A [Source] lists devices and takes a [Sample] of them. A [Request] is what a session asks for. The [Ledger] turns it
// into a [Proposal] and records its grants; [Books] compares the ledger with what the driver reports as free. The
// [Guard] watches how much of their memory sessions use. [Accounts] charges the use of devices to sessions, to other
// processes, or to neither, so that the parts always sum to what the devices counted.
package gpu

// Vendor is who made a device, and with that how it is attached.
type Vendor string

// The vendors. A device of vendor Sim exists in a simulation only.
const (
	NVIDIA Vendor = "nvidia"
	AMD    Vendor = "amd"
	Intel  Vendor = "intel"
	Sim    Vendor = "sim"
)

// Device is one accelerator of a machine, as its driver describes it.
type Device struct {
	UUID         UUID         `json:"uuid"`
	Vendor       Vendor       `json:"vendor"`
	Model        string       `json:"model"`
	Index        int          `json:"index"`           // for display only: "GPU 0"
	PCI          string       `json:"pci,omitempty"`   // for example "0000:65:00.0"
	Memory       Bytes        `json:"memory"`          // total; 0: unknown, as with unified memory
	Reserved     Bytes        `json:"reserved"`        // kept by the driver and part of Memory
	Nodes        []string     `json:"nodes,omitempty"` // device nodes to hand to a container (AMD, Intel)
	Instances    []Instance   `json:"instances"`
	Driver       string       `json:"driver,omitempty"` // version of its driver
	Capabilities Capabilities `json:"capabilities"`
	Lost         *Loss        `json:"lost,omitempty"` // why it cannot be used now; nil: it can
}

// Instance is an isolated part of a device (MIG). A device with instances is allocated by instance only.
type Instance struct {
	UUID    UUID   `json:"uuid"`
	Profile string `json:"profile"` // for example "1g.10gb"
	Memory  Bytes  `json:"memory"`
	Slices  Share  `json:"slices,omitempty"` // part of the device's compute; 0: as its part of the memory
}

// Usable is the memory that the driver leaves for programs.
func (d Device) Usable() Bytes { return max(0, d.Memory-d.Reserved) }

// Part returns the part of the device that one of its instances is; 0 if unknown.
func (d Device) Part(instance UUID) Share {
	for _, i := range d.Instances {
		if i.UUID == instance {
			return d.part(i)
		}
	}
	return 0
}

func (d Device) part(i Instance) Share {
	if i.Slices > 0 || d.Usable() == 0 {
		return i.Slices
	}
	return Share(min(int64(WholeDevice), int64(i.Memory/MiB)*int64(WholeDevice)/max(1, int64(d.Usable()/MiB))))
}

// Capabilities is what can be measured or enforced on a device. Each was tried, not assumed.
type Capabilities struct {
	ProcessMemory Probe `json:"processMemory"` // memory of each process
	ProcessUtil   Probe `json:"processUtil"`   // busy time of each process
	Energy        Probe `json:"energy"`        // a counter of energy; without one power is integrated
	Accounting    Probe `json:"accounting"`    // the driver's own records of ended processes
	MIG           Probe `json:"mig"`
	MemoryLimit   Probe `json:"memoryLimit"` // the driver limits the memory of a container
	MPS           Probe `json:"mps"`
}

// UnknownCapabilities are those of a device that does not respond now.
func UnknownCapabilities(why string) Capabilities {
	p := Probe{State: Unknown, Why: why}
	return Capabilities{ProcessMemory: p, ProcessUtil: p, Energy: p, Accounting: p, MIG: p, MemoryLimit: p, MPS: p}
}

// Probe is the outcome of trying one capability. Why explains in a sentence a state that is not yes.
type Probe struct {
	State ProbeState `json:"state"`
	Why   string     `json:"why,omitempty"`
}

// ProbeState is yes, no or unknown.
type ProbeState string

// The outcomes of a probe.
const (
	Yes     ProbeState = "yes"
	No      ProbeState = "no"
	Unknown ProbeState = "unknown"
)

// Level is what limits the memory of a grant. It is shown to people and never implied.
type Level string

// The levels, strongest first. Hardware: a MIG instance. Hard: the driver limits the container as a whole. PerProcess:
// MPS limits each process, so that two processes get twice as much. Watched: the guard warns and then acts by policy.
const (
	LevelHardware   Level = "hardware"
	LevelHard       Level = "hard"
	LevelPerProcess Level = "per-process"
	LevelWatched    Level = "watched"
	LevelNone       Level = "none"
)

// Enforcement is what an agent can and may use to limit sessions to their grants.
type Enforcement struct {
	HardLimit bool // the container toolkit hands limits to the driver
	MPS       bool // a person opted in to MPS
	Guard     bool // the guard runs
}

// LevelOf returns what limits grant on device. A whole device needs no limit and is called hard.
func LevelOf(device Device, grant Grant, with Enforcement) Level {
	switch {
	case grant.Instance != "":
		return LevelHardware
	case grant.Whole:
		return LevelHard
	case with.HardLimit && device.Capabilities.MemoryLimit.State == Yes:
		return LevelHard
	case with.MPS && device.Capabilities.MPS.State == Yes:
		return LevelPerProcess
	case with.Guard && device.Capabilities.ProcessMemory.State == Yes:
		return LevelWatched
	}
	return LevelNone
}

// Loss is why a device cannot be used now. It may come back: after a reset, with the driver, or by itself.
type Loss struct {
	Kind LossKind `json:"kind"`
	Why  string   `json:"why"` // a clause, for example "it fell off the bus"
}

// LossKind is the way in which a device is lost.
type LossKind string

// The kinds. Fallen: the driver cannot reach it on the bus. Reset: it must be reset before anything can use it. Silent:
// the driver hangs or crashes over it. Unlisted: the driver does not list it any more.
const (
	LossFallen   LossKind = "fallen"
	LossReset    LossKind = "reset"
	LossSilent   LossKind = "silent"
	LossUnlisted LossKind = "unlisted"
)

// LostDevice is a device of the last inventory that cannot be used now.
type LostDevice struct {
	UUID UUID `json:"uuid"`
	Loss
}

// Hint says in a sentence what a person can do about a loss.
func (l Loss) Hint() string {
	switch l.Kind {
	case LossFallen:
		return "Restart the computer. If it happens again, check the card's power, cooling and seating."
	case LossReset:
		return "End the programs that use it and reset it (nvidia-smi --gpu-reset), or restart the computer."
	case LossSilent:
		return "Slipway keeps trying. If nvidia-smi does not answer either, restart the computer."
	}
	return "Check that it is plugged in and its driver is loaded. If it stays lost, restart the computer."
}

// Mended returns devices as if none were lost.
func Mended(devices []Device) []Device {
	whole := make([]Device, len(devices))
	for i, d := range devices {
		d.Lost = nil
		whole[i] = d
	}
	return whole
}
