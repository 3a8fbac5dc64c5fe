package devices

import (
	"slipway/backend/engine/docker/daemon"
	"slipway/backend/session"
)

// reason is what keeps a device out of a container.
type reason int

const (
	reasonUnknown       reason = iota
	reasonNoCDI                // the daemon is too old for CDI or has it switched off
	reasonNoSpec               // nothing names the machine's NVIDIA devices
	reasonUnknownDevice        // a specification does not name this device
	reasonNoToolkit            // the daemon finds no hook of the NVIDIA toolkit
	reasonNoRuntime            // the daemon has no NVIDIA runtime
	reasonHookRefused          // the toolkit is set to CDI and refuses its hook
	reasonNoLimit              // a memory limit needs cgroups of version 2
	reasonRootless             // the hook may not change device rules
	reasonDriver               // the driver is not loaded or is another version than its library
	reasonNoNode               // a device node is missing
	reasonMalformed            // the request itself is wrong
)

// attachTexts recognise what the daemon, runc and the toolkit say when a device
// cannot be handed in, tried in their order. Sources: moby daemon/devices*.go and
// daemon/internal/… of 20.10, 28 and 29, nvidia-container-toolkit 1.20,
// libnvidia-container.
var attachTexts = daemon.Wordings[reason]{
	daemon.When(`could not select device driver "cdi"`, reasonNoCDI),
	daemon.When(`could not select device driver`, reasonNoToolkit),
	daemon.When(`(?i)unknown (runtime specified|or invalid runtime name:) "?nvidia`, reasonNoRuntime),
	daemon.When(`AMD CDI spec not found|no known GPU vendor found|failed to discover GPU vendor`, reasonNoSpec),
	daemon.When(`unresolvable CDI devices|nvidia-container-cli: device error`, reasonUnknownDevice),
	daemon.When(`unexpected (count|options) in CDI device request|cannot set both Count and DeviceIDs`,
		reasonMalformed),
	daemon.When(`invoking the NVIDIA Container Runtime Hook directly`, reasonHookRefused),
	daemon.When(`GPU memory limits is only supported in cgroup v2`, reasonNoLimit),
	daemon.When(`failed to add device rules|bpf_prog_query`, reasonRootless),
	daemon.When(`(?i)nvml error|driver not loaded|driver/library version mismatch|driver rpc error`, reasonDriver),
	daemon.When(`error gathering device information while adding custom device`, reasonNoNode),
}

// attachFailures say in words what keeps devices out of containers, each with
// one remedy.
var attachFailures = map[reason]*session.Error{
	reasonNoCDI: {
		Code: session.CodeAttachFailed, Message: "This Docker does not hand in devices by CDI.",
		Hint: `Update Docker to 28.2 or newer; for 25 to 28.1 put {"features": {"cdi": true}} into ` +
			`/etc/docker/daemon.json and restart it.`,
	},
	reasonNoSpec: {
		Code: session.CodeAttachFailed, Message: "No CDI specification names NVIDIA devices of this machine.",
		Hint: "Install nvidia-container-toolkit, then run `sudo nvidia-ctk cdi generate " +
			"--output=/etc/cdi/nvidia.yaml`.",
	},
	reasonUnknownDevice: {
		Code:    session.CodeAttachFailed,
		Message: "The CDI specification does not name the device that was granted.",
		Hint: "Run `sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`, and again after every change of " +
			"driver, devices or MIG instances.",
	},
	reasonNoToolkit: {
		Code:    session.CodeAttachFailed,
		Message: "Docker cannot hand in NVIDIA devices, because it does not find the NVIDIA container toolkit.",
		Hint: "Install nvidia-container-toolkit, then run `sudo nvidia-ctk runtime configure --runtime=docker && " +
			"sudo systemctl restart docker`.",
	},
	reasonNoRuntime: {
		Code: session.CodeAttachFailed, Message: "Docker has no runtime named nvidia.",
		Hint: "Run `sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker`.",
	},
	reasonHookRefused: {
		Code:    session.CodeAttachFailed,
		Message: "The NVIDIA container toolkit is set to CDI and refuses to be called by Docker as a hook.",
		Hint: "Run `sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`, so that Docker uses CDI, or set the " +
			"toolkit's mode to auto with `sudo nvidia-ctk config --in-place --set nvidia-container-runtime.mode=auto`.",
	},
	reasonNoLimit: {
		Code:    session.CodeAttachFailed,
		Message: "The driver limits the memory of containers only under cgroups of version 2.",
		Hint:    "Start the machine with systemd.unified_cgroup_hierarchy=1.",
	},
	reasonRootless: {
		Code:    session.CodeAttachFailed,
		Message: "A rootless Docker may not change the device rules that the NVIDIA hook wants to change.",
		Hint:    "Use CDI, or run `sudo nvidia-ctk config --in-place --set nvidia-container-cli.no-cgroups`.",
	},
	reasonDriver: {
		Code: session.CodeAttachFailed, Message: "The NVIDIA driver does not answer the container toolkit.",
		Hint: "Run `nvidia-smi`; after an update of the driver restart the machine.",
	},
	reasonNoNode: {
		Code: session.CodeAttachFailed, Message: "A device node that was to be handed in is not on this machine.",
		Hint: "Load the device's driver, for example with `sudo modprobe amdgpu`, and start the session again.",
	},
	reasonMalformed: {
		Code: session.CodeAttachFailed, Message: "Docker refused the way in which Slipway asked for devices.",
		Hint: "Update Slipway; this Docker is newer than it knows.",
	},
}
