package devices

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"slipway/backend/engine"
	"slipway/backend/engine/docker/daemon"
	"slipway/backend/session"
	"slipway/gpu"
)

func said(class error, text string) error {
	return fmt.Errorf("Error response from daemon: %s: %w", text, class)
}

func TestFailuresOfDevicesAreUnderstood(t *testing.T) {
	for text, want := range map[string]session.Code{
		`could not select device driver "" with capabilities: [[gpu]]`:       "engine_attach_failed",
		`could not select device driver "nvidia" with capabilities: [[gpu]]`: "engine_attach_failed",
		`could not select device driver "cdi" with capabilities: []`:         "engine_attach_failed",
		`Unknown runtime specified nvidia`:                                   "engine_attach_failed",
		`unknown or invalid runtime name: nvidia`:                            "engine_attach_failed",
		`AMD CDI spec not found`:                                             "engine_attach_failed",
		`failed to discover GPU vendor from CDI: no known GPU vendor found`:  "engine_attach_failed",
		`CDI device injection failed: unresolvable CDI devices ` +
			`nvidia.com/gpu=GPU-1`: "engine_attach_failed",
		`unexpected count in CDI device request`:                "engine_attach_failed",
		`cannot set both Count and DeviceIDs on device request`: "engine_attach_failed",
		`failed to create task: OCI runtime create failed: invoking the NVIDIA Container Runtime Hook directly ` +
			`(e.g. specifying the docker --gpus flag) is not supported. Please use the NVIDIA Container Runtime ` +
			`(e.g. specify the --runtime=nvidia flag) instead`: "engine_attach_failed",
		`error running createContainer hook: setting GPU memory limits is ` +
			`only supported in cgroup v2`: "engine_attach_failed",
		`error gathering device information while adding custom device ` +
			`"/dev/kfd": no such file or directory`: "engine_attach_failed",
		`nvidia-container-cli: mount error: failed to add device rules: bpf_prog_query(BPF_CGROUP_DEVICE) failed: ` +
			`operation not permitted`: "engine_attach_failed",
		`nvidia-container-cli: initialization error: nvml ` +
			`error: driver not loaded`: "engine_attach_failed",
		`nvidia-container-cli: device error: GPU-1: unknown device`: "engine_attach_failed",
	} {
		failed := failureOf(said(errdefs.ErrInternal, text))
		if failed == nil || failed.Code != want || failed.Message == "" || failed.Hint == "" ||
			!errors.Is(failed, errdefs.ErrInternal) {
			t.Errorf("%s:\n got %v, want %s", text, failed, want)
		}
	}
	for _, text := range []string{"exec format error", "no space left on device", `Unknown runtime specified kata`} {
		if failed := failureOf(said(errdefs.ErrInternal, text)); failed != nil {
			t.Errorf("%s is taken for a failure of devices: %v", text, failed)
		}
	}
}

func TestWaysAreExcludedByWhatTheDaemonSays(t *testing.T) {
	of := func(lists bool, dirs, devices []string, runtimes ...string) *daemon.Facts {
		return &daemon.Facts{ListsDevices: lists, CDIDirs: dirs, CDI: devices, Runtimes: runtimes}
	}
	dirs, named := []string{"/etc/cdi"}, []string{"nvidia.com/gpu=GPU-1"}
	for _, c := range []struct {
		name string
		said *daemon.Facts
		way  engine.AttachWay
		ids  []string
		want session.Code // "": it must be tried
	}{
		{"CDI on 20.10", of(false, nil, nil), engine.AttachCDI, nil, "engine_attach_failed"},
		{"CDI that is switched off", of(true, nil, nil), engine.AttachCDI, nil, "engine_attach_failed"},
		{"CDI without NVIDIA devices", of(true, dirs, nil), engine.AttachCDI, nil,
			"engine_attach_failed"},
		{"CDI without this device", of(true, dirs, named), engine.AttachCDI, []string{"GPU-2"},
			"engine_attach_failed"},
		{"CDI with this device", of(true, dirs, named), engine.AttachCDI, []string{"GPU-1"}, ""},
		{"CDI of a daemon that does not list devices", of(false, dirs, nil), engine.AttachCDI,
			[]string{"GPU-1"}, ""},
		{"a request", of(false, nil, nil, "runc"), engine.AttachRequest, nil, ""},
		{"no runtime", of(false, nil, nil, "runc"), engine.AttachRuntime, nil, "engine_attach_failed"},
		{"a runtime", of(false, nil, nil, "runc", "nvidia"), engine.AttachRuntime, nil, ""},
	} {
		failed := excludes(c.said, c.way, c.ids)
		if (failed == nil) != (c.want == "") || failed != nil && failed.Code != c.want {
			t.Errorf("%s: got %v, want %q", c.name, failed, c.want)
		}
	}
}

func TestEachWayAsksForDevicesInItsOwnWords(t *testing.T) {
	for _, c := range []struct {
		way     engine.AttachWay
		request []container.DeviceRequest
		runtime string
		env     []string
	}{
		{engine.AttachCDI, []container.DeviceRequest{
			{Driver: "cdi", DeviceIDs: []string{"nvidia.com/gpu=GPU-1", "nvidia.com/gpu=MIG-2"}}}, "",
			[]string{"NVIDIA_VISIBLE_DEVICES=void"}},
		{engine.AttachRequest, []container.DeviceRequest{{Driver: "nvidia", DeviceIDs: []string{"GPU-1", "MIG-2"},
			Capabilities: [][]string{{"gpu"}}}}, "", nil},
		{engine.AttachRuntime, nil, "nvidia", []string{"NVIDIA_VISIBLE_DEVICES=GPU-1,MIG-2",
			"NVIDIA_DRIVER_CAPABILITIES=compute,utility"}},
		{engine.AttachNone, nil, "", nil},
	} {
		config, host := &container.Config{}, &container.HostConfig{}
		handIn(c.way, []string{"GPU-1", "MIG-2"}, config, host)
		same := slices.EqualFunc(host.DeviceRequests, c.request, func(a, b container.DeviceRequest) bool {
			return a.Driver == b.Driver && slices.Equal(a.DeviceIDs, b.DeviceIDs) &&
				len(a.Capabilities) == len(b.Capabilities) && a.Count == 0
		})
		if !same || host.Runtime != c.runtime || !slices.Equal(config.Env, c.env) {
			t.Errorf("%s: %+v, runtime %q, env %q", c.way, host.DeviceRequests, host.Runtime, config.Env)
		}
	}
}

func TestPartsAreLimited(t *testing.T) {
	connection, err := daemon.Open("unix:///none", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close() //nolint:errcheck // nothing was opened
	limited := gpu.Device{UUID: "GPU-1", Vendor: gpu.NVIDIA,
		Capabilities: gpu.Capabilities{MemoryLimit: gpu.Probe{State: gpu.Yes}}}
	plain := gpu.Device{UUID: "GPU-2", Vendor: gpu.NVIDIA}
	half := gpu.Grant{Device: "GPU-1", Share: 500, Memory: 12 * gpu.GiB}
	quarter := gpu.Grant{Device: "GPU-2", Share: 250, Memory: 6 * gpu.GiB}
	pipe := t.TempDir()
	if err := os.WriteFile(filepath.Join(pipe, "control"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		devices []gpu.Device
		grants  []gpu.Grant
		hard    bool
		mps     string
		env     string
		mounts  int
	}{
		{"by the driver", []gpu.Device{limited}, []gpu.Grant{half}, true, "", "NVIDIA_GPU_MEMORY_LIMIT=12288", 0},
		{"by the driver before MPS", []gpu.Device{limited}, []gpu.Grant{half}, true, pipe,
			"NVIDIA_GPU_MEMORY_LIMIT=12288", 0},
		{"not where the toolkit is too old", []gpu.Device{limited}, []gpu.Grant{half}, false, "", "", 0},
		{"not where one driver is too old", []gpu.Device{limited, plain}, []gpu.Grant{half, quarter}, true, "", "", 0},
		{"not for a whole device", []gpu.Device{limited},
			[]gpu.Grant{{Device: "GPU-1", Share: 1000, Whole: true, Memory: 24 * gpu.GiB}}, true, pipe, "", 0},
		{"not for an instance", []gpu.Device{limited},
			[]gpu.Grant{{Device: "GPU-1", Instance: "MIG-1", Memory: 5 * gpu.GiB}}, true, pipe, "", 0},
		{"by MPS for each process", []gpu.Device{limited, plain}, []gpu.Grant{half, quarter}, true, pipe,
			"CUDA_MPS_PIPE_DIRECTORY=" + pipe +
				" CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=12288M,1=6144M CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25", 2},
		{"not by an MPS that does not run", []gpu.Device{plain}, []gpu.Grant{quarter}, false, t.TempDir(), "", 0},
	} {
		d := New(connection, Config{MPS: c.mps})
		config, host := &container.Config{}, &container.HostConfig{ShmSize: 1}
		d.enforce(engine.Container{Devices: c.devices, Grants: c.grants, MPS: c.mps != ""},
			engine.Attachment{HardLimit: c.hard}, config, host)
		if got := strings.Join(config.Env, " "); got != c.env || len(host.Mounts) != c.mounts {
			t.Errorf("%s: env %q and %d mounts, want %q and %d", c.name, got, len(host.Mounts), c.env, c.mounts)
		}
	}
}

func TestHardLimitNeedsItsHookAndCgroupsOfVersion2(t *testing.T) {
	write := func(text string) string {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "nvidia.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	with := write(
		"kind: nvidia.com/gpu\ncontainerEdits:\n  hooks:\n  - args: [nvidia-cdi-hook, apply-cuda-memory-limits]\n")
	without := write("kind: nvidia.com/gpu\n")
	other := write("kind: vendor.com/net\n# apply-cuda-memory-limits\n")
	for _, c := range []struct {
		dir    string
		cgroup int
		want   bool
	}{{with, 2, true}, {with, 1, false}, {without, 2, false}, {other, 2, false},
		{filepath.Join(with, "none"), 2, false}} {
		facts := &daemon.Facts{Here: true, CDIDirs: []string{c.dir}, Info: engine.Info{Cgroup: c.cgroup}}
		if got := hardLimit(facts); got != c.want {
			t.Errorf("%+v: got %v", c, got)
		}
	}
}

func TestImagesGetNoDevicesThatNobodyGranted(t *testing.T) {
	d := New(nil, Config{})
	for _, c := range []struct {
		runtimes []string
		want     []string
	}{{[]string{"nvidia", "runc"}, []string{"NVIDIA_VISIBLE_DEVICES=void"}}, {[]string{"runc"}, nil}} {
		config, host := &container.Config{}, &container.HostConfig{}
		groups, err := d.Attach(t.Context(), engine.Container{}, &daemon.Facts{Runtimes: c.runtimes}, config, host)
		if err != nil || groups != nil || !slices.Equal(config.Env, c.want) || len(host.DeviceRequests) > 0 ||
			host.Runtime != "" {
			t.Errorf("with the runtimes %q: %q, %+v, %v", c.runtimes, config.Env, host, err)
		}
	}
}
