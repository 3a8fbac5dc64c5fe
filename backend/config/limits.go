package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"slipway/backend/layers"
	"slipway/backend/session"
	"slipway/gpu"
)

// readProcesses reads SLIPWAY_SESSION_PROCESSES, the most processes and threads
// in a container; 0: no limit; usually 4096.
func readProcesses(env func(string) string) (int, error) {
	text := env("SLIPWAY_SESSION_PROCESSES")
	if text == "" {
		return session.DefaultProcesses, nil
	}
	processes, err := strconv.Atoi(text)
	if err != nil || processes != 0 && processes < session.MinProcesses || processes > session.MaxProcesses {
		return 0, invalid(env, "SLIPWAY_SESSION_PROCESSES", fmt.Sprintf(
			"Write a number from %d to %d, or 0 for no limit.", session.MinProcesses, session.MaxProcesses))
	}
	return processes, nil
}

// readIdle reads when sessions are ended that are not used:
//
//	SLIPWAY_IDLE_LIFETIME, _NETWORK, _WINDOW, _GRACE     lengths of time such as 4h
//	SLIPWAY_IDLE_CPU, _MEMORY, _GPU, _VRAM               thresholds in percent
//	SLIPWAY_IDLE_ANY                                     1: one threshold is enough
//
// Without any of them no session is ended.
func readIdle(env func(string) string) (session.IdlePolicy, error) {
	var policy session.IdlePolicy
	length := func(name string, into *session.Duration) error {
		if err := into.UnmarshalText([]byte(env(name))); err != nil {
			return invalid(env, name, "Write a whole number with s, m, h, d or w, for example 4h.")
		}
		return nil
	}
	threshold := func(name string, into **float64) error {
		if env(name) == "" {
			return nil
		}
		value, err := strconv.ParseFloat(env(name), 64)
		if err != nil {
			return invalid(env, name, "Write a percentage, for example 5.")
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
		err = &session.Error{Code: session.CodeServerInvalid,
			Message: "The policy of SLIPWAY_IDLE variables cannot be used: " + faults[0].Message, Hint: faults[0].Hint}
	}
	return policy, err
}

// readGuard reads SLIPWAY_GPU_GUARD, what happens to a session that takes more of
// a device's memory than its share: warn, as usual; end-process: the newest on
// the device; or end-session.
func readGuard(env func(string) string) (gpu.Policy, error) {
	guard := gpu.Policy(env("SLIPWAY_GPU_GUARD"))
	if !slices.Contains([]gpu.Policy{"", gpu.PolicyWarn, gpu.PolicyEndProcess, gpu.PolicyEndSession}, guard) {
		return "", invalid(env, "SLIPWAY_GPU_GUARD", "Write warn, end-process or end-session.")
	}
	return guard, nil
}

// readImages reads what images one person may have on the way to this machine:
//
//	SLIPWAY_IMAGES_RECEIVE_MOST   images at a time; usually 4
//	SLIPWAY_IMAGES_RECEIVE_SIZE   of all of them together; usually 100g
//	SLIPWAY_IMAGES_RECEIVE_KEEP   how long one is kept that stopped arriving; usually 7d
func readImages(env func(string) string) (layers.Quota, error) {
	var quota layers.Quota
	if text := env("SLIPWAY_IMAGES_RECEIVE_MOST"); text != "" {
		most, err := strconv.Atoi(text)
		if err != nil || most < 1 {
			return quota, invalid(env, "SLIPWAY_IMAGES_RECEIVE_MOST", "Write a number of images, for example 4.")
		}
		quota.Images = most
	}
	if text := env("SLIPWAY_IMAGES_RECEIVE_SIZE"); text != "" {
		size, err := gpu.ParseBytes(text)
		if err != nil || size <= 0 {
			return quota, invalid(env, "SLIPWAY_IMAGES_RECEIVE_SIZE", "Write an amount, for example 100g.")
		}
		quota.Size = size
	}
	var keep session.Duration
	if err := keep.UnmarshalText([]byte(env("SLIPWAY_IMAGES_RECEIVE_KEEP"))); err != nil {
		return quota, invalid(env, "SLIPWAY_IMAGES_RECEIVE_KEEP",
			"Write a whole number with s, m, h, d or w, for example 7d.")
	}
	quota.Keep = time.Duration(keep)
	return quota, nil
}
