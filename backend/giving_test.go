package backend

import (
	"reflect"
	"testing"

	"slipway/backend/session"
	"slipway/gpu"
)

func TestSharesAreGivenAsTheEnvironmentSays(t *testing.T) {
	read := func(env map[string]string) (gpu.Config, error) {
		return giving(func(name string) string { return env[name] })
	}
	got, err := read(map[string]string{"SLIPWAY_GPU_QUANTUM": "0.25", "SLIPWAY_GPU_STRATEGY": "fill", "SLIPWAY_GPU_FRAGMENTS": "1", "SLIPWAY_GPU_RESERVE": "512m", "SLIPWAY_GPU_EXCLUDE": "GPU-1, GPU-2"})
	want := gpu.Config{Quantum: 250, Strategy: gpu.Fill, AllowFragmentation: true, Floor: 512 * gpu.MiB, Exclude: []gpu.UUID{"GPU-1", "GPU-2"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if got, err := read(nil); err != nil || !reflect.DeepEqual(got, gpu.Config{}) {
		t.Errorf("an empty environment gives %+v, %v", got, err)
	}
	for name, text := range map[string]string{"SLIPWAY_GPU_QUANTUM": "0", "SLIPWAY_GPU_STRATEGY": "random", "SLIPWAY_GPU_FRAGMENTS": "yes", "SLIPWAY_GPU_RESERVE": "much"} {
		if _, err := read(map[string]string{name: text}); session.CodeOf(err) != "accelerator_open_invalid" {
			t.Errorf("%s=%s: %v", name, text, err)
		}
	}
	if _, err := read(map[string]string{"SLIPWAY_GPU_QUANTUM": "1.5"}); err == nil {
		t.Error("a quantum above one device passes")
	}
}
