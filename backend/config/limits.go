package config

import (
	"fmt"
	"strconv"
	"time"

	"slipway/backend/layers"
	"slipway/backend/session"
	"slipway/gpu"
)

// processes reads SLIPWAY_SESSION_PROCESSES, the most processes and threads in a container; 0: no limit; usually 4096.
func (r *reader) processes() int {
	most := session.DefaultProcesses
	set(r, "SLIPWAY_SESSION_PROCESSES", fmt.Sprintf("Write a number from %d to %d, or 0 for no limit.",
		session.MinProcesses, session.MaxProcesses), &most, func(text string) (int, bool) {
		n, err := strconv.Atoi(text)
		return n, err == nil && (n == 0 || n >= session.MinProcesses && n <= session.MaxProcesses)
	})
	return most
}

// idle reads when sessions are ended that are not used:
//
//	SLIPWAY_IDLE_LIFETIME, _NETWORK, _WINDOW, _GRACE     lengths of time such as 4h
//	SLIPWAY_IDLE_CPU, _MEMORY, _GPU, _VRAM               thresholds in percent
//	SLIPWAY_IDLE_ANY                                     1: one threshold is enough
//
// Without any of them no session is ended.
func (r *reader) idle() (policy session.IdlePolicy) {
	before := len(r.errs)
	r.length("SLIPWAY_IDLE_LIFETIME", "4h", &policy.Lifetime)
	r.length("SLIPWAY_IDLE_NETWORK", "4h", &policy.Network)
	r.length("SLIPWAY_IDLE_WINDOW", "4h", &policy.Use.Window)
	r.length("SLIPWAY_IDLE_GRACE", "4h", &policy.Use.Grace)
	percent := func(name string, into **float64) {
		set(r, name, "Write a percentage, for example 5.", into, func(text string) (*float64, bool) {
			value, err := strconv.ParseFloat(text, 64)
			return &value, err == nil
		})
	}
	percent("SLIPWAY_IDLE_CPU", &policy.Use.CPU)
	percent("SLIPWAY_IDLE_MEMORY", &policy.Use.Memory)
	percent("SLIPWAY_IDLE_GPU", &policy.Use.GPU)
	percent("SLIPWAY_IDLE_VRAM", &policy.Use.VRAM)
	policy.Use.Any = r.env("SLIPWAY_IDLE_ANY") == "1"
	if faults := policy.Validate(""); len(r.errs) == before && len(faults) > 0 {
		r.errs = append(r.errs, &session.Error{Code: session.CodeServerInvalid, Hint: faults[0].Hint,
			Message: "The policy of SLIPWAY_IDLE variables cannot be used: " + faults[0].Message})
	}
	return policy
}

// guard reads SLIPWAY_GPU_GUARD, what happens to a session that takes more of a device's memory than its share: warn,
// as usual; end-process: the newest on the device; or end-session.
func (r *reader) guard() gpu.Policy {
	return word(r, "SLIPWAY_GPU_GUARD", "Write warn, end-process or end-session.", gpu.PolicyWarn,
		gpu.PolicyEndProcess, gpu.PolicyEndSession)
}

// images reads what images one person may have on the way to this machine:
//
//	SLIPWAY_IMAGES_RECEIVE_MOST   images at a time; usually 4
//	SLIPWAY_IMAGES_RECEIVE_SIZE   of all of them together; usually 100g
//	SLIPWAY_IMAGES_RECEIVE_KEEP   how long one is kept that stopped arriving; usually 7d
func (r *reader) images() (quota layers.Quota) {
	set(r, "SLIPWAY_IMAGES_RECEIVE_MOST", "Write a number of images, for example 4.", &quota.Images,
		func(text string) (int, bool) {
			most, err := strconv.Atoi(text)
			return most, err == nil && most >= 1
		})
	set(r, "SLIPWAY_IMAGES_RECEIVE_SIZE", "Write an amount, for example 100g.", &quota.Size,
		func(text string) (gpu.Bytes, bool) {
			size, ok := parseBytes(text)
			return size, ok && size > 0
		})
	var keep session.Duration
	r.length("SLIPWAY_IMAGES_RECEIVE_KEEP", "7d", &keep)
	quota.Keep = time.Duration(keep)
	return quota
}
