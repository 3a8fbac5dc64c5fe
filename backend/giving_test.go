package backend

import (
	"reflect"
	"testing"

	"slipway/backend/session"
	"slipway/gpu"
)

func TestBoundsAreAsTheEnvironmentSays(t *testing.T) {
	for text, want := range map[string]int{"": session.DefaultProcesses, "0": 0, "64": 64, "9000": 9000, "63": -1,
		"-1": -1, "many": -1, "9000000": -1} {
		got, mps, err := bounds(func(name string) string {
			return map[string]string{"SLIPWAY_SESSION_PROCESSES": text}[name]
		})
		if want < 0 && session.CodeOf(err) != "agent_open_invalid" || want >= 0 && (err != nil || got != want) || mps {
			t.Errorf("%q gives %d, %v, %v", text, got, mps, err)
		}
	}
	if _, mps, err := bounds(func(name string) string {
		return map[string]string{"SLIPWAY_GPU_MPS": "1"}[name]
	}); err != nil || !mps {
		t.Errorf("MPS is not allowed: %v", err)
	}
}

func TestSharesAreGivenAsTheEnvironmentSays(t *testing.T) {
	read := func(env map[string]string) (gpu.Config, error) {
		return giving(func(name string) string { return env[name] })
	}
	got, err := read(map[string]string{"SLIPWAY_GPU_QUANTUM": "0.25", "SLIPWAY_GPU_STRATEGY": "fill",
		"SLIPWAY_GPU_FRAGMENTS": "1", "SLIPWAY_GPU_RESERVE": "512m", "SLIPWAY_GPU_EXCLUDE": "GPU-1, GPU-2"})
	want := gpu.Config{Quantum: 250, Strategy: gpu.Fill, AllowFragmentation: true, Floor: 512 * gpu.MiB,
		Exclude: []gpu.UUID{"GPU-1", "GPU-2"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if got, err := read(nil); err != nil || !reflect.DeepEqual(got, gpu.Config{}) {
		t.Errorf("an empty environment gives %+v, %v", got, err)
	}
	for name, text := range map[string]string{"SLIPWAY_GPU_QUANTUM": "0", "SLIPWAY_GPU_STRATEGY": "random",
		"SLIPWAY_GPU_FRAGMENTS": "yes", "SLIPWAY_GPU_RESERVE": "much"} {
		if _, err := read(map[string]string{name: text}); session.CodeOf(err) != "accelerator_open_invalid" {
			t.Errorf("%s=%s: %v", name, text, err)
		}
	}
	if _, err := read(map[string]string{"SLIPWAY_GPU_QUANTUM": "1.5"}); err == nil {
		t.Error("a quantum above one device passes")
	}
}
