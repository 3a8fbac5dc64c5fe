package backend

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"slipway/backend/session"
	"slipway/gpu"
)

// reclaiming reads from the environment what happens to sessions that idle, or
// that take more of a device's memory than their share:
//
//	SLIPWAY_IDLE_LIFETIME, _NETWORK, _WINDOW, _GRACE     lengths of time such as 4h
//	SLIPWAY_IDLE_CPU, _MEMORY, _GPU, _VRAM               thresholds in percent
//	SLIPWAY_IDLE_ANY                                     1: one threshold is enough
//	SLIPWAY_GPU_GUARD                                    warn, as usual; end-process: the newest on the device; or end-session
//
// Nothing is reclaimed where nothing is said. It fails with
// agent_open_invalid rather than to reclaim otherwise than was meant.
func reclaiming(env func(string) string) (session.IdlePolicy, gpu.Policy, error) {
	var policy session.IdlePolicy
	wrong := func(name, hint string) error {
		return &session.Error{Code: "agent_open_invalid", Message: fmt.Sprintf("%s=%s is not understood.", name, env(name)), Hint: hint}
	}
	length := func(name string, into *session.Duration) error {
		if err := into.UnmarshalText([]byte(env(name))); err != nil {
			return wrong(name, "Write a whole number with s, m, h, d or w, for example 4h.")
		}
		return nil
	}
	threshold := func(name string, into **float64) error {
		if env(name) == "" {
			return nil
		}
		value, err := strconv.ParseFloat(env(name), 64)
		if err != nil {
			return wrong(name, "Write a percentage, for example 5.")
		}
		*into = &value
		return nil
	}
	err := errors.Join(
		length("SLIPWAY_IDLE_LIFETIME", &policy.Lifetime), length("SLIPWAY_IDLE_NETWORK", &policy.Network),
		length("SLIPWAY_IDLE_WINDOW", &policy.Use.Window), length("SLIPWAY_IDLE_GRACE", &policy.Use.Grace),
		threshold("SLIPWAY_IDLE_CPU", &policy.Use.CPU), threshold("SLIPWAY_IDLE_MEMORY", &policy.Use.Memory),
		threshold("SLIPWAY_IDLE_GPU", &policy.Use.GPU), threshold("SLIPWAY_IDLE_VRAM", &policy.Use.VRAM))
	policy.Use.Any = env("SLIPWAY_IDLE_ANY") == "1"
	if faults := policy.Validate(""); err == nil && len(faults) > 0 {
		err = &session.Error{Code: "agent_open_invalid", Message: "The policy of SLIPWAY_IDLE variables cannot be used: " + faults[0].Message, Hint: faults[0].Hint}
	}
	guard := gpu.Policy(env("SLIPWAY_GPU_GUARD"))
	if !slices.Contains([]gpu.Policy{"", gpu.PolicyWarn, gpu.PolicyEndProcess, gpu.PolicyEndSession}, guard) {
		err = errors.Join(err, wrong("SLIPWAY_GPU_GUARD", "Write warn, end-process or end-session."))
	}
	return policy, guard, err
}
