package daemon

import (
	"context"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/api/types/versions"

	"slipway/backend/engine"
	"slipway/backend/session"
	"slipway/gpu"
)

// Facts are what the daemon reports about itself.
type Facts struct {
	Info       engine.Info
	ID         string // of the daemon, for ever
	Here       bool   // the daemon sees this machine's file system and processes
	Mounts     bool   // it mounts this machine's directories, maybe into a virtual machine
	Podman     bool   // it is Podman, which speaks Docker's API
	Rootless   bool   // uid 0 of a container is the person who runs the daemon
	Remapped   bool   // containers have user ids of their own unless told otherwise
	SELinux    bool
	Seccomp    bool // containers cannot make user namespaces
	Containerd bool // the images are in containerd's store: known by their manifests, layers compressed

	Runtimes     []string // names of the OCI runtimes that are set up
	CDIDirs      []string // where the daemon reads CDI specifications; none: it does not
	ListsDevices bool     // cdi is complete: daemons before 28.2 do not tell
	CDI          []string // full names of NVIDIA devices in CDI specifications

	podman podmanInfo // what Podman said
}

const oldestAPI = "1.41" // of Docker 20.10

// Facts returns what the daemon reported last, or asks it.
func (d *Daemon) Facts(ctx context.Context) (*Facts, error) {
	if facts := d.said(); facts != nil {
		return facts, nil
	}
	select {
	case d.asking <- struct{}{}:
		defer func() { <-d.asking }()
	case <-ctx.Done():
		return nil, Failure(ctx, ctx.Err())
	}
	if facts := d.said(); facts != nil { // another call was quicker
		return facts, nil
	}
	return d.AskFacts(ctx)
}

func (d *Daemon) said() *Facts {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.facts
}

func (d *Daemon) AskFacts(ctx context.Context) (*Facts, error) {
	ctx, cancel := d.Brief(ctx)
	defer cancel()
	said, err := d.API.Info(ctx)
	if err != nil {
		return nil, Failure(ctx, err)
	}
	version, err := d.API.ServerVersion(ctx)
	if err != nil {
		return nil, Failure(ctx, err)
	}
	host, _ := os.Hostname()                                //nolint:errcheck // no name, no match
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease") //nolint:errcheck // likewise
	local := machine{name: host, kernel: strings.TrimSpace(string(release)), system: runtime.GOOS}
	podman := isPodman(version)
	var own podmanInfo
	if podman {
		if own, err = d.podman(ctx, said.ServerVersion); err != nil {
			return nil, Failure(ctx, err)
		}
		own.limit(&said)
	}
	f := readFacts(said, d.API.ClientVersion(), d.API.DaemonHost(), local, time.Now())
	if podman {
		f.asPodman(said.DockerRootDir, own, time.Now())
	}
	d.mu.Lock()
	d.facts = f
	d.mu.Unlock()
	return f, nil
}

type machine struct{ name, kernel, system string }

// desktop is the operating system that Docker Desktop reports.
const desktop = "Docker Desktop"

func readFacts(said system.Info, api, host string, local machine, now time.Time) *Facts {
	f := &Facts{
		ID: said.ID,
		Here: strings.HasPrefix(host, "unix://") && said.Name == local.name && said.KernelVersion == local.kernel &&
			local.kernel != "",
		Rootless: hasOption(said.SecurityOptions, "rootless"),
		Remapped: hasOption(said.SecurityOptions, "userns"),
		SELinux:  hasOption(said.SecurityOptions, "selinux"),
		Seccomp: hasOption(said.SecurityOptions, "seccomp") &&
			!slices.Contains(said.SecurityOptions, "name=seccomp,profile=unconfined"),
	}
	f.Info = engine.Info{
		Name: "docker", Version: said.ServerVersion, CPUs: said.NCPU, Memory: gpu.Bytes(said.MemTotal),
		OS: said.OSType, Arch: GoArch(said.Architecture), LiveRestore: said.LiveRestoreEnabled,
	}
	f.readDevices(said, api)
	f.Containerd = slices.ContainsFunc(said.DriverStatus, func(pair [2]string) bool {
		return pair[0] == "driver-type" && strings.HasPrefix(pair[1], "io.containerd.snapshotter")
	})
	f.Info.Cgroup, _ = strconv.Atoi(said.CgroupVersion) //nolint:errcheck // 20.10 says 1 or 2; 0 is unknown
	if f.Here {
		f.Info.DataRoot, f.Info.Socket = said.DockerRootDir, strings.TrimPrefix(host, "unix://")
	}
	warn := func(code session.Code, title, text string) {
		f.Info.Warnings = append(f.Info.Warnings, session.Warning{Code: code, Title: title, Text: text, At: now})
	}
	// Elsewhere than on Linux, a daemon with a local address is in a virtual machine that shares directories.
	socket := strings.HasPrefix(host, "unix://") || strings.HasPrefix(host, "npipe://")
	f.Mounts = f.Here || socket && (local.system != "linux" || said.OperatingSystem == desktop)
	if !f.Mounts {
		f.Info.Lacks = []session.Feature{session.FeatureMounts}
	}
	switch {
	case !f.Here && f.Mounts:
		warn(session.CodeRemoteEngine, "Sessions run in a virtual machine", fmt.Sprintf("It has %d CPUs and %s of "+
			"memory, and no GPUs. It mounts only the directories that the settings of Docker share with it.",
			f.Info.CPUs, f.Info.Memory))
	case !f.Here:
		warn(session.CodeRemoteEngine, "Docker runs on another machine", "The daemon at "+host+" shares neither this "+
			"machine's files nor its GPUs. To use those of that machine, run a Slipway agent there.")
	}
	if versions.LessThan(api, oldestAPI) {
		warn(session.CodeTooOld, "Docker is too old", "Docker "+said.ServerVersion+" is older than 20.10; update it.")
	}
	if said.OSType != "linux" {
		warn(session.CodeNotLinux, "Docker runs "+said.OSType+" containers",
			"Sessions need Linux containers; switch Docker to them.")
	}
	if !said.PidsLimit {
		warn(session.CodeNoProcessLimit, "Docker cannot limit processes", "This daemon has no pids cgroup, so a "+
			"session can start so many processes that the machine has none left. A rootless daemon needs cgroup v2 "+
			"with delegated controllers.")
	}
	if !said.MemoryLimit || !said.CPUSet {
		warn(session.CodeNoLimits, "Docker cannot limit sessions", "This daemon has no memory or CPU set cgroup, "+
			"so limits of sessions are not enforced. A rootless daemon needs cgroup v2 with delegated "+
			"controllers.")
	}
	return f
}

// CDIKind begins the names of NVIDIA devices in CDI specifications.
const CDIKind = "nvidia.com/gpu="

// devicesAPI is the first API whose daemon lists CDI devices.
const devicesAPI = "1.50"

func (f *Facts) readDevices(said system.Info, api string) {
	f.Runtimes = slices.Sorted(maps.Keys(said.Runtimes))
	f.CDIDirs = said.CDISpecDirs
	f.ListsDevices = !versions.LessThan(api, devicesAPI)
	for _, device := range said.DiscoveredDevices {
		if device.Source == "cdi" && strings.HasPrefix(device.ID, CDIKind) {
			f.CDI = append(f.CDI, device.ID)
		}
	}
}

// hasOption finds "name=<name>" or "name=<name>,…" among security options.
func hasOption(options []string, name string) bool {
	return slices.ContainsFunc(options, func(o string) bool {
		first, _, _ := strings.Cut(o, ",")
		return first == "name="+name || first == name
	})
}

// GoArch turns the kernel's name of an architecture into Go's.
func GoArch(name string) string {
	switch name {
	case "x86_64":
		return "amd64"
	case "aarch64":
		return "arm64"
	}
	return name
}

// OwnLabels returns Slipway's labels that are not empty.
func OwnLabels(labels map[string]string) map[string]string {
	kept := map[string]string{}
	for _, name := range engine.ContainerLabels {
		if value := labels[name]; value != "" {
			kept[name] = value
		}
	}
	return kept
}
