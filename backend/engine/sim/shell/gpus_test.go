package shell

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"slipway/gpu"
)

// fakeGPUs is one device, on which a program of the container runs while it is
// told to compute.
type fakeGPUs struct{ busy atomic.Bool }

func (f *fakeGPUs) Read(context.Context) ([]gpu.Device, gpu.Sample, error) {
	used, free, util, power, limit, heat := 300*gpu.MiB, 23*gpu.GiB, 0, gpu.MilliWatt(22_000), gpu.MilliWatt(450_000),
		33
	sample := gpu.Sample{At: gpu.Moment{Wall: time.Date(2026, 5, 20, 15, 4, 5, 0, time.UTC)}}
	if f.busy.Load() {
		used, util = 10*gpu.GiB, 8750
		memory := 9 * gpu.GiB
		sample.Processes = []gpu.ProcessSample{{PID: 2042, Device: "GPU-1", Memory: &memory, Name: "train"}}
	}
	sample.Devices = []gpu.DeviceSample{{UUID: "GPU-1", Util: &util, MemoryUsed: &used, MemoryFree: &free,
		Power: &power, PowerLimit: &limit, Temperature: &heat}}
	return []gpu.Device{{UUID: "GPU-1", Model: "GeForce RTX 4090 (simulated)", PCI: "0000:17:00.0",
		Memory: 24 * gpu.GiB, Driver: "sim"}}, sample, nil
}

func (f *fakeGPUs) Compute(string) ([]int, func()) {
	f.busy.Store(true)
	return []int{2042}, func() { f.busy.Store(false) }
}

func TestNvidiaTellsOfTheDevicesOfTheSession(t *testing.T) {
	cases := []struct{ script, want string }{
		{"nvidia-smi -L", "GPU 0: GeForce RTX 4090 (simulated) (UUID: GPU-1)\n"},
		{"nvidia-smi --query-gpu=name,memory.used,memory.total --format=csv",
			"name, memory.used [MiB], memory.total [MiB]\nGeForce RTX 4090 (simulated), 300 MiB, 24576 MiB\n"},
		{"nvidia-smi --query-gpu=utilization.gpu,power.draw --format=csv,noheader,nounits", "0, 22.00\n"},
		{"nvidia-smi --query-gpu=colour --format=csv", "Field \"colour\" is not a valid field to query.\n\n"},
		{"nvidia-smi | grep -c 'No running processes found'", "1\n"},
		{"nvidia-smi | grep -c ' 300MiB / 24576MiB '", "1\n"},
	}
	for _, c := range cases {
		t.Run(c.script, func(t *testing.T) {
			w := newWorld(t)
			w.GPUs = &fakeGPUs{}
			if got, _ := run(t, w, c.script); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
	t.Run("all lines of its table are as wide", func(t *testing.T) {
		w := newWorld(t)
		w.GPUs = &fakeGPUs{}
		end := w.compute(w.Begin("train", "?", func() {}))
		defer end()
		output, _ := run(t, w, "nvidia-smi")
		lines := strings.Split(strings.TrimSuffix(output, "\n"), "\n")
		for _, line := range lines[1:] {
			if line != "" && len([]rune(line)) != boardWidth+2 {
				t.Errorf("%3d %s", len([]rune(line)), line)
			}
		}
		if !strings.Contains(output, "8      C   train ") || !strings.Contains(output, "9216MiB |") ||
			!strings.Contains(output, "88%") {
			t.Error(output)
		}
	})
	t.Run("a session without devices has none", func(t *testing.T) {
		if output, code := run(t, newWorld(t), "nvidia-smi"); code != 6 ||
			!strings.HasPrefix(output, "No devices were found\n") {
			t.Errorf("%d, %q", code, output)
		}
	})
}

func TestTrainComputesAndWritesAModel(t *testing.T) {
	w := newWorld(t)
	gpus := &fakeGPUs{}
	w.GPUs = gpus
	output, code := run(t, w, "train --epochs 3 --seconds-per-epoch 0.01 && wc -l < metrics.csv")
	if code != 0 || !strings.Contains(output, "GeForce RTX 4090") || !strings.Contains(output, "epoch 3/3  loss ") ||
		!strings.HasSuffix(output, "wrote model.safetensors and metrics.csv\n4\n") {
		t.Errorf("%d, %s", code, output)
	}
	model, err := w.FS.ReadFile("/home/work/model.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	length := binary.LittleEndian.Uint64(model)
	header := map[string]struct {
		Offsets [2]int `json:"data_offsets"`
	}{}
	if err := json.Unmarshal(model[8:8+length], &header); err != nil ||
		8+int(length)+header["layer.weight"].Offsets[1] != len(model) {
		t.Errorf("%+v, %v", header, err)
	}
	if gpus.busy.Load() {
		t.Error("the device is busy after the end")
	}
	if output, code := run(t, newWorld(t), "train --epochs none"); code != 2 ||
		!strings.Contains(output, "usage: train") {
		t.Errorf("%d, %q", code, output)
	}
	if output, code := run(t, w, "cd /etc; train --seconds-per-epoch 0.01 --epochs 1"); code != 1 ||
		!strings.Contains(output, "Permission denied") {
		t.Errorf("%d, %q", code, output)
	}
}

func TestTrainIsStoppedByAKey(t *testing.T) {
	w := newWorld(t)
	gpus := &fakeGPUs{}
	w.GPUs = gpus
	v := open(t, w, 100)
	v.see(prompt)
	v.key("train --seconds-per-epoch 600\r")
	v.see("epoch 1/10    0 %")
	if !gpus.busy.Load() {
		t.Error("the device has nothing to do")
	}
	v.key("\x03")
	v.see("model.safetensors was not written")
	v.see(prompt)
	v.key("echo $? $(ls)\r")
	v.see("\r\n130\r\n" + prompt)
	if gpus.busy.Load() {
		t.Error("the device is busy after the end")
	}
}

func TestTopShowsWhatRunsUntilAKeyIsPressed(t *testing.T) {
	w := newWorld(t)
	w.GPUs = &fakeGPUs{}
	v := open(t, w, 100)
	v.see(prompt)
	v.key("top\r")
	v.see("24576 MiB, 22 W, 33 °C")
	v.see("COMMAND")
	v.see(" top\x1b")
	v.key("x")
	v.see("COMMAND") // it goes on
	v.key("q")
	v.see("\x1b[?1049l")
	v.see(prompt)
	v.key("ec")
	v.see("ec") // what is typed is echoed again
	v.key("ho there\r")
	v.see("there\r\n" + prompt)
	if output, code := run(t, w,
		"stress --cpu 2 --timeout 60 & until top | grep ' 196.2 .*stress --cpu 2'; do sleep 0.02; "+
			"done"); code != 0 || !strings.Contains(output, "work ") {
		t.Errorf("%d, %q", code, output)
	}
}

// TestThePresentersLines runs the lines that a presenter types, as build/docs has them.
func TestThePresentersLines(t *testing.T) {
	page, err := os.ReadFile("../../../../build/docs/presenting.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "In the terminal of *notebook*:\n\n")
	block, _, _ = strings.Cut(block, "\n\n")
	script := strings.ReplaceAll(block, "--seconds-per-epoch 2", "--seconds-per-epoch 0.02")
	w := newWorld(t)
	w.GPUs = &fakeGPUs{}
	output, code := run(t, w, "mkdir churn; seq 401 > churn/customers.csv\n"+script+"\nwait; tail -1 train.log; ls")
	for _, want := range []string{"1\n2\n3\n", "| NVIDIA-SMI", "of 2 busy", "name, utilization.gpu [%]", "\n401 churn/",
		"wrote model.safetensors and metrics.csv\n", "metrics.csv\nmodel.safetensors\n"} {
		if !strings.Contains(output, want) || strings.Count(script, "\n") != 5 {
			t.Errorf("%q is missing", want)
		}
	}
	if code != 0 || strings.Contains(output, "not found") {
		t.Errorf("code %d, %s", code, output)
	}
}
