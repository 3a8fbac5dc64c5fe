package docker

import (
	"context"
	"maps"
	"os"
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

// facts are what the daemon says of itself, as far as this package decides by it.
type facts struct {
	info     engine.Info
	id       string // of the daemon, for ever
	here     bool   // the daemon sees this machine's file system and processes
	rootless bool   // uid 0 of a container is the person who runs the daemon
	remapped bool   // containers have user ids of their own unless told otherwise
	selinux  bool
	// unfiltered reports that the daemon leaves the packet filter alone and so
	// keeps no networks apart.
	unfiltered bool
	// containerd reports that containerd keeps the images: it knows them by their
	// manifests and keeps layers compressed.
	containerd bool

	runtimes     []string // names of the OCI runtimes that are set up
	cdiDirs      []string // where the daemon reads CDI specifications; none: it does not
	listsDevices bool     // cdi is complete: daemons before 28.2 do not tell
	cdi          []string // full names of NVIDIA devices in CDI specifications
}

// oldestAPI is the API of Docker 20.10.
const oldestAPI = "1.41"

func (e *Engine) Info(ctx context.Context) (engine.Info, error) {
	f, err := e.askFacts(ctx)
	if err != nil {
		return engine.Info{}, err
	}
	info := f.info
	info.Warnings = slices.Clone(info.Warnings)
	if e.networks.areTogether() && !f.unfiltered {
		info.Warnings = append(info.Warnings, session.Warning{Code: "engine_info_not-apart",
			Title: "Sessions of one person reach each other", At: time.Now(),
			Text: "The kernel does not filter what goes through a bridge, so a server in one session is reached from " +
				"the others of the same person. Those of other people are kept out."})
	}
	return info, nil
}

// knownFacts returns what the daemon said last, or asks it.
func (e *Engine) knownFacts(ctx context.Context) (*facts, error) {
	e.mu.Lock()
	known := e.facts
	e.mu.Unlock()
	if known != nil {
		return known, nil
	}
	return e.askFacts(ctx)
}

func (e *Engine) askFacts(ctx context.Context) (*facts, error) {
	ctx, cancel := e.brief(ctx)
	defer cancel()
	said, err := e.api.Info(ctx)
	if err != nil {
		return nil, failure(ctx, "info", err)
	}
	host, _ := os.Hostname() //nolint:errcheck // no name, no match
	f := readFacts(said, e.api.ClientVersion(), e.api.DaemonHost(), machine{name: host, kernel: kernelRelease()},
		time.Now())
	if f.here && unfiltered(e.api.DaemonHost()) {
		f.unfiltered = true
		f.info.Warnings = append(f.info.Warnings, session.Warning{Code: "engine_info_no-filter",
			Title: "Sessions are not kept apart", At: time.Now(),
			Text: "This Docker was told to leave the packet filter alone (iptables is off), so a server in one " +
				"session is reached from every other session of the machine, also of other people."})
	}
	e.mu.Lock()
	e.facts = f
	e.mu.Unlock()
	return f, nil
}

// machine names the machine that this process runs on.
type machine struct{ name, kernel string }

func readFacts(said system.Info, api, host string, local machine, now time.Time) *facts {
	f := &facts{
		id: said.ID,
		here: strings.HasPrefix(host, "unix://") && said.Name == local.name && said.KernelVersion == local.kernel &&
			local.kernel != "",
		rootless: hasOption(said.SecurityOptions, "rootless"),
		remapped: hasOption(said.SecurityOptions, "userns"),
		selinux:  hasOption(said.SecurityOptions, "selinux"),
	}
	f.info = engine.Info{
		Name: "docker", Version: said.ServerVersion, CPUs: said.NCPU, Memory: gpu.Bytes(said.MemTotal),
		OS: said.OSType, Arch: goArch(said.Architecture), LiveRestore: said.LiveRestoreEnabled,
	}
	f.readDevices(said, api)
	f.containerd = slices.ContainsFunc(said.DriverStatus, func(pair [2]string) bool {
		return pair[0] == "driver-type" && strings.HasPrefix(pair[1], "io.containerd.snapshotter")
	})
	f.info.Cgroup, _ = strconv.Atoi(said.CgroupVersion) //nolint:errcheck // 20.10 says 1 or 2; 0 is unknown
	if f.here {
		f.info.DataRoot, f.info.Socket = said.DockerRootDir, strings.TrimPrefix(host, "unix://")
	}
	warn := func(code session.Code, title, text string) {
		f.info.Warnings = append(f.info.Warnings, session.Warning{Code: code, Title: title, Text: text, At: now})
	}
	if !f.here {
		warn("engine_info_remote-engine", "Docker runs on another machine",
			"Sessions need a Docker daemon that shares this machine's files, and the one at "+host+" does not. Run "+
				"a Slipway agent on that machine, or set DOCKER_HOST to a daemon on this one.")
	}
	if versions.LessThan(api, oldestAPI) {
		warn("engine_info_too-old", "Docker is too old",
			"Docker "+said.ServerVersion+" is older than 20.10; update it.")
	}
	if said.OSType != "linux" {
		warn("engine_info_not-linux", "Docker runs "+said.OSType+" containers",
			"Sessions need Linux containers; switch Docker to them.")
	}
	if !said.PidsLimit {
		warn("engine_info_no-process-limit", "Docker cannot limit processes", "This daemon has no pids cgroup, so a "+
			"session can start so many processes that the machine has none left. A rootless daemon needs cgroup v2 "+
			"with delegated controllers.")
	}
	if !said.MemoryLimit || !said.CPUSet {
		warn("engine_info_no-limits", "Docker cannot limit sessions", "This daemon has no memory or CPU set cgroup, "+
			"so sessions are not held to what they asked for. A rootless daemon needs cgroup v2 with delegated "+
			"controllers.")
	}
	return f
}

// devicesAPI is the first API whose daemon lists CDI devices.
const devicesAPI = "1.50"

// readDevices keeps what the daemon says of handing in devices.
func (f *facts) readDevices(said system.Info, api string) {
	f.runtimes = slices.Sorted(maps.Keys(said.Runtimes))
	f.cdiDirs = said.CDISpecDirs
	f.listsDevices = !versions.LessThan(api, devicesAPI)
	for _, device := range said.DiscoveredDevices {
		if device.Source == "cdi" && strings.HasPrefix(device.ID, cdiKind) {
			f.cdi = append(f.cdi, device.ID)
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

// goArch turns the machine's name of an architecture into Go's.
func goArch(name string) string {
	switch name {
	case "x86_64":
		return "amd64"
	case "aarch64":
		return "arm64"
	}
	return name
}
