package backend

import (
	"testing"
	"time"

	"slipway/backend/layers"
	"slipway/backend/session"
	"slipway/gpu"
)

func TestWhatMayBeOnTheWayIsAsTheEnvironmentSays(t *testing.T) {
	read := func(env map[string]string) (layers.Quota, error) {
		return receiving(func(name string) string { return env[name] })
	}
	got, err := read(map[string]string{"SLIPWAY_IMAGES_RECEIVE_MOST": "2", "SLIPWAY_IMAGES_RECEIVE_SIZE": "1g",
		"SLIPWAY_IMAGES_RECEIVE_KEEP": "1d"})
	if want := (layers.Quota{Images: 2, Size: gpu.GiB, Keep: 24 * time.Hour}); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := read(nil); err != nil || got != (layers.Quota{}) {
		t.Errorf("an empty environment gives %+v, %v", got, err)
	}
	for name, text := range map[string]string{"SLIPWAY_IMAGES_RECEIVE_MOST": "0", "SLIPWAY_IMAGES_RECEIVE_SIZE": "much",
		"SLIPWAY_IMAGES_RECEIVE_KEEP": "long"} {
		if _, err := read(map[string]string{name: text}); session.CodeOf(err) != "agent_open_invalid" {
			t.Errorf("%s=%s: %v", name, text, err)
		}
	}
}
