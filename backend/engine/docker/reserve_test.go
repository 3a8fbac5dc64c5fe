//go:build linux

package docker_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"

	"slipway/backend/engine"
	"slipway/backend/engine/docker"
	"slipway/backend/engine/enginetest"
	"slipway/backend/session"
	"slipway/gpu"
)

// reserved has a container wait that the end of the test removes, and returns its id.
func reserved(t *testing.T, e *docker.Engine, c engine.Container) string {
	t.Helper()
	forget(t, c)
	if err := e.Reserve(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	there, err := api(t).ContainerInspect(t.Context(), c.Name)
	if err != nil || !there.State.Running {
		t.Fatalf("what waits is %+v, %v", there.State, err)
	}
	return there.ID
}

// reserving opens an engine with the real guest.
func reserving(t *testing.T, dir string) *docker.Engine {
	t.Helper()
	return open(t, docker.Config{Instance: instanceOf(t), Dir: dir,
		Guest: real})
}

func wantListed(t *testing.T, e *docker.Engine, names ...string) {
	t.Helper()
	states, err := e.List(t.Context())
	if err != nil || len(states) != len(names) {
		t.Fatalf("listed are %+v, %v; want %v", states, err, names)
	}
	for i, name := range names {
		if states[i].Name != name {
			t.Errorf("listed is %s, want %s", states[i].Name, name)
		}
	}
}

// asked is a container for a session that asks for other limits than what waits has.
func asked(c engine.Container) engine.Container {
	c.Labels = map[string]string{engine.LabelName: "train", engine.LabelGrants: `{"cpus":[0]}`,
		engine.LabelSession: c.Labels[engine.LabelSession], engine.LabelKernel: session.MainKernel,
		engine.LabelInstance: c.Labels[engine.LabelInstance]}
	c.Memory, c.Processes, c.CPUs = 192*gpu.MiB, 200, []int{0}
	c.Guest.Env = []session.EnvVar{{Name: "SECRET", Value: "of the session"}}
	return c
}

// inside starts a container and returns what its guest finds in it: what the session brought, then its limits.
func inside(t *testing.T, e *docker.Engine, c engine.Container) string {
	t.Helper()
	guest, err := begun(t, e, started(t, e, c))
	if err != nil {
		t.Fatal(err)
	}
	return execute(t, guest, `echo $SECRET; nproc; id -un
cat /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null || cat /sys/fs/cgroup/memory.max
cat /sys/fs/cgroup/pids/pids.max 2>/dev/null || cat /sys/fs/cgroup/pids.max`)
}

// whatItIs is what a session finds that takes a container, or gets one of its own.
const whatItIs = "of the session\n1\nwork\n201326592\n200\n"

func TestASessionTakesTheContainerThatWaits(t *testing.T) {
	dir := t.TempDir()
	e := reserving(t, dir)
	c := newContainer(instanceOf(t), "")
	waits := reserved(t, e, c)
	wantListed(t, e)
	c = asked(c)
	id, err := e.Create(t.Context(), c)
	if err != nil || id != waits {
		t.Fatalf("created is %s, %v; %s waited", id, err, waits)
	}
	wantListed(t, e, c.Name)
	if again, err := e.Create(t.Context(), c); err != nil || again != id {
		t.Errorf("created again is %s, %v", again, err)
	}
	if err := e.Release(t.Context(), c.Name); err != nil { // which must not remove what a session has
		t.Fatal(err)
	}
	state, err := e.Inspect(t.Context(), id)
	if err != nil || !state.Running || state.Labels[engine.LabelName] != "train" ||
		state.Labels[engine.LabelGrants] != `{"cpus":[0]}` {
		t.Errorf("it is %+v, %v", state, err)
	}
	if got := inside(t, e, c); got != whatItIs {
		t.Errorf("inside it is\n%swant\n%s", got, whatItIs)
	}
	if err := e.Remove(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	wantEmpty(t, filepath.Join(dir, "kernels"))
	wantVolume(t, homeOf(c), false)
}

func TestWhatDoesNotFitIsReplaced(t *testing.T) {
	for name, change := range map[string]func(*testing.T, *engine.Container){
		"another directory": func(t *testing.T, c *engine.Container) {
			c.Mounts = []session.Mount{{Source: t.TempDir(), Target: "/home/work/data"}}
		},
		"another image": func(_ *testing.T, c *engine.Container) { c.Image = enginetest.ImageUser },
		"shared memory": func(_ *testing.T, c *engine.Container) { c.Shm *= 2 },
		"a host name":   func(_ *testing.T, c *engine.Container) { c.Hostname = "sub1" },
		"an owner":      func(_ *testing.T, c *engine.Container) { c.Labels[engine.LabelOwner] = "grace" },
		"an administrator": func(_ *testing.T, c *engine.Container) {
			c.Guest.Admin, c.Guest.UID, c.Guest.GID = true, 0, 0
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := reserving(t, "")
			c := newContainer(instanceOf(t), "")
			waits := reserved(t, e, c)
			c = asked(c)
			change(t, &c)
			user := "work"
			if c.Guest.Admin {
				user = "root"
			}
			id, err := e.Create(t.Context(), c)
			if err != nil || id == waits {
				t.Fatalf("created is %s, %v; %s waited", id, err, waits)
			}
			if got := inside(t, e, c); got != strings.Replace(whatItIs, "work", user, 1) {
				t.Errorf("inside it is %q", got)
			}
			all, err := api(t).ContainerList(t.Context(), container.ListOptions{All: true,
				Filters: filters.NewArgs(filters.Arg("label", engine.LabelInstance+"="+instanceOf(t)))})
			if err != nil || len(all) != 1 || all[0].ID != id {
				t.Errorf("there are %+v, %v", all, err)
			}
		})
	}
}

func TestOneThatEndedWhileItWaitedIsReplaced(t *testing.T) {
	e := reserving(t, "")
	c := newContainer(instanceOf(t), "")
	waits := reserved(t, e, c)
	if err := api(t).ContainerKill(t.Context(), waits, "KILL"); err != nil {
		t.Fatal(err)
	}
	c = asked(c)
	if got := inside(t, e, c); got != whatItIs {
		t.Errorf("inside it is %q", got)
	}
}

func TestContainersThatWaitedForAnotherProcessAreRemoved(t *testing.T) {
	dir := t.TempDir()
	first := reserving(t, dir)
	instance := instanceOf(t)
	waits, taken, runs := newContainer(instance, ""), newContainer(instance, ""), newContainer(instance, "")
	for _, c := range []engine.Container{waits, taken, runs} {
		reserved(t, first, c)
	}
	created(t, first, asked(taken))
	id := started(t, first, asked(runs))
	if err := first.Close(); err != nil { // which leaves all as it is, like the end of the process
		t.Fatal(err)
	}

	next := reserving(t, dir)
	wantListed(t, next, runs.Name)
	state, err := next.Inspect(t.Context(), id)
	if err != nil || !state.Running || state.Labels[engine.LabelName] != "train" {
		t.Errorf("what runs is %+v, %v", state, err)
	}
	for _, c := range []engine.Container{waits, taken} {
		wantVolume(t, homeOf(c), false)
		if _, err := api(t).ContainerInspect(t.Context(), c.Name); err == nil {
			t.Errorf("%s is still there", c.Name)
		}
	}
	if got := inside(t, next, asked(taken)); got != whatItIs {
		t.Errorf("the session that had taken one has %q", got)
	}
}

func TestWhatCannotWait(t *testing.T) {
	e := reserving(t, "")
	c := newContainer(instanceOf(t), "")
	c.Guest.Cluster = &engine.Cluster{}
	if err := e.Reserve(t.Context(), c); session.CodeOf(err) != session.CodeEngineUnsupported {
		t.Errorf("of a cluster: %v", err)
	}
	c = newContainer(instanceOf(t), "")
	c.Image = "localhost/none"
	if err := e.Reserve(t.Context(), c); session.CodeOf(err) != session.CodeNoImage {
		t.Errorf("without an image: %v", err)
	}
	if err := e.Release(t.Context(), c.Name); err != nil {
		t.Errorf("released: %v", err)
	}
}
