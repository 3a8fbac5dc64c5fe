package devices

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"slipway/backend/engine"
	"slipway/backend/engine/docker/daemon"
	"slipway/gpu"
)

// nvidiaRuntime is the name of the toolkit's runtime in Docker.
const nvidiaRuntime = "nvidia"

// Variables of the NVIDIA toolkit and MPS. void attaches no device, whatever the image asks for.
const (
	envVisible   = "NVIDIA_VISIBLE_DEVICES"
	envDriver    = "NVIDIA_DRIVER_CAPABILITIES"
	envLimit     = "NVIDIA_GPU_MEMORY_LIMIT" // MiB
	envPipe      = "CUDA_MPS_PIPE_DIRECTORY"
	envPinned    = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"
	envThreads   = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
	visibleNone  = "void"
	limitHook    = "apply-cuda-memory-limits" // toolkit 1.20.1 and newer
	mpsDefault   = "/tmp/nvidia-mps"          // where CUDA looks for MPS
	mpsControl   = "control"                  // the pipe that shows that MPS runs
	amdInterface = "/dev/kfd"                 // ROCm's, beside the render nodes
)

// Attach adds the devices of a container to its configuration, and returns the groups that its programs need to use
// them. Whether the daemon can attach them shows when the container starts.
func (d *Devices) Attach(ctx context.Context, c engine.Container, facts *daemon.Facts, config *container.Config,
	host *container.HostConfig) ([]int, error) {
	nvidia := ids(c, gpu.NVIDIA)
	if len(nvidia) == 0 && (facts.Podman || slices.Contains(facts.Runtimes, nvidiaRuntime)) {
		// An image may ask for all devices, and a daemon with this runtime as its default would hand them in unbooked,
		// as would a hook of Podman's.
		config.Env = append(config.Env, envVisible+"="+visibleNone)
	}
	if len(nvidia) > 0 {
		found, err := d.attachment(ctx, nvidia)
		if err != nil {
			return nil, err
		}
		handIn(found.Way, nvidia, config, host)
		d.enforce(c, found, config, host)
	}
	return attachNodes(c.Devices, host)
}

// handIn requests NVIDIA devices in one way only: two ways at once are refused or attach more than was granted.
func handIn(way engine.AttachWay, ids []string, config *container.Config, host *container.HostConfig) {
	switch way {
	case engine.AttachCDI:
		names := make([]string, len(ids))
		for i, id := range ids {
			names[i] = daemon.CDIKind + id
		}
		host.DeviceRequests = append(host.DeviceRequests, container.DeviceRequest{Driver: "cdi", DeviceIDs: names})
		config.Env = append(config.Env, envVisible+"="+visibleNone)
	case engine.AttachRequest:
		host.DeviceRequests = append(host.DeviceRequests, container.DeviceRequest{Driver: nvidiaRuntime, DeviceIDs: ids,
			Capabilities: [][]string{{"gpu"}}})
	case engine.AttachRuntime:
		host.Runtime = nvidiaRuntime
		config.Env = append(config.Env, envVisible+"="+strings.Join(ids, ","), envDriver+"=compute,utility")
	}
}

// enforce limits the memory of parts of devices: by the driver for the whole container where the toolkit can, or by MPS
// for each process where a person opted in. Whole devices and MIG instances need no limit.
func (d *Devices) enforce(c engine.Container, found engine.Attachment, config *container.Config,
	host *container.HostConfig) {
	parts := partsOf(c)
	if len(parts) == 0 {
		return
	}
	if found.HardLimit && allLimit(c.Devices, parts) {
		// There is one limit for all of a container's devices, and less than was granted would break a promise.
		largest := slices.MaxFunc(parts, func(a, b gpu.Grant) int { return cmp.Compare(a.Memory, b.Memory) }).Memory
		config.Env = append(config.Env, envLimit+"="+strconv.FormatInt(int64(largest/gpu.MiB), 10))
		return
	}
	if pipe := d.config.MPS; c.MPS {
		if !d.mpsRuns() {
			d.daemon.Log.Warn("MPS is asked for and does not run", "pipe", pipe, "container", c.Name)
			return
		}
		config.Env = append(config.Env, mpsEnv(pipe, parts)...)
		// MPS's clients talk to it through its pipes and shared memory.
		host.Mounts = append(host.Mounts, mount.Mount{Type: mount.TypeBind, Source: pipe, Target: pipe},
			mount.Mount{Type: mount.TypeBind, Source: "/dev/shm", Target: "/dev/shm"})
		host.ShmSize = 0
	}
}

func (d *Devices) mpsRuns() bool {
	_, err := os.Stat(filepath.Join(d.config.MPS, mpsControl))
	return err == nil
}

// partsOf returns the grants of parts of NVIDIA devices, in the order in which the container numbers its devices.
func partsOf(c engine.Container) []gpu.Grant {
	var parts []gpu.Grant
	for _, device := range c.Devices {
		for _, grant := range c.Grants {
			if device.Vendor == gpu.NVIDIA && grant.Device == device.UUID && !grant.Whole && grant.Instance == "" &&
				grant.Memory > 0 {
				parts = append(parts, grant)
			}
		}
	}
	return parts
}

func allLimit(devices []gpu.Device, parts []gpu.Grant) bool {
	for _, part := range parts {
		at := slices.IndexFunc(devices, func(device gpu.Device) bool { return device.UUID == part.Device })
		if at < 0 || devices[at].Capabilities.MemoryLimit.State != gpu.Yes {
			return false
		}
	}
	return true
}

// mpsEnv limits each process under MPS: memory by device, threads by the smallest share.
func mpsEnv(pipe string, parts []gpu.Grant) []string {
	limits, least := make([]string, len(parts)), gpu.WholeDevice
	for i, part := range parts {
		limits[i] = strconv.Itoa(i) + "=" + strconv.FormatInt(int64(part.Memory/gpu.MiB), 10) + "M"
		if part.Share > 0 {
			least = min(least, part.Share)
		}
	}
	percent := max(1, int(least)*100/int(gpu.WholeDevice))
	return []string{envPipe + "=" + pipe, envPinned + "=" + strings.Join(limits, ","),
		envThreads + "=" + strconv.Itoa(percent)}
}

// attachNodes attaches AMD and Intel devices by their device nodes and returns the groups that own these.
func attachNodes(devices []gpu.Device, host *container.HostConfig) ([]int, error) {
	var groups []int
	add := func(node string) error {
		if slices.ContainsFunc(host.Devices, func(m container.DeviceMapping) bool { return m.PathOnHost == node }) {
			return nil
		}
		info, err := os.Stat(node)
		if err != nil {
			failed := noNode.failure(err)
			failed.Message = "The device node " + node + " is not on this machine."
			return failed
		}
		host.Devices = append(host.Devices, container.DeviceMapping{PathOnHost: node, PathInContainer: node,
			CgroupPermissions: "rwm"})
		if gid := groupOf(info); gid != 0 && !slices.Contains(groups, gid) {
			groups = append(groups, gid)
			host.GroupAdd = append(host.GroupAdd, strconv.Itoa(gid))
		}
		return nil
	}
	for _, device := range devices {
		if device.Vendor != gpu.AMD && device.Vendor != gpu.Intel {
			continue
		}
		if len(device.Nodes) == 0 {
			return nil, noNode.failure(errors.New("the device is known without device nodes"))
		}
		for _, node := range nodesOf(device) {
			if err := add(node); err != nil {
				return nil, err
			}
		}
	}
	return groups, nil
}

// nodesOf returns the nodes of a device, and the one that ROCm needs.
func nodesOf(device gpu.Device) []string {
	nodes := device.Nodes
	if _, err := os.Stat(amdInterface); device.Vendor == gpu.AMD && err == nil {
		nodes = append(slices.Clone(nodes), amdInterface)
	}
	return nodes
}

// hardLimit reports whether the toolkit that wrote the CDI specifications can set driver limits, which needs cgroup v2.
func hardLimit(facts *daemon.Facts) bool {
	if facts.Info.Cgroup != 2 || !facts.Here {
		return false
	}
	for _, dir := range facts.CDIDirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, entry := range entries {
			text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
			if err == nil && strings.Contains(string(text), strings.TrimSuffix(daemon.CDIKind, "=")) &&
				strings.Contains(string(text), limitHook) {
				return true
			}
		}
	}
	return false
}
