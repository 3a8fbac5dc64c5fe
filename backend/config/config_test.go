package config

import (
	"reflect"
	"testing"
	"time"

	"slipway/backend/layers"
	"slipway/backend/session"
	"slipway/gpu"
)

// read reads the settings of an environment that has nothing else.
func read(env map[string]string) (Agent, error) {
	return ReadAgent(func(name string) string { return env[name] })
}

func TestAnEmptyEnvironmentHasTheUsual(t *testing.T) {
	got, err := read(nil)
	want := Agent{Processes: session.DefaultProcesses, Warm: session.DefaultWarm}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

func TestSettingsAreAsTheEnvironmentSays(t *testing.T) {
	got, err := read(map[string]string{
		"SLIPWAY_GPU_QUANTUM": "0.25", "SLIPWAY_GPU_STRATEGY": "fill", "SLIPWAY_GPU_FRAGMENTS": "1",
		"SLIPWAY_GPU_RESERVE": "512m", "SLIPWAY_GPU_EXCLUDE": "GPU-1, GPU-2",
		"SLIPWAY_IDLE_LIFETIME": "2d", "SLIPWAY_IDLE_WINDOW": "30m", "SLIPWAY_IDLE_GPU": "5", "SLIPWAY_IDLE_ANY": "1",
		"SLIPWAY_GPU_GUARD": "end-session", "SLIPWAY_GPU_MPS": "1", "SLIPWAY_NVML_LIBRARY": "/lib/nvml.so",
		"SLIPWAY_SESSION_PROCESSES": "9000", "SLIPWAY_SESSION_ADMIN": "none", "SLIPWAY_SESSION_WARM": "0",
		"SLIPWAY_IMAGES_RECEIVE_MOST": "2", "SLIPWAY_IMAGES_RECEIVE_SIZE": "1g", "SLIPWAY_IMAGES_RECEIVE_KEEP": "1d"})
	five := 5.0
	want := Agent{
		Shares: gpu.Config{Quantum: 250, Strategy: gpu.Fill, AllowFragmentation: true, Floor: 512 * gpu.MiB,
			Exclude: []gpu.UUID{"GPU-1", "GPU-2"}},
		Idle: session.IdlePolicy{Lifetime: session.Duration(48 * time.Hour),
			Use: session.UsePolicy{Window: session.Duration(30 * time.Minute), GPU: &five, Any: true}},
		Guard: gpu.PolicyEndSession, Processes: 9000, MPSForUsers: true, Admins: session.AdminsNone,
		Library: "/lib/nvml.so",
		Images:  layers.Quota{Images: 2, Size: gpu.GiB, Keep: 24 * time.Hour}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if got, err := read(map[string]string{"SLIPWAY_GPU_GUARD": "end-process"}); err != nil ||
		got.Guard != gpu.PolicyEndProcess {
		t.Errorf("got %s, %v", got.Guard, err)
	}
	for text, want := range map[string]int{"0": 0, "64": 64} {
		if got, err := read(map[string]string{"SLIPWAY_SESSION_PROCESSES": text}); err != nil || got.Processes != want {
			t.Errorf("%q gives %d, %v", text, got.Processes, err)
		}
	}
}

func TestAWrongSettingIsRefused(t *testing.T) {
	for _, c := range []struct {
		name, text string
		code       session.Code
	}{
		{"SLIPWAY_GPU_QUANTUM", "0", "server_start_invalid"},
		{"SLIPWAY_GPU_QUANTUM", "1.5", "server_start_invalid"},
		{"SLIPWAY_GPU_STRATEGY", "random", "server_start_invalid"},
		{"SLIPWAY_GPU_FRAGMENTS", "yes", "server_start_invalid"},
		{"SLIPWAY_GPU_RESERVE", "much", "server_start_invalid"},
		{"SLIPWAY_SESSION_PROCESSES", "63", "server_start_invalid"},
		{"SLIPWAY_SESSION_PROCESSES", "-1", "server_start_invalid"},
		{"SLIPWAY_SESSION_PROCESSES", "many", "server_start_invalid"},
		{"SLIPWAY_SESSION_PROCESSES", "9000000", "server_start_invalid"},
		{"SLIPWAY_SESSION_WARM", "-1", "server_start_invalid"},
		{"SLIPWAY_SESSION_WARM", "9", "server_start_invalid"},
		{"SLIPWAY_IDLE_LIFETIME", "long", "server_start_invalid"},
		{"SLIPWAY_IDLE_NETWORK", "5s", "server_start_invalid"},
		{"SLIPWAY_IDLE_GPU", "low", "server_start_invalid"},
		{"SLIPWAY_IDLE_CPU", "5", "server_start_invalid"},
		{"SLIPWAY_IDLE_ANY", "1", "server_start_invalid"},
		{"SLIPWAY_GPU_GUARD", "kill", "server_start_invalid"},
		{"SLIPWAY_IMAGES_RECEIVE_MOST", "0", "server_start_invalid"},
		{"SLIPWAY_IMAGES_RECEIVE_SIZE", "much", "server_start_invalid"},
		{"SLIPWAY_IMAGES_RECEIVE_KEEP", "long", "server_start_invalid"},
	} {
		if _, err := read(map[string]string{c.name: c.text}); session.CodeOf(err) != c.code {
			t.Errorf("%s=%s: %v; want %s", c.name, c.text, err, c.code)
		}
	}
}
