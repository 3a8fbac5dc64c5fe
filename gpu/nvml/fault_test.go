//go:build linux && cgo

package nvml_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway/gpu"
	"slipway/gpu/nvml"
)

func TestADeviceThatHangsIsLeftOutAndTheOthersAreRead(t *testing.T) {
	l := newLab(t)
	l.patience = short
	s := l.open()
	mustInventory(t, s)
	l.set(card(0), card(1), "hang call=nvmlDeviceGetPowerUsage gpu=0")
	began := time.Now()
	sample := mustSample(t, s)
	if d := mustDevice(t, sample, "GPU-1"); d.Power == nil {
		t.Errorf("got %+v", d)
	}
	if _, ok := sample.Device("GPU-0"); ok {
		t.Errorf("a device that hangs was read: %+v", sample)
	}
	says(t, sample.Lost, "GPU 0 (GPU-0): everything about it is unknown",
		"did not answer nvmlDeviceGetPowerUsage within 4s", "asked again in")
	if took := time.Since(began); took < short {
		t.Errorf("gave up after %s", took)
	}
	reader := childOf(t, l)
	mustSample(t, s)
	if childOf(t, l) != reader {
		t.Error("the next sample asked the device again, which cost another reader")
	}
	devices := mustInventory(t, s)
	if len(devices) != 2 || devices[0].Memory != 80*gpu.GiB || devices[0].Capabilities.Energy.State != gpu.Unknown ||
		devices[1].Capabilities.Energy.State != gpu.Yes {
		t.Errorf("got %+v", devices)
	}
}

func TestACallThatCrashesIsLeftOutAndTheDeviceIsReadOn(t *testing.T) {
	for kind, how := range map[string]string{"crash": "SIGSEGV", "abort": "SIGABRT"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			s := l.open()
			mustInventory(t, s)
			l.set(card(0), card(1), kind+" call=nvmlDeviceGetTemperature gpu=1")
			sample := mustSample(t, s)
			if d := mustDevice(t, sample, "GPU-1"); d.Temperature != nil || d.Power == nil || d.Util == nil {
				t.Errorf("got %+v", d)
			}
			if d := mustDevice(t, sample, "GPU-0"); d.Temperature == nil {
				t.Errorf("the other device lost something: %+v", d)
			}
			says(t, sample.Lost, "GPU 1 (GPU-1): its temperature is unknown", "crashed in nvmlDeviceGetTemperature",
				how)
		})
	}
}

func TestADeviceThatCrashesTwiceIsLeftOut(t *testing.T) {
	l := newLab(t)
	s := l.open()
	mustInventory(t, s)
	l.set(card(0), card(1), "crash call=nvmlDeviceGetTemperature gpu=1",
		"crash call=nvmlDeviceGetUtilizationRates gpu=1")
	sample := mustSample(t, s)
	if _, ok := sample.Device("GPU-1"); ok {
		t.Errorf("got %+v", sample)
	}
	mustDevice(t, sample, "GPU-0")
	says(t, sample.Lost, "GPU 1 (GPU-1): everything about it is unknown", "crashed in nvmlDeviceGetUtilizationRates")
}

func TestALibraryThatHangsAtOnceIsToldOf(t *testing.T) {
	l := newLab(t)
	l.patience = short
	l.set("hang call=nvmlInit_v2")
	s := l.open()
	_, err := s.Sample(within(t))
	if e := problem(t, err); !strings.Contains(e.Message, "did not answer nvmlInit within 4s") {
		t.Errorf("got %+v", e)
	}
	l.set(card(0))
	mustDevice(t, eventually(t, s), "GPU-0")
}

func TestALibraryThatCrashesAtOnceIsToldOfAndPausedFor(t *testing.T) {
	l := newLab(t)
	l.set("crash call=nvmlDeviceGetCount_v2")
	s := l.open()
	_, err := s.Inventory(within(t))
	if e := problem(t, err); !strings.Contains(e.Message, "crashed in nvmlDeviceGetCount") ||
		!strings.Contains(e.Message, "SIGSEGV") {
		t.Errorf("got %+v", e)
	}
	l.set(card(0))
	mustDevice(t, eventually(t, s), "GPU-0")
}

func TestASlowDriverIsWaitedFor(t *testing.T) {
	l := newLab(t)
	l.patience = short
	each := short / 3
	l.set(card(0), fmt.Sprintf("slow call=nvmlDeviceGetPowerUsage value=%d", each.Milliseconds()),
		fmt.Sprintf("slow call=nvmlDeviceGetTemperature value=%d", each.Milliseconds()),
		fmt.Sprintf("slow call=nvmlDeviceGetSamples value=%d", each.Milliseconds()),
		fmt.Sprintf("slow call=nvmlDeviceGetMigMode value=%d", each.Milliseconds()))
	if s := mustSample(t, l.open()); len(s.Lost) != 0 {
		t.Errorf("although each call answered in time: %q", s.Lost)
	}
}

func TestAChildThatIsKilledIsReplaced(t *testing.T) {
	l := newLab(t)
	s := l.open()
	mustSample(t, s)
	for range 3 {
		kill(t, childOf(t, l))
		if sample := eventually(t, s); len(sample.Devices) != 2 || len(sample.Lost) != 0 {
			t.Errorf("got %+v", sample)
		}
	}
}

func TestAChildThatIsStoppedIsReplaced(t *testing.T) {
	l := newLab(t)
	l.patience = short
	s := l.open()
	mustSample(t, s)
	pid := childOf(t, l)
	stop(t, pid)
	if sample := eventually(t, s); len(sample.Devices) != 2 {
		t.Errorf("got %+v", sample)
	}
	for ctx := within(t); slices.Contains(childrenOf(t, l), pid); time.Sleep(time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatal("the stopped child was kept")
		}
	}
}

// childOf finds the one child of a lab, once none is left that was ended.
func childOf(t *testing.T, l *lab) int {
	t.Helper()
	for ctx := within(t); ; time.Sleep(time.Millisecond) {
		children := childrenOf(t, l)
		if len(children) == 1 {
			return children[0]
		}
		if ctx.Err() != nil {
			t.Fatalf("the children are %v", children)
		}
	}
}

// childrenOf finds the children of a lab by the library that they were given.
func childrenOf(t *testing.T, l *lab) (children []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(line), "-library\x00"+l.library+"\x00") {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			if err != nil {
				t.Fatal(err)
			}
			children = append(children, pid)
		}
	}
	return children
}

// stop stops a process and waits until each of its threads has stopped.
func stop(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	running := func() bool {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(threads, func(file string) bool {
			stat, err := os.ReadFile(file)
			return err == nil && !strings.Contains(string(stat), ") T ")
		})
	}
	for ctx := within(t); running(); time.Sleep(time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatal("the child does not stop")
		}
	}
}

func kill(t *testing.T, pid int) {
	t.Helper()
	p, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
}

func TestTheChildEndsWithItsParentEvenWhileACallHangs(t *testing.T) {
	l := newLab(t)
	l.set("hang call=nvmlInit_v2")
	cmd := exec.Command(os.Args[0], nvml.ChildCommand, "-library", l.library)
	cmd.Env = append(os.Environ(), "SLIPWAY_NVML_STATE="+l.state)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := stdin.Write([]byte(`{"id":1,"op":"sample"}`)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond) // into the call; ending earlier would be right as well
	stdin.Close()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("it failed: %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("it outlives its parent")
		kill(t, cmd.Process.Pid)
	}
}

func TestAQuestionCanBeGivenUp(t *testing.T) {
	l := newLab(t)
	s := l.open()
	mustSample(t, s)
	l.set(card(0), "slow call=nvmlDeviceGetPowerUsage value=700")
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if _, err := s.Sample(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	l.set(card(0), card(1))
	if sample := mustSample(t, s); len(sample.Devices) != 2 {
		t.Errorf("the next question got the answer of the last: %+v", sample)
	}
}

func TestAClosedSourceSaysSo(t *testing.T) {
	l := newLab(t)
	s := nvml.Open(l.config())
	mustSample(t, s)
	pid := childOf(t, l)
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Sample(within(t)); err == nil {
		t.Error("it was read")
	}
	if err := exec.Command("kill", "-0", strconv.Itoa(pid)).Run(); err == nil {
		t.Error("the child lives on")
	}
}

func TestACommandThatIsNoChildIsToldOf(t *testing.T) {
	for name, c := range map[string]struct {
		command []string
		want    string
	}{
		"absent": {[]string{"/nowhere/slipway-gpu"}, "cannot be started"},
		"ends at once": {[]string{"sh", "-c", "echo 'version GLIBC_2.34 not found' >&2; exit 1"},
			"GLIBC_2.34 not found"},
		"talks nonsense": {[]string{"sh", "-c", "echo 'hello, who is there?'; exec sleep 60"}, "its reader ended"},
		"says nothing":   {[]string{"sh", "-c", "exec sleep 60"}, "did not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.patience = short
			config := l.config()
			config.Command = c.command
			s := nvml.Open(config)
			defer s.Close()
			_, err := s.Sample(within(t))
			if e := problem(t, err); !strings.Contains(e.Message, c.want) {
				t.Errorf("got %+v, want %s", e, c.want)
			}
		})
	}
}
