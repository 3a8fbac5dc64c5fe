package nvml

import (
	"fmt"
	"strings"

	"slipway/gpu"
)

func (f deviceFacts) device(cgroup2 bool) gpu.Device {
	d := gpu.Device{
		UUID: gpu.UUID(f.UUID), Vendor: gpu.NVIDIA, Model: f.Name, Index: f.Index, PCI: shortPCI(f.PCI),
		Memory: amount(f.Total), Reserved: amount(f.Reserved), Driver: f.Driver, Capabilities: f.capabilities(cgroup2),
	}
	if d.Model == "" {
		d.Model = "NVIDIA device"
	}
	for _, in := range f.Instances {
		d.Instances = append(d.Instances, gpu.Instance{UUID: gpu.UUID(in.UUID), Profile: profile(in.Name),
			Memory: amount(in.Total)})
	}
	return d
}

func amount(n uint64) gpu.Bytes {
	if n == notAvailable || n > 1<<62 {
		return 0
	}
	return gpu.Bytes(n)
}

// shortPCI shortens the driver's eight digits of the domain to the usual four: "0000:65:00.0".
func shortPCI(pci string) string {
	if domain, rest, ok := strings.Cut(strings.ToLower(pci), ":"); ok && len(domain) == 8 &&
		strings.HasPrefix(domain, "0000") {
		return domain[4:] + ":" + rest
	}
	return strings.ToLower(pci)
}

func profile(name string) string {
	if _, after, ok := strings.Cut(name, "MIG "); ok {
		return after
	}
	return name
}

const voltaMajor = 7

func (f deviceFacts) capabilities(cgroup2 bool) gpu.Capabilities {
	probe := func(call string) gpu.Probe { return probed(call, f.Probes) }
	no := func(why string) gpu.Probe { return gpu.Probe{State: gpu.No, Why: why} }
	c := gpu.Capabilities{
		ProcessMemory: probe("nvmlDeviceGetComputeRunningProcesses"),
		ProcessUtil:   probe("nvmlDeviceGetProcessUtilization"),
		Energy:        probe("nvmlDeviceGetTotalEnergyConsumption"),
		Accounting:    probe("nvmlDeviceGetAccountingMode"),
		MIG:           probe("nvmlDeviceGetMigMode"),
		MemoryLimit:   probe("nvmlDeviceGetMemoryLimits_v1"),
		MPS:           probe("nvmlDeviceGetCudaComputeCapability"),
	}
	if c.Accounting.State == gpu.Yes && !f.Accounts {
		c.Accounting = no("accounting mode is off (an administrator turns it on with nvidia-smi --accounting-mode=1)")
	} else if f.Accounts {
		c.Accounting = probe("nvmlDeviceGetAccountingPids")
	}
	if c.MIG.State == gpu.Yes && !f.MIG {
		c.MIG.Why = "the device can be divided and is not"
	}
	if f.MIG {
		c.Accounting = no("the driver keeps no records of a divided device")
		if c.ProcessUtil = probe("nvmlGpmMigSampleGet"); c.ProcessUtil.State == gpu.No {
			c.ProcessUtil.Why = "the driver does not report how busy an instance is (it does from the Hopper " +
				"generation on): " + c.ProcessUtil.Why
		}
		c.MemoryLimit = no("the instances of a divided device limit memory")
	}
	if c.MemoryLimit.State == gpu.Yes && !cgroup2 {
		c.MemoryLimit = no("limits on memory need version 2 of control groups")
	}
	if c.MPS.State == gpu.Yes && f.Major < voltaMajor {
		c.MPS = no(fmt.Sprintf("MPS keeps processes apart from compute capability %d on; this device has %d",
			voltaMajor, f.Major))
	}
	return c
}

// probed is the outcome of one call. Nothing found, or no limit set, also shows that the driver can.
func probed(call string, codes map[string]int) gpu.Probe {
	code, ok := codes[call]
	switch {
	case !ok:
		return gpu.Probe{State: gpu.Unknown, Why: call + " was not tried"}
	case code == 0, code == codeNotFound:
		return gpu.Probe{State: gpu.Yes}
	case code == codeNotSupported:
		return gpu.Probe{State: gpu.No, Why: "the driver says that this device does not support it"}
	case code == codeMissing:
		return gpu.Probe{State: gpu.No, Why: "the driver's library lacks " + call}
	case code == codeOmitted:
		return gpu.Probe{State: gpu.Unknown, Why: call + " failed a moment ago and is skipped for a while"}
	}
	return gpu.Probe{State: gpu.Unknown, Why: loss{Call: call, Code: code}.reason(nil)}
}
