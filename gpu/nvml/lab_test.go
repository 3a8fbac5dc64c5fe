//go:build linux && cgo

package nvml_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway/gpu"
	"slipway/gpu/nvml"
	"slipway/gpu/procs"
)

// TestMain lets the test program be its own child.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == nvml.ChildCommand {
		os.Exit(nvml.ChildMain(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// short is the patience of tests in which something hangs; a loaded machine may
// take a second to start a child.
const short = 4 * time.Second

// lab is a machine with a made-up driver: a library whose state is a text file,
// and a /proc and /sys in a directory.
type lab struct {
	t       testing.TB
	root    string
	library string
	state   string
	// patience with one call; long, unless a test waits for it to end.
	patience time.Duration

	mu  sync.Mutex // guards now
	now gpu.Moment
}

func newLab(t testing.TB, without ...string) *lab {
	t.Helper()
	l := &lab{t: t, root: t.TempDir(), patience: time.Minute, now: gpu.Moment{
		BootID: "boot-1", Boot: time.Hour, Awake: time.Hour, Wall: time.UnixMicro(1_800_000_000_000_000),
	}}
	l.library = buildLibrary(t, l.root, without...)
	l.state = filepath.Join(l.root, "state")
	l.write("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nmina:x:1000:1000::/home/mina:/bin/sh\n")
	l.write("sys/module/nvidia/version", "580.105.08\n")
	l.write("sys/fs/cgroup/cgroup.controllers", "memory\n")
	l.process(1, "init", 0, "")
	l.set(card(0), card(1))
	return l
}

// buildLibrary compiles the library without some of its functions.
func buildLibrary(t testing.TB, root string, without ...string) string {
	t.Helper()
	path := filepath.Join(root, "libnvidia-ml.so.1")
	args := []string{"-shared", "-fPIC", "-o", path}
	for _, symbol := range without {
		args = append(args, "-DWITHOUT_"+symbol)
	}
	if out, err := exec.Command("gcc", append(args, "testdata/nvml.c")...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return path
}

// set replaces the state of the driver; calls that begin later see it whole.
func (l *lab) set(lines ...string) {
	l.t.Helper()
	l.write("state.new", strings.Join(lines, "\n")+"\n")
	if err := os.Rename(filepath.Join(l.root, "state.new"), l.state); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) write(name, content string) {
	l.t.Helper()
	path := filepath.Join(l.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) process(pid int, name string, uid int, cgroup string) {
	l.t.Helper()
	dir := fmt.Sprintf("proc/%d/", pid)
	l.write(dir+"stat", fmt.Sprintf("%d (%s) S 1 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 %d 1 2 3\n", pid, name, 100+pid))
	l.write(dir+"status", fmt.Sprintf("Uid:\t%d\t%d\t%d\t%d\n", uid, uid, uid, uid))
	l.write(dir+"cgroup", "0::"+cgroup+"\n")
}

// pass lets time go by, and sets the wall clock by so much more.
func (l *lab) pass(d, step time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now.Boot += d
	l.now.Awake += d
	l.now.Wall = l.now.Wall.Add(d + step)
}

func (l *lab) moment() gpu.Moment {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

// micros is the driver's time, back from now.
func (l *lab) micros(back time.Duration) int64 { return l.moment().Wall.Add(-back).UnixMicro() }

func (l *lab) config() nvml.Config {
	return nvml.Config{
		Library: l.library, Root: l.root, Patience: l.patience, Now: l.moment,
		Env:   []string{"SLIPWAY_NVML_STATE=" + l.state},
		Procs: procs.NewTable(procs.Config{Root: l.root, Name: func(int) (string, bool) { return "", false }}),
	}
}

func (l *lab) open() *nvml.Source {
	l.t.Helper()
	s := nvml.Open(l.config())
	l.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			l.t.Error(err)
		}
	})
	return s
}

func card(i int) string {
	return fmt.Sprintf("gpu uuid=GPU-%d name=NVIDIA_Test_%d pci=00000000:%02X:00.0 total=%d used=%d reserved=%d "+
		"util=37 power=65000 limit_power=300000 energy=%d temp=41 mig=0 acct=0 cc=90",
		i, i, i+1, 80*gpu.GiB, 2*gpu.GiB, gpu.GiB, 1_000_000+i)
}

// within bounds a question; a test that hits it has found a hang.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func mustInventory(t *testing.T, s *nvml.Source) []gpu.Device {
	t.Helper()
	devices, err := s.Inventory(within(t))
	if err != nil {
		t.Fatal(err)
	}
	return devices
}

func mustSample(t *testing.T, s *nvml.Source) gpu.Sample {
	t.Helper()
	sample, err := s.Sample(within(t))
	if err != nil {
		t.Fatal(err)
	}
	return sample
}

func mustDevice(t *testing.T, s gpu.Sample, uuid gpu.UUID) gpu.DeviceSample {
	t.Helper()
	d, ok := s.Device(uuid)
	if !ok {
		t.Fatalf("%s was not read: %+v", uuid, s)
	}
	return d
}

func process(s gpu.Sample, pid int) *gpu.ProcessSample {
	i := slices.IndexFunc(s.Processes, func(p gpu.ProcessSample) bool { return p.PID == pid })
	if i < 0 {
		return nil
	}
	return &s.Processes[i]
}

func problem(t *testing.T, err error) *gpu.Error {
	t.Helper()
	var e *gpu.Error
	if !errors.As(err, &e) {
		t.Fatalf("%v (%T) is no error for people", err, err)
	}
	if e.Message == "" || e.Hint == "" {
		t.Errorf("%+v does not say what to do", e)
	}
	return e
}

// says fails the test unless one of the losses holds all parts.
func says(t *testing.T, lost []string, parts ...string) {
	t.Helper()
	if !slices.ContainsFunc(lost, func(text string) bool {
		return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
	}) {
		t.Errorf("nothing says %q in\n%s", parts, strings.Join(lost, "\n"))
	}
}
