package backend

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"slipway/backend/session"
	"slipway/gpu"
)

// bounds reads what sessions may take of the machine that is not booked:
//
//	SLIPWAY_SESSION_PROCESSES  most processes and threads in a container; 0: no limit; usually 4096
//	SLIPWAY_GPU_MPS            1: people who do not rule the agent may use MPS
//
// It fails with agent_open_invalid.
func bounds(env func(string) string) (processes int, mps bool, err error) {
	processes = session.DefaultProcesses
	if text := env("SLIPWAY_SESSION_PROCESSES"); text != "" {
		processes, err = strconv.Atoi(text)
		if err != nil || processes != 0 && processes < session.MinProcesses || processes > session.MaxProcesses {
			return 0, false, &session.Error{Code: "agent_open_invalid",
				Message: fmt.Sprintf("SLIPWAY_SESSION_PROCESSES=%s is not understood.", text),
				Hint: fmt.Sprintf("Write a number from %d to %d, or 0 for no limit.", session.MinProcesses,
					session.MaxProcesses)}
		}
	}
	return processes, env("SLIPWAY_GPU_MPS") == "1", nil
}

// reclaiming reads from the environment what happens to sessions that idle, or
// that take more of a device's memory than their share:
//
//	SLIPWAY_IDLE_LIFETIME, _NETWORK, _WINDOW, _GRACE     lengths of time such as 4h
//	SLIPWAY_IDLE_CPU, _MEMORY, _GPU, _VRAM               thresholds in percent
//	SLIPWAY_IDLE_ANY                                     1: one threshold is enough
//	SLIPWAY_GPU_GUARD                                    warn, as usual; end-process: the newest on the device; or
//
// end-session
//
// Nothing is reclaimed where nothing is said. It fails with
// agent_open_invalid rather than to reclaim otherwise than was meant.
func reclaiming(env func(string) string) (session.IdlePolicy, gpu.Policy, error) {
	var policy session.IdlePolicy
	wrong := func(name, hint string) error {
		return &session.Error{Code: "agent_open_invalid", Message: fmt.Sprintf("%s=%s is not understood.", name,
			env(name)), Hint: hint}
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
		err = &session.Error{Code: "agent_open_invalid",
			Message: "The policy of SLIPWAY_IDLE variables cannot be used: " + faults[0].Message, Hint: faults[0].Hint}
	}
	guard := gpu.Policy(env("SLIPWAY_GPU_GUARD"))
	if !slices.Contains([]gpu.Policy{"", gpu.PolicyWarn, gpu.PolicyEndProcess, gpu.PolicyEndSession}, guard) {
		err = errors.Join(err, wrong("SLIPWAY_GPU_GUARD", "Write warn, end-process or end-session."))
	}
	return policy, guard, err
}
