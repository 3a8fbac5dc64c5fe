package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/system"

	"slipway/backend/session"
)

func said(class error, text string) error {
	return fmt.Errorf("Error response from daemon: %s: %w", text, class)
}

func TestFailureDecidesByClass(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want session.Code
	}{
		{"not found", said(errdefs.ErrNotFound, "No such volume"), "engine_call_internal-error"},
		{"invalid", said(errdefs.ErrInvalidArgument, "bad"), "engine_call_invalid"},
		{"conflict", said(errdefs.ErrConflict, "in use"), "engine_call_conflict"},
		{"unauthorized", said(errdefs.ErrUnauthenticated, "who"), "engine_call_invalid"},
		{"forbidden", said(errdefs.ErrPermissionDenied, "no"), "engine_call_invalid"},
		{"internal", said(errdefs.ErrInternal, "boom"), "engine_call_internal-error"},
		{"unavailable", said(errdefs.ErrUnavailable, "shutting down"), session.CodeEngineUnavailable},
		{"a disk that is full", said(errdefs.ErrInternal, "mkdir /var/lib/docker/overlay2/x: no space left on device"),
			"disk_write_no-space"},
		{"a connection that breaks", fmt.Errorf("read: %w", io.ErrUnexpectedEOF), session.CodeEngineUnavailable},
		{"a connection that is reset", &net.OpError{Op: "read", Err: syscall.ECONNRESET},
			session.CodeEngineUnavailable},
		{"a socket that refuses this user", &net.OpError{Op: "dial", Err: os.ErrPermission},
			session.CodeEngineUnavailable},
		{"an error of ours stays", &session.Error{Code: "engine_other_thing"}, "engine_other_thing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Failure(t.Context(), c.err)
			var e *session.Error
			if !errors.As(got, &e) || e.Code != c.want {
				t.Fatalf("got %v, want %s", got, c.want)
			}
			if e.Code == session.CodeEngineUnavailable && e.Hint == "" {
				t.Error("no hint")
			}
		})
	}
	if Failure(t.Context(), nil) != nil {
		t.Error("success became a failure")
	}
}

func TestFailureUnderAnEndedContextKeepsItsError(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	for want, ctx := range map[session.Code]context.Context{"operation_run_cancelled": cancelled,
		"engine_call_timeout": late} {
		got := Failure(ctx, errors.New("broken pipe"))
		if session.CodeOf(got) != want || !errors.Is(got, ctx.Err()) {
			t.Errorf("got %v, want %s around %v", got, want, ctx.Err())
		}
	}
	silent, cancel := context.WithTimeoutCause(t.Context(), 0, errSilent)
	defer cancel()
	<-silent.Done()
	if got := Failure(silent, silent.Err()); session.CodeOf(got) != session.CodeEngineUnavailable {
		t.Errorf("a daemon that did not answer in time: got %v", got)
	}
}

func TestDaemonThatNeverAnswersIsUnavailable(t *testing.T) {
	path := t.TempDir() + "/d.sock"
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // nothing to lose
	d, err := Open("unix://"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close() //nolint:errcheck // nothing to lose
	d.answerTime = 50 * time.Millisecond
	for range 2 {
		if _, err := d.Facts(t.Context()); session.CodeOf(err) != session.CodeEngineUnavailable {
			t.Errorf("got %v", err)
		}
	}
	brief, cancel := d.Brief(t.Context())
	defer cancel()
	_, err = d.API.ContainerList(brief, container.ListOptions{})
	if err := Failure(brief, err); session.CodeOf(err) != session.CodeEngineUnavailable {
		t.Errorf("got %v", err)
	}
}

func TestReasonsOfWhatDockerTellsOnlyByText(t *testing.T) {
	for text, want := range map[string]Reason{
		"write /var/lib/docker/tmp/GetImageBlob1: no space left on device": ReasonNoSpace,
		"mkdir /x: disk quota exceeded":                                    ReasonNoSpace,
		"toomanyrequests: You have reached your pull rate limit. You may " +
			"increase the limit by authenticating": ReasonRateLimited,
		"no matching manifest for linux/arm64/v8 in the manifest list entries": ReasonWrongPlatform,
		"Head \"https://r.test/v2/x/manifests/1\": unauthorized: " +
			"authentication required": ReasonForbidden,
		"Head \"https://r.test/v2/x/manifests/1\": no basic auth credentials": ReasonForbidden,
		"unauthorized: incorrect username or password":                        ReasonForbidden,
		"error parsing HTTP 403 response body: invalid character 'F' " +
			"looking for beginning of value: \"Forbidden\"": ReasonForbidden,
		"manifest for python:none not found: manifest " +
			"unknown: manifest unknown": ReasonNoManifest,
		"pull access denied for nobody/nothing, repository does not exist or may require 'docker login': denied: " +
			"requested access": ReasonNoManifest,
		"Get \"https://registry-1.docker.io/v2/\": dial tcp: lookup " +
			"registry-1.docker.io: no such host": ReasonUnreachable,
		"Get \"https://registry-1.docker.io/v2/\": net/http: request canceled while waiting for connection " +
			"(Client.Timeout exceeded": ReasonUnreachable,
		"Get \"http://127.0.0.1:5000/v2/\": dial tcp 127.0.0.1:5000: " +
			"connect: connection refused": ReasonUnreachable,
		"Get \"https://r.test/v2/\": x509: certificate signed " +
			"by unknown authority": ReasonUnreachable,
		"received unexpected HTTP status: 503 Service Unavailable": ReasonUnreachable,
		"could not find an available, non-overlapping IPv4 address pool " +
			"among the defaults to assign to the network": ReasonNoAddresses,
		"all predefined address pools have been fully subnetted": ReasonNoAddresses,
		"cannot restrict inter-container communication: please ensure " +
			"that br_netfilter kernel module is loaded": ReasonNoBridgeFilter,
		"cannot restrict inter-container communication or run without the userland proxy: stat " +
			"/proc/sys/net/bridge/bridge-nf-call-iptables: no " +
			"such file or directory": ReasonNoBridgeFilter,
		`container create: creating container storage: the container name "slipway-a" is already in use by ` +
			`"1f2e". You have to remove that container to be able to reuse that name: that name is already in ` +
			`use`: ReasonTaken,
		"unrecognized image ID sha256:22c3395f69b2": ReasonRemoved,
		"something else altogether":                 ReasonUnknown,
	} {
		if got := ReasonOf(text, errors.New(text)); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}

func TestFactsWarnOfWhatStands(t *testing.T) {
	local := machine{name: "lab", kernel: "6.1.0", system: "linux"}
	good := system.Info{
		ID: "ID", Name: "lab", KernelVersion: "6.1.0", OSType: "linux", Architecture: "x86_64", NCPU: 8,
		MemTotal:      1 << 34,
		ServerVersion: "20.10.24", CgroupVersion: "2", MemoryLimit: true, CPUSet: true, PidsLimit: true,
		DockerRootDir:   "/var/lib/docker",
		SecurityOptions: []string{"name=seccomp,profile=default", "name=cgroupns"},
	}
	for _, c := range []struct {
		name, api, host string
		change          func(*system.Info)
		want            session.Code
		here, mounts    bool
	}{
		{"a daemon of this machine", "1.41", "unix:///d.sock", func(*system.Info) {}, "", true, true},
		{"one reached by tcp", "1.41", "tcp://lab:2376", func(*system.Info) {}, "engine_info_remote-engine", false,
			false},
		{"a forwarded socket", "1.41", "unix:///d.sock", func(i *system.Info) { i.Name = "far" },
			"engine_info_remote-engine", false, false},
		{"Docker Desktop on Linux", "1.47", "unix:///d.sock", func(i *system.Info) {
			i.Name, i.KernelVersion, i.OperatingSystem = "docker-desktop", "6.6.12-linuxkit", "Docker Desktop"
		}, "engine_info_remote-engine", false, true},
		{"one that is too old", "1.40", "unix:///d.sock", func(*system.Info) {}, "engine_info_too-old", true, true},
		{"one without a limit of processes", "1.41", "unix:///d.sock", func(i *system.Info) { i.PidsLimit = false },
			"engine_info_no-process-limit", true, true},
		{"one without limits", "1.41", "unix:///d.sock", func(i *system.Info) { i.MemoryLimit = false },
			"engine_info_no-limits", true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			info := good
			c.change(&info)
			f := readFacts(info, c.api, c.host, local, time.Unix(1, 0))
			var got session.Code
			for _, w := range f.Info.Warnings {
				got = w.Code
			}
			if got != c.want || f.Here != c.here || f.Mounts != c.mounts || f.Info.Arch != "amd64" ||
				f.Info.Cgroup != 2 {
				t.Errorf("got warning %q, here %v, mounts %v, %+v", got, f.Here, f.Mounts, f.Info)
			}
		})
	}
	good.Name = "moby"
	for host, mounts := range map[string]bool{"unix:///d.sock": true, "npipe:////./pipe/docker_engine": true,
		"tcp://127.0.0.1:2375": false} {
		if f := readFacts(good, "1.47", host, machine{name: "mac", system: "darwin"}, time.Unix(1, 0)); f.Here ||
			f.Mounts != mounts {
			t.Errorf("%s on a Mac: here %v, mounts %v", host, f.Here, f.Mounts)
		}
	}
	good.Name = "lab"
	podman := readFacts(good, "1.41", "unix:///d.sock", local, time.Unix(1, 0))
	podman.Info.Version = "4.2.0"
	var own podmanInfo
	own.Host.Security.Rootless = true
	podman.asPodman("/home/ada/containers", own, time.Unix(1, 0))
	if w := podman.Info.Warnings; !podman.Rootless || podman.ID != "podman:/home/ada/containers" ||
		podman.Info.Name != "podman" || len(w) != 1 || w[0].Code != "engine_info_too-old" {
		t.Errorf("Podman misread: %+v", podman)
	}
	weak := good
	own.limit(&weak)
	if w := readFacts(weak, "1.41", "unix:///d.sock", local, time.Unix(1, 0)).Info.Warnings; len(w) != 2 ||
		w[0].Code != session.CodeNoProcessLimit || w[1].Code != session.CodeNoLimits {
		t.Errorf("a person's Podman without controllers: %+v", w)
	}
	own.Host.Controllers, weak = []string{"cpu", "cpuset", "memory", "pids"}, good
	if own.limit(&weak); !weak.MemoryLimit || !weak.CPUSet || !weak.PidsLimit {
		t.Errorf("a person's Podman with controllers: %+v", weak)
	}
	rootless := good
	rootless.SecurityOptions = []string{"name=seccomp,profile=default", "name=rootless", "name=selinux"}
	if f := readFacts(rootless, "1.41", "unix:///d.sock", local, time.Unix(1, 0)); !f.Rootless || !f.SELinux ||
		f.Remapped {
		t.Errorf("security options misread: %+v", f)
	}
}

func TestFactsSayHowDevicesCanBeHandedIn(t *testing.T) {
	for api, lists := range map[string]bool{"1.41": false, "1.49": false, "1.50": true, "1.51": true} {
		f := readFacts(system.Info{
			CDISpecDirs: []string{"/etc/cdi"},
			DiscoveredDevices: []system.DeviceInfo{{Source: "cdi", ID: "nvidia.com/gpu=GPU-1"},
				{Source: "cdi", ID: "vendor.com/net=0"}, {Source: "other", ID: "nvidia.com/gpu=GPU-2"}},
			Runtimes: map[string]system.RuntimeWithStatus{"runc": {}, "nvidia": {}},
		}, api, "unix:///x", machine{}, time.Time{})
		if f.ListsDevices != lists || !slices.Equal(f.CDI, []string{"nvidia.com/gpu=GPU-1"}) ||
			!slices.Equal(f.CDIDirs, []string{"/etc/cdi"}) || !slices.Equal(f.Runtimes, []string{"nvidia", "runc"}) {
			t.Errorf("API %s: %+v", api, f)
		}
	}
}
