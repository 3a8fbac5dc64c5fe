package backend

import (
	"reflect"
	"testing"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

func TestSessionsAreReclaimedAsTheEnvironmentSays(t *testing.T) {
	read := func(env map[string]string) (session.IdlePolicy, gpu.Policy, error) {
		return reclaiming(func(name string) string { return env[name] })
	}
	five := 5.0
	policy, guard, err := read(map[string]string{"SLIPWAY_IDLE_LIFETIME": "2d", "SLIPWAY_IDLE_WINDOW": "30m",
		"SLIPWAY_IDLE_GPU": "5", "SLIPWAY_IDLE_ANY": "1", "SLIPWAY_GPU_GUARD": "end-session"})
	want := session.IdlePolicy{Lifetime: session.Duration(48 * time.Hour),
		Use: session.UsePolicy{Window: session.Duration(30 * time.Minute), GPU: &five, Any: true}}
	if err != nil || !reflect.DeepEqual(policy, want) || guard != gpu.PolicyEndSession {
		t.Errorf("got %+v, %s, %v; want %+v", policy, guard, err, want)
	}
	if _, guard, err := read(map[string]string{"SLIPWAY_GPU_GUARD": "end-process"}); err != nil ||
		guard != gpu.PolicyEndProcess {
		t.Errorf("got %s, %v", guard, err)
	}
	if policy, guard, err := read(nil); err != nil || !reflect.DeepEqual(policy, session.IdlePolicy{}) || guard != "" {
		t.Errorf("an empty environment gives %+v, %q, %v", policy, guard, err)
	}
	for name, text := range map[string]string{"SLIPWAY_IDLE_LIFETIME": "long", "SLIPWAY_IDLE_NETWORK": "5s",
		"SLIPWAY_IDLE_GPU": "low", "SLIPWAY_IDLE_CPU": "5", "SLIPWAY_IDLE_ANY": "1", "SLIPWAY_GPU_GUARD": "kill"} {
		if _, _, err := read(map[string]string{name: text}); session.CodeOf(err) != "agent_open_invalid" {
			t.Errorf("%s=%s: %v", name, text, err)
		}
	}
}
