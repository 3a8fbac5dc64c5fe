//go:build linux

package docker_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/client"

	"slipway/backend/engine"
	"slipway/backend/engine/docker"
	"slipway/backend/engine/enginetest"
	"slipway/backend/guest/link"
	"slipway/backend/session"
	"slipway/backend/terminal"
	"slipway/gpu"
	"slipway/gpu/procs"
)

// The devices that build/ci/moderndocker.sh makes up.
const (
	firstGPU  gpu.UUID = "GPU-11111111-aaaa-4000-8000-000000000001"
	secondGPU gpu.UUID = "GPU-22222222-bbbb-4000-8000-000000000002"
	firstMIG  gpu.UUID = "MIG-33333333-cccc-4000-8000-000000000003"
)

// nvidia is a device of NVIDIA's that sessions may share.
func nvidia(uuid gpu.UUID) gpu.Device {
	return gpu.Device{UUID: uuid, Vendor: gpu.NVIDIA, Memory: 24 * gpu.GiB}
}

// withDevices grants half of each device.
func withDevices(c engine.Container, devices ...gpu.Device) engine.Container {
	for _, d := range devices {
		c.Devices = append(c.Devices, d)
		c.Grants = append(c.Grants, gpu.Grant{Device: d.UUID, Share: 500, Memory: 12 * gpu.GiB})
	}
	return c
}

// modern opens an engine on the daemon of today that has made-up devices.
func modern(t *testing.T, config docker.Config) (*docker.Engine, *client.Client) {
	t.Helper()
	config.Host = enginetest.RequireModernDocker(t)
	config.Instance = instanceOf(t)
	e := open(t, config)
	c, err := client.NewClientWithOpts(client.WithHost(config.Host), client.WithAPIVersionNegotiation())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() }) //nolint:errcheck // nothing to lose
	return e, c
}

// runs starts a container that its test removes.
func runs(t *testing.T, e *docker.Engine, c engine.Container) string {
	t.Helper()
	id, err := e.Create(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Remove(context.Background(), id); err != nil {
			t.Errorf("remove: %v", err)
		}
	})
	if err := e.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	return id
}

func TestModernDockerHandsDevicesInByCDI(t *testing.T) {
	dir, instance := t.TempDir(), instanceOf(t)
	e, api := modern(t, docker.Config{Dir: dir})
	found, err := e.Attachment(t.Context(), true)
	if err != nil || found.Way != engine.AttachCDI || len(found.Tried) != 1 || found.Tried[0].Way != engine.AttachCDI {
		t.Fatalf("want CDI at the first try, got %+v, %v", found, err)
	}
	t.Run("and no trial is left", func(t *testing.T) {
		left, err := api.ContainerList(t.Context(),
			container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", "slipway.trial="+instance))})
		if err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	})
	t.Run("and its image is offered to nobody", func(t *testing.T) {
		images, err := e.Images(t.Context())
		if err != nil || len(images) == 0 {
			t.Fatalf("%d images, %v", len(images), err)
		}
		for _, image := range images {
			if strings.Contains(strings.Join(image.Refs, " "), "slipway-empty") {
				t.Errorf("a person is offered %q", image.Refs)
			}
		}
	})
	t.Run("a container has the device that it was granted and no other", func(t *testing.T) {
		c := withDevices(newContainer(instance, "env | grep -E '^(FAKE_GPU|NVIDIA|CUDA)' | sort; ls /run/fake-gpu"),
			nvidia(secondGPU))
		want := []string{"FAKE_GPU_1=" + string(secondGPU), "NVIDIA_VISIBLE_DEVICES=void", string(secondGPU)}
		if got := said(t, e, runs(t, e, c)); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
	t.Run("an instance goes by its own UUID", func(t *testing.T) {
		c := newContainer(instance, "ls /run/fake-gpu")
		c.Devices = []gpu.Device{nvidia(firstGPU)}
		c.Grants = []gpu.Grant{{Device: firstGPU, Instance: firstMIG, Share: 142}}
		if got := said(t, e, runs(t, e, c)); !slices.Equal(got, []string{string(firstMIG)}) {
			t.Errorf("got %q, want only %s", got, firstMIG)
		}
	})
	t.Run("its process is found by its control group", func(t *testing.T) {
		c := withDevices(newContainer(instance, ""), nvidia(firstGPU), nvidia(secondGPU))
		id := runs(t, e, c)
		inside, err := api.ContainerInspect(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		process, err := procs.NewTable(procs.Config{}).Lookup(inside.State.Pid)
		if err != nil || len(process.Containers) == 0 {
			t.Fatalf("process %d: %+v, %v", inside.State.Pid, process, err)
		}
		sample := gpu.ProcessSample{PID: process.PID, Start: process.Start,
			Container: strings.Join(process.Containers, ",")}
		holders := gpu.Holders{{Session: "other", Containers: []string{strings.Repeat("0", 64)}},
			{Session: "mine", Containers: []string{id}}}
		if got, ok := holders.Of(sample); !ok || got != "mine" {
			t.Errorf("the process of %s in %v is charged to %q", id, process.Containers, got)
		}
	})
	t.Run("a device that the specification lacks is refused, and nothing stays", func(t *testing.T) {
		c := withDevices(newContainer(instance, ""), nvidia("GPU-gone"))
		id, err := e.Create(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		refused(t, e.Start(t.Context(), id), "engine_attach_failed")
		if _, err := e.Inspect(t.Context(), id); session.CodeOf(err) != "engine_read_not-found" {
			t.Errorf("the container is still there: %v", err)
		}
		if err := e.Remove(t.Context(), id); err != nil {
			t.Errorf("remove: %v", err)
		}
		if _, err := api.VolumeInspect(t.Context(), "slipway-"+c.Labels[engine.LabelSession]); err == nil {
			t.Error("its home is still there")
		}
		if files, err := filepath.Glob(filepath.Join(dir, "kernels", "*")); err != nil ||
			slices.ContainsFunc(files, func(f string) bool { return filepath.Base(f) == c.Name }) {
			t.Errorf("its files are still there: %q, %v", files, err)
		}
		id, err = e.Create(t.Context(), withDevices(newContainer(instance, ""), nvidia("GPU-gone")))
		if err == nil {
			e.Remove(context.Background(), id) //nolint:errcheck // the test has failed
		}
		refused(t, err, "engine_attach_failed")
	})
	for way, want := range map[engine.AttachWay]session.Code{
		engine.AttachRequest: "engine_attach_failed",
		engine.AttachRuntime: "engine_attach_failed",
	} {
		t.Run("what is said without the toolkit is understood: "+string(way), func(t *testing.T) {
			e, _ := modern(t, docker.Config{Attach: way})
			refused(t, tryToStart(t, e), want)
		})
	}
}

// said returns the words that a container printed by its end.
func said(t *testing.T, e *docker.Engine, id string) []string {
	t.Helper()
	text, err := e.Logs(t.Context(), id, session.LogOptions{Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close() //nolint:errcheck // read to its end
	all, err := io.ReadAll(text)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(all))
}

// tryToStart starts a container with a device and returns what keeps it from it.
func tryToStart(t *testing.T, e *docker.Engine) error {
	t.Helper()
	id, err := e.Create(t.Context(), withDevices(newContainer(instanceOf(t), ""), nvidia(firstGPU)))
	if err != nil {
		return err
	}
	t.Cleanup(func() { e.Remove(context.Background(), id) }) //nolint:errcheck // it may be gone
	return e.Start(t.Context(), id)
}

// refused wants one of the codes, with a message and a hint.
func refused(t *testing.T, err error, want ...session.Code) {
	t.Helper()
	if err == nil {
		t.Errorf("it succeeded; want %s", want)
		return
	}
	known := session.AsError(err, "none")
	if !slices.Contains(want, known.Code) || known.Hint == "" || known.Message == "" {
		t.Errorf("got %v with code %q, want %s with a message and a hint", err, session.CodeOf(err), want)
	}
}

func TestDockerWithoutDevicesSaysWhyItHandsNothingIn(t *testing.T) {
	enginetest.RequireDocker(t)
	for way, want := range map[engine.AttachWay][]session.Code{
		engine.AttachCDI:     {"engine_attach_failed", "engine_attach_failed"}, // the latter from 28.2 on
		engine.AttachRequest: {"engine_attach_failed"},
		engine.AttachRuntime: {"engine_attach_failed"},
	} {
		t.Run(string(way), func(t *testing.T) {
			e := open(t, docker.Config{Instance: instanceOf(t), Attach: way})
			refused(t, tryToStart(t, e), want...)
			if left, err := e.List(t.Context()); err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
	t.Run("every way is tried and none is left without its remedy", func(t *testing.T) {
		e := open(t, docker.Config{Instance: instanceOf(t)})
		found, err := e.Attachment(t.Context(), true)
		if err != nil || found.Way != engine.AttachNone || len(found.Tried) != 3 {
			t.Fatalf("want no way after three attempts, got %+v, %v", found, err)
		}
		for _, attempt := range found.Tried {
			if attempt.Text == "" || attempt.Remedy == "" {
				t.Errorf("no text or remedy: %+v", attempt)
			}
		}
		refused(t, tryToStart(t, e), "engine_attach_failed")
	})
	t.Run("a session without devices starts all the same", func(t *testing.T) {
		e := open(t, docker.Config{Instance: instanceOf(t)})
		if got := output(t, e, newContainer(instanceOf(t), "env | grep -c NVIDIA"),
			session.LogOptions{}); got != "0\n" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("a device that is gone is not passed over", func(t *testing.T) {
		e := open(t, docker.Config{Instance: instanceOf(t), Attach: engine.AttachNone})
		for _, device := range []gpu.Device{{UUID: "GPU-gone"}, nvidia(firstGPU)} {
			c := withDevices(newContainer(instanceOf(t), ""), device)
			c.Grants[0].Device = "GPU-gone"
			_, err := e.Create(t.Context(), c)
			refused(t, err, "engine_attach_failed")
		}
	})
	t.Run("nothing is handed in where a person said so", func(t *testing.T) {
		e := open(t, docker.Config{Instance: instanceOf(t), Attach: engine.AttachNone})
		if err := tryToStart(t, e); err != nil {
			t.Errorf("it did not start: %v", err)
		}
	})
}

func TestNodesOfOtherVendorsAreHandedIn(t *testing.T) {
	enginetest.RequireDocker(t)
	const group = 4242
	node := filepath.Join(t.TempDir(), "renderD128")
	// The device node of /dev/full, whose writes fail with "no space left".
	if err := syscall.Mknod(node, syscall.S_IFCHR|0o660, 1<<8|7); err != nil {
		t.Fatalf("make a device node, as root may: %v", err)
	}
	if err := os.Chown(node, 0, group); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(node, 0o660); err != nil {
		t.Fatal(err)
	}
	e := open(t, docker.Config{Instance: instanceOf(t),
		Guest: real})
	device := gpu.Device{UUID: "AMD-1", Vendor: gpu.AMD, Nodes: []string{node}}
	c := newContainer(instanceOf(t), "")
	c.Devices, c.Grants = []gpu.Device{device}, []gpu.Grant{{Device: device.UUID, Share: gpu.WholeDevice, Whole: true}}
	guest := greet(t, e, started(t, e, c))
	t.Run("for the person's programs, by the node's group", func(t *testing.T) {
		got := execute(t, guest, "id -u; id -G; echo x > "+node)
		fields := strings.Fields(got)
		if len(fields) < 3 || fields[0] != "1000" || !slices.Contains(fields[1:], strconv.Itoa(group)) ||
			!strings.Contains(got, "No space left on device") {
			t.Errorf("got %q, want user 1000 in group %d and a device that is full", got, group)
		}
	})
	t.Run("and a missing one is named", func(t *testing.T) {
		c := newContainer(instanceOf(t), "")
		c.Devices = []gpu.Device{{UUID: "INTEL-1", Vendor: gpu.Intel, Nodes: []string{node + "9"}}}
		_, err := e.Create(t.Context(), c)
		refused(t, err, "engine_attach_failed")
	})
}

// greet links to the guest of a started container.
func greet(t *testing.T, e *docker.Engine, id string) *link.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	conn, err := e.Guest(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	guest, err := link.Connect(ctx, conn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { guest.Close() }) //nolint:errcheck // nothing to lose
	return guest
}

// execute runs a script for the person and returns what it printed.
func execute(t *testing.T, guest *link.Client, script string) string {
	t.Helper()
	stream, err := guest.Exec(t.Context(), session.ExecRequest{Command: []string{"bash", "-c", script}})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := terminal.RunExec(t.Context(), terminal.NewConn(stream),
		terminal.ExecIO{Stdout: &out, Stderr: &out}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
