package docker

import (
	"errors"
	"regexp"
	"strings"
	"syscall"

	"slipway/backend/session"
)

// reason is what a failure is about where Docker gives it no class of its own:
// the daemon answers 500, or sends an error inside a stream that began well.
// This file is the only place that looks at such texts.
type reason int

const (
	reasonUnknown reason = iota
	reasonNoSpace
	reasonForbidden     // the registry wants other credentials
	reasonNoManifest    // the registry has no such image
	reasonUnreachable   // the registry does not answer
	reasonRateLimited   // the registry has had enough of us
	reasonWrongPlatform // the image is for another machine
	reasonNoLoginTool   // a credential helper failed
	reasonNoAddresses   // every address pool of the daemon is given away
	// the kernel does not filter what goes through a bridge
	reasonNoBridgeFilter

	reasonNoCDI         // the daemon is too old for CDI or has it switched off
	reasonNoSpec        // nothing names the machine's NVIDIA devices
	reasonUnknownDevice // a specification does not name this device
	reasonNoToolkit     // the daemon finds no hook of the NVIDIA toolkit
	reasonNoRuntime     // the daemon has no NVIDIA runtime
	reasonHookRefused   // the toolkit is set to CDI and refuses its hook
	reasonNoLimit       // a memory limit needs cgroups of version 2
	reasonRootless      // the hook may not change device rules
	reasonDriver        // the driver is not loaded or is another version than its library
	reasonNoNode        // a device node is missing
	reasonMalformed     // the request itself is wrong
)

// wordings say what texts are about, tried in their order.
type wordings[T any] []struct {
	means T
	text  *regexp.Regexp
}

// of is what a text is about, or otherwise where nothing knows it.
func (w wordings[T]) of(text string, otherwise T) T {
	for _, known := range w {
		if known.text.MatchString(text) {
			return known.means
		}
	}
	return otherwise
}

// reasonTexts are of pulls and of calls to a registry. Sources: moby
// distribution/errors.go and registry/errors.go, the registry API's error
// codes, and Go's net package.
var reasonTexts = wordings[reason]{
	{reasonNoSpace, regexp.MustCompile(`(?i)no space left on device|disk quota exceeded`)},
	{reasonNoAddresses, regexp.MustCompile(
		`(?i)non-overlapping IPv4 address pool|predefined address pools have been fully subnetted`)},
	{reasonNoBridgeFilter, regexp.MustCompile(`cannot restrict inter-container communication`)},
	{reasonRateLimited, regexp.MustCompile(`(?i)toomanyrequests|too many requests|rate limit`)},
	{reasonWrongPlatform, regexp.MustCompile(
		`(?i)no matching manifest for|exec format error|does not match the (specified|detected) (host )?platform|` +
			`image operating system .* cannot be used`)},
	{reasonForbidden, regexp.MustCompile(
		`(?i)\bunauthorized\b|no basic auth credentials|authentication required|incorrect username or password|` +
			`\b(401|403)\b|\bforbidden\b`)},
	{reasonNoManifest, regexp.MustCompile(
		`(?i)manifest unknown|manifest for .* not found|name unknown|repository .* not found|may require 'docker ` +
			`login'|\bnot found\b`)},
	{reasonUnreachable, regexp.MustCompile(
		`(?i)dial tcp|no such host|connection re(fused|set)|i/o timeout|timeout|deadline exceeded|TLS handshake|` +
			`x509|server gave HTTP response|network is unreachable|unexpected EOF|\bEOF$|temporary failure|server ` +
			`misbehaving|\b50[0234]\b|context canceled`)},
}

// reasonOf says what a text of Docker's is about.
func reasonOf(text string, err error) reason {
	if errors.Is(err, syscall.ENOSPC) {
		return reasonNoSpace
	}
	return reasonTexts.of(text, reasonUnknown)
}

// startHints explain what runc and the daemon say of a container that did not start.
var startHints = wordings[string]{
	{"The image is made for another kind of processor; choose one for this machine.",
		regexp.MustCompile(`(?i)exec format error`)},
	{"The machine refuses the CPU limit; check that its cgroups are set up.",
		regexp.MustCompile(`(?i)cpuset|cpus?\.(max|cfs)`)},
	{"The machine refuses the memory limit; ask for more memory.", regexp.MustCompile(`(?i)memory`)},
	{"A mounted directory vanished or its target is a file in the image; check the mounts.",
		regexp.MustCompile(`(?i)not a directory|no such file or directory|mounting`)},
	{"Docker may not do this; check that Slipway's data folder is not on a file system mounted noexec.",
		regexp.MustCompile(`(?i)permission denied|operation not permitted`)},
}

func startHint(text string) string {
	return startHints.of(text, "Try again; if it stays, read the Docker daemon's log.")
}

// daemonText is what the daemon said, without what the client put around it.
func daemonText(err error) string {
	text := err.Error()
	if _, said, ok := strings.Cut(text, "Error response from daemon: "); ok {
		text = said
	}
	return strings.TrimSpace(text)
}

// attachTexts recognise what the daemon, runc and the toolkit say when a device
// cannot be handed in, tried in their order. Sources: moby daemon/devices*.go and
// daemon/internal/… of 20.10, 28 and 29, nvidia-container-toolkit 1.20,
// libnvidia-container.
var attachTexts = wordings[reason]{
	{reasonNoCDI, regexp.MustCompile(`could not select device driver "cdi"`)},
	{reasonNoToolkit, regexp.MustCompile(`could not select device driver`)},
	{reasonNoRuntime, regexp.MustCompile(`(?i)unknown (runtime specified|or invalid runtime name:) "?nvidia`)},
	{reasonNoSpec, regexp.MustCompile(
		`AMD CDI spec not found|no known GPU vendor found|failed to discover GPU vendor`)},
	{reasonUnknownDevice, regexp.MustCompile(`unresolvable CDI devices|nvidia-container-cli: device error`)},
	{reasonMalformed, regexp.MustCompile(
		`unexpected (count|options) in CDI device request|cannot set both Count and DeviceIDs`)},
	{reasonHookRefused, regexp.MustCompile(`invoking the NVIDIA Container Runtime Hook directly`)},
	{reasonNoLimit, regexp.MustCompile(`GPU memory limits is only supported in cgroup v2`)},
	{reasonRootless, regexp.MustCompile(`failed to add device rules|bpf_prog_query`)},
	{reasonDriver, regexp.MustCompile(
		`(?i)nvml error|driver not loaded|driver/library version mismatch|driver rpc error`)},
	{reasonNoNode, regexp.MustCompile(`error gathering device information while adding custom device`)},
}

func attachReasonOf(text string) reason { return attachTexts.of(text, reasonUnknown) }

// attachFailures say in words what keeps devices out of containers, each with
// one remedy.
var attachFailures = map[reason]*session.Error{
	reasonNoCDI: {
		Code: "engine_attach_no-cdi", Message: "This Docker does not hand in devices by CDI.",
		Hint: `Update Docker to 28.2 or newer; for 25 to 28.1 put {"features": {"cdi": true}} into ` +
			`/etc/docker/daemon.json and restart it.`,
	},
	reasonNoSpec: {
		Code: "engine_attach_no-spec", Message: "No CDI specification names NVIDIA devices of this machine.",
		Hint: "Install nvidia-container-toolkit, then run `sudo nvidia-ctk cdi generate " +
			"--output=/etc/cdi/nvidia.yaml`.",
	},
	reasonUnknownDevice: {
		Code:    "engine_attach_unknown-device",
		Message: "The CDI specification does not name the device that was granted.",
		Hint: "Write it anew with `sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`, which is due after " +
			"every change of driver, devices or MIG instances.",
	},
	reasonNoToolkit: {
		Code:    "engine_attach_no-toolkit",
		Message: "Docker cannot hand in NVIDIA devices, because it does not find the NVIDIA container toolkit.",
		Hint: "Install nvidia-container-toolkit, then run `sudo nvidia-ctk runtime configure --runtime=docker && " +
			"sudo systemctl restart docker`.",
	},
	reasonNoRuntime: {
		Code: "engine_attach_no-runtime", Message: "Docker has no runtime named nvidia.",
		Hint: "Run `sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker`.",
	},
	reasonHookRefused: {
		Code:    "engine_attach_hook-refused",
		Message: "The NVIDIA container toolkit is set to CDI and refuses to be called by Docker as a hook.",
		Hint: "Run `sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`, so that Docker uses CDI, or set the " +
			"toolkit's mode to auto with `sudo nvidia-ctk config --in-place --set nvidia-container-runtime.mode=auto`.",
	},
	reasonNoLimit: {
		Code:    "engine_attach_no-limit",
		Message: "The driver limits the memory of containers only under cgroups of version 2.",
		Hint:    "Start the machine with systemd.unified_cgroup_hierarchy=1.",
	},
	reasonRootless: {
		Code:    "engine_attach_rootless",
		Message: "A rootless Docker may not change the device rules that the NVIDIA hook wants to change.",
		Hint:    "Use CDI, or run `sudo nvidia-ctk config --in-place --set nvidia-container-cli.no-cgroups`.",
	},
	reasonDriver: {
		Code: "engine_attach_driver", Message: "The NVIDIA driver does not answer the container toolkit.",
		Hint: "Run `nvidia-smi`; after an update of the driver restart the machine.",
	},
	reasonNoNode: {
		Code: "engine_attach_no-node", Message: "A device node that was to be handed in is not on this machine.",
		Hint: "Load the device's driver, for example with `sudo modprobe amdgpu`, and start the session again.",
	},
	reasonMalformed: {
		Code: "engine_attach_malformed", Message: "Docker refused the way in which Slipway asked for devices.",
		Hint: "Update Slipway; this Docker is newer than it knows.",
	},
}
