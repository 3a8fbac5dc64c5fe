//go:build linux

package docker_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/volume"
	"golang.org/x/sys/unix"

	"slipway/backend/engine"
	"slipway/backend/engine/docker"
	"slipway/backend/engine/enginetest"
	"slipway/backend/session"
	"slipway/gpu"
)

// output runs a container to its end and returns its log.
func output(t *testing.T, e *docker.Engine, c engine.Container, opts session.LogOptions) string {
	t.Helper()
	id := started(t, e, c)
	opts.Follow = true
	reader, err := e.Logs(t.Context(), id, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close() //nolint:errcheck // read to its end
	text, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestContainerIsWhatWasAskedFor(t *testing.T) {
	e := open(t, docker.Config{Instance: instanceOf(t)})
	c := newContainer(instanceOf(t), `nproc
cat /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null || cat /sys/fs/cgroup/memory.max
cat /sys/fs/cgroup/memory/memory.memsw.limit_in_bytes 2>/dev/null || cat /sys/fs/cgroup/memory.swap.max
df -B1 --output=size /dev/shm | tail -1 | tr -d ' '
hostname
grep NoNewPrivs /proc/self/status | tr -d '\t'
grep CapBnd /proc/self/status | tr -d '\t'
df --output=target /home/work | tail -1; ls -A /home/work | wc -l
cat /proc/self/oom_score_adj`)
	c.Memory, c.Shm, c.Hostname = 192*gpu.MiB, 48*gpu.MiB, "main1"
	got := strings.Fields(output(t, e, c, session.LogOptions{}))
	limit := "201326592"
	want := []string{"1", limit, limit, "50331648", "main1", "NoNewPrivs:1", "CapBnd:00000000000001eb", "/home/work",
		"0", "500"}
	if len(got) == len(want) && got[2] == "0" {
		want[2] = "0" // version 2 counts swap alone
	}
	if !slices.Equal(got, want) {
		t.Errorf("inside the container:\n got %q\nwant %q", got, want)
	}
}

func TestGuestRunsInAnyImage(t *testing.T) {
	t.Run("one that holds a single static program", func(t *testing.T) {
		e := open(t, docker.Config{Instance: instanceOf(t)})
		c := newContainer(instanceOf(t), "")
		c.Image = enginetest.ImageStatic
		id := started(t, e, c)
		conn, err := e.Guest(t.Context(), id)
		echo(t, conn, err)
	})
	t.Run("one with its own user, directory and entry point", func(t *testing.T) {
		e := open(t, docker.Config{Instance: instanceOf(t)})
		c := newContainer(instanceOf(t), "id -u; pwd; echo $APP_MODE")
		c.Image = enginetest.ImageUser
		if got := output(t, e, c, session.LogOptions{}); got != "0\n/\nfrom-image\n" {
			t.Errorf("got %q, want root, / and the image's variables", got)
		}
	})
	t.Run("one without a shell runs no command and says so by its exit", func(t *testing.T) {
		e := open(t, docker.Config{Instance: instanceOf(t)})
		c := newContainer(instanceOf(t), "true")
		c.Image = enginetest.ImageStatic
		output(t, e, c, session.LogOptions{})
		if state, err := e.Inspect(t.Context(), c.Name); err != nil || state.ExitCode != 127 {
			t.Errorf("got %+v, %v", state, err)
		}
	})
}

func TestMounts(t *testing.T) {
	t.Parallel()
	t.Run("a directory is seen and written, one that is read-only is not written", func(t *testing.T) {
		e, dir := open(t, docker.Config{Instance: instanceOf(t)}), t.TempDir()
		c := newContainer(instanceOf(t),
			"echo written > /data/file; cat /data/file; echo no > /frozen/file || echo refused")
		c.Mounts = []session.Mount{{Source: dir, Target: "/data"}, {Source: dir, Target: "/frozen", ReadOnly: true}}
		if got := output(t, e, c, session.LogOptions{}); !strings.Contains(got, "written\n") ||
			!strings.Contains(got, "refused\n") {
			t.Errorf("got %q", got)
		}
		if data, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(data) != "written\n" {
			t.Errorf("outside it is %q, %v", data, err)
		}
	})
	t.Run("one that is exchanged for a link outwards before the start is not used", func(t *testing.T) {
		for _, bent := range []bool{false, true} {
			dir := t.TempDir()
			part, beside := filepath.Join(dir, "folder", "part"), filepath.Join(dir, "beside")
			if err := errors.Join(os.MkdirAll(part, 0o755), os.Mkdir(beside, 0o755)); err != nil {
				t.Fatal(err)
			}
			var stat unix.Stat_t
			if err := unix.Lstat(part, &stat); err != nil {
				t.Fatal(err)
			}
			e := open(t, docker.Config{Instance: instanceOf(t),
				Guest: real})
			c := newContainer(instanceOf(t), "echo ran > /home/work/part/file")
			c.Guest.UID, c.Guest.GID = os.Getuid(), os.Getgid()
			c.Mounts = []session.Mount{{Source: part, Target: "/home/work/part"}}
			c.Guest.Pins = []engine.Pin{{Target: "/home/work/part", Device: stat.Dev, Inode: stat.Ino}}
			id := created(t, e, c)
			if bent {
				if err := errors.Join(os.Rename(part, part+"-away"), os.Symlink(beside, part)); err != nil {
					t.Fatal(err)
				}
			}
			if err := e.Start(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			log, err := e.Logs(t.Context(), id, session.LogOptions{Follow: true})
			if err != nil {
				t.Fatal(err)
			}
			said, err := io.ReadAll(log) // until it ends
			state, stateErr := e.Inspect(t.Context(), id)
			if err := errors.Join(err, stateErr, log.Close()); err != nil || state.Running {
				t.Fatalf("%+v, %v", state, err)
			}
			_, inside := os.Stat(filepath.Join(dir, "folder", "part", "file"))
			_, outside := os.Stat(filepath.Join(beside, "file"))
			refused := strings.Contains(string(said), "is not what was to be mounted")
			if ran := state.ExitCode == 0 && inside == nil; ran == bent || refused != bent || outside == nil {
				t.Errorf("bent %t: it ended as %+v, said %q, and wrote inside: %v, outside: %v", bent, state, said,
					inside, outside)
			}
		}
	})
	t.Run("a missing directory is named and nothing is left", func(t *testing.T) {
		dir := t.TempDir()
		e := open(t, docker.Config{Instance: instanceOf(t), Dir: dir})
		c := newContainer(instanceOf(t), "")
		c.Mounts = []session.Mount{{Source: "/no/such/place", Target: "/data"}}
		_, err := e.Create(t.Context(), c)
		wantCode(t, err, "engine_call_invalid")
		if err == nil || !strings.Contains(err.Error(), "/no/such/place") {
			t.Errorf("%v does not name the directory", err)
		}
		wantEmpty(t, filepath.Join(dir, "kernels"))
	})
}

func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("%s holds %v, %v, want nothing", dir, entries, err)
	}
}

func wantNoVolume(t *testing.T, c engine.Container) {
	t.Helper()
	selection := filters.NewArgs(filters.Arg("label", engine.LabelSession+"="+c.Labels[engine.LabelSession]))
	found, err := api(t).VolumeList(t.Context(), volume.ListOptions{Filters: selection})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range found.Volumes {
		t.Errorf("the volume %s stays", v.Name)
	}
}

func TestCreateRefusesWhatDockerWould(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*engine.Container)
		want   session.Code
	}{
		{"a CPU that is not there", func(c *engine.Container) { c.CPUs = []int{9999} }, "engine_call_invalid"},
		{"too little memory", func(c *engine.Container) { c.Memory = 1000 }, "engine_call_invalid"},
		{"a name that leads elsewhere", func(c *engine.Container) { c.Name = "../../etc" }, "engine_call_invalid"},
		{"an image name with spaces", func(c *engine.Container) { c.Image = "not an image" }, "engine_call_invalid"},
		{"two mounts on one target", func(c *engine.Container) {
			c.Mounts = []session.Mount{{Source: "/tmp", Target: "/d"}, {Source: "/tmp", Target: "/d"}}
		}, "engine_call_invalid"},
		{"two ways to write one target", func(c *engine.Container) {
			c.Mounts = []session.Mount{{Source: "/tmp", Target: "/d/"}, {Source: "/var", Target: "//d"}}
		}, "engine_call_invalid"},
		{"two mounts over the home", func(c *engine.Container) {
			c.Mounts = []session.Mount{{Source: "/tmp", Target: session.Home},
				{Source: "/var", Target: session.Home + "/"}}
		}, "engine_call_invalid"},
		{"a relative target", func(c *engine.Container) { c.Mounts = []session.Mount{{Source: "/tmp", Target: "d"}} },
			"engine_call_invalid"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			e := open(t, docker.Config{Instance: instanceOf(t), Dir: dir})
			spec := newContainer(instanceOf(t), "")
			forget(t, spec)
			c.change(&spec)
			_, err := e.Create(t.Context(), spec)
			wantCode(t, err, c.want)
			wantEmpty(t, filepath.Join(dir, "kernels"))
			wantNoVolume(t, spec)
		})
	}
}

func TestLogsOfLongLines(t *testing.T) {
	e := open(t, docker.Config{Instance: instanceOf(t)})
	long := strings.Repeat("x", 50_000)
	c := newContainer(instanceOf(t), `head -c 50000 /dev/zero | tr '\0' x; echo; echo after`)
	text := output(t, e, c, session.LogOptions{Timestamps: true})
	var rest []string
	for line := range strings.Lines(text) {
		stamp, said, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if _, err := time.Parse(time.RFC3339Nano, stamp); err != nil {
			t.Errorf("a line begins with %.40q: %v", line, err)
		}
		rest = append(rest, said)
	}
	slices.Sort(rest)
	if !slices.Equal(rest, []string{"after", long}) {
		t.Errorf("got %d lines of %d bytes in all", len(rest), len(text))
	}
}

func TestWatchTellsOfAContainerThatSomebodyRemoved(t *testing.T) {
	e := open(t, docker.Config{Instance: instanceOf(t)})
	c := newContainer(instanceOf(t), "")
	if _, err := e.List(t.Context()); err != nil { // from here on nothing may be missed
		t.Fatal(err)
	}
	id := started(t, e, c)
	if err := api(t).ContainerRemove(t.Context(), id,
		container.RemoveOptions{Force: true, RemoveVolumes: true}); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	seen := make(chan engine.State, 100)
	go e.Watch(ctx, func(s engine.State) { seen <- s }) //nolint:errcheck // the test waits for what it tells
	for {
		select {
		case s := <-seen:
			if s.ID != id {
				t.Errorf("told of a stranger: %+v", s)
			}
			if s.Gone {
				if s.Name != c.Name || s.Labels[engine.LabelSession] != c.Labels[engine.LabelSession] {
					t.Errorf("got %+v without its name and labels", s)
				}
				return
			}
		case <-time.After(2 * time.Minute):
			t.Fatal("not told")
		}
	}
}

func TestFirstListSweepsWhatContainersLeft(t *testing.T) {
	dir, instance := t.TempDir(), instanceOf(t)
	first := open(t, docker.Config{Dir: dir, Instance: instance})
	lost, kept := newContainer(instance, ""), newContainer(instance, "")
	id := created(t, first, lost)
	created(t, first, kept)
	spool := volumesOf(t, id)
	if err := api(t).ContainerRemove(t.Context(), id, container.RemoveOptions{Force: true}); err != nil {
		t.Fatal(err)
	}
	first.Close() //nolint:errcheck // only to give the directory away

	next := open(t, docker.Config{Dir: dir, Instance: instance})
	states, err := next.List(t.Context())
	if err != nil || len(states) != 1 || states[0].Name != kept.Name {
		t.Fatalf("got %+v, %v", states, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "kernels", lost.Name)); !os.IsNotExist(err) {
		t.Errorf("the lost container's files: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "kernels", kept.Name)); err != nil {
		t.Errorf("the kept container's files: %v", err)
	}
	for _, name := range append(spool, homeOf(lost)) {
		wantVolume(t, name, false)
	}
	wantVolume(t, homeOf(kept), true)
}

func homeOf(c engine.Container) string { return "slipway-" + c.Labels[engine.LabelSession] }

// volumesOf names the volumes of a container.
func volumesOf(t *testing.T, id string) []string {
	t.Helper()
	found, err := api(t).ContainerInspect(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range found.Mounts {
		if m.Type == "volume" {
			names = append(names, m.Name)
		}
	}
	if len(names) != 2 {
		t.Fatalf("the container has volumes %v, want a home and a spool", names)
	}
	return names
}

func wantVolume(t *testing.T, name string, want bool) {
	t.Helper()
	found, err := api(t).VolumeList(t.Context(), volume.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.ContainsFunc(found.Volumes, func(v *volume.Volume) bool { return v.Name == name }); got != want {
		t.Errorf("volume %s is there: %v, want %v", name, got, want)
	}
}

func TestRemoveLeavesNothing(t *testing.T) {
	for name, outside := range map[string]bool{"of a running container": false,
		"of one that somebody removed already": true} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			e := open(t, docker.Config{Dir: dir, Instance: instanceOf(t)})
			id := started(t, e, newContainer(instanceOf(t), ""))
			volumes := volumesOf(t, id)
			if outside {
				if err := api(t).ContainerRemove(t.Context(), id, container.RemoveOptions{Force: true}); err != nil {
					t.Fatal(err)
				}
			}
			if err := e.Remove(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			wantEmpty(t, filepath.Join(dir, "kernels"))
			for _, volume := range volumes {
				wantVolume(t, volume, false)
			}
		})
	}
}

func TestStatsCountWhatAContainerDoes(t *testing.T) {
	e := open(t, docker.Config{Instance: instanceOf(t)})
	id := started(t, e, newContainer(instanceOf(t), `exec python3 -c '
x = bytearray(40 << 20)
while True: pass'`))
	deadline := time.Now().Add(2 * time.Minute)
	for {
		samples, err := e.Stats(t.Context(), []string{id})
		if err != nil {
			t.Fatal(err)
		}
		s := samples[id]
		if s.Memory > 40*gpu.MiB && s.CPU > 200*time.Millisecond && s.Pids >= 2 && s.MemLimit == 128*gpu.MiB {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the last sample is %+v", s)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
