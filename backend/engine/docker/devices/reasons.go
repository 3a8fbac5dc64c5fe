package devices

import (
	"slipway/backend/engine/docker/daemon"
	"slipway/backend/session"
)

// reason is why a device could not be attached, and what helps.
type reason struct{ text, remedy string }

var (
	ignored = &reason{"Podman accepts a request for NVIDIA devices and ignores it, so sessions here cannot have them.",
		"Install Docker and set DOCKER_HOST to its socket, or add a machine with Docker: slipway agent add HOST"}
	noCDI = &reason{"This Docker does not hand in devices by CDI.",
		`Update Docker to 28.2 or newer; for 25 to 28.1 put {"features": {"cdi": true}} into ` +
			`/etc/docker/daemon.json and restart it.`}
	noSpec = &reason{"No CDI specification names NVIDIA devices of this machine.",
		"Install nvidia-container-toolkit, then run `sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`."}
	unknownDevice = &reason{"The CDI specification does not name the device that was granted.",
		"Run `sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`, and again after every change of driver, " +
			"devices or MIG instances."}
	noToolkit = &reason{"Docker cannot hand in NVIDIA devices: it does not find the NVIDIA container toolkit.",
		"Install nvidia-container-toolkit, then run `sudo nvidia-ctk runtime configure --runtime=docker && " +
			"sudo systemctl restart docker`."}
	noRuntime = &reason{"Docker has no runtime named nvidia.",
		"Run `sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker`."}
	hookRefused = &reason{"The NVIDIA container toolkit is set to CDI and refuses to be called by Docker as a hook.",
		"Run `sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`, so that Docker uses CDI, or set the " +
			"toolkit's mode to auto with `sudo nvidia-ctk config --in-place --set nvidia-container-runtime.mode=auto`."}
	noLimit = &reason{"The driver limits the memory of containers only under cgroups of version 2.",
		"Start the machine with systemd.unified_cgroup_hierarchy=1."}
	rootless = &reason{"A rootless Docker may not change the device rules that the NVIDIA hook changes.",
		"Use CDI, or run `sudo nvidia-ctk config --in-place --set nvidia-container-cli.no-cgroups`."}
	noDriver = &reason{"The NVIDIA driver does not answer the container toolkit.",
		"Run `nvidia-smi`; after an update of the driver restart the machine."}
	noNode = &reason{"A device node that was to be handed in is not on this machine.",
		"Load the device's driver, for example with `sudo modprobe amdgpu`, and start the session again."}
	malformed = &reason{"Docker refused the way in which Slipway asked for devices.",
		"Update Slipway; this Docker is newer than it knows."}
)

func (r *reason) failure(err error) *session.Error {
	return session.WrapError(err, session.CodeAttachFailed, r.text, r.remedy)
}

// attachTexts recognise errors of the daemon, runc and the toolkit, in order. Sources: moby daemon/devices*.go and
// daemon/internal/… of 20.10, 28 and 29, nvidia-container-toolkit 1.20, libnvidia-container.
var attachTexts = daemon.Wordings[*reason]{
	daemon.When(`could not select device driver "cdi"`, noCDI),
	daemon.When(`could not select device driver`, noToolkit),
	daemon.When(`(?i)unknown (runtime specified|or invalid runtime name:) "?nvidia`, noRuntime),
	daemon.When(`AMD CDI spec not found|no known GPU vendor found|failed to discover GPU vendor`, noSpec),
	daemon.When(`unresolvable CDI devices|nvidia-container-cli: device error`, unknownDevice),
	daemon.When(`unexpected (count|options) in CDI device request|cannot set both Count and DeviceIDs`, malformed),
	daemon.When(`invoking the NVIDIA Container Runtime Hook directly`, hookRefused),
	daemon.When(`GPU memory limits is only supported in cgroup v2`, noLimit),
	daemon.When(`failed to add device rules|bpf_prog_query`, rootless),
	daemon.When(`(?i)nvml error|driver not loaded|driver/library version mismatch|driver rpc error`, noDriver),
	daemon.When(`error gathering device information while adding custom device`, noNode),
}
