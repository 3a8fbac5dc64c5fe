package config

import (
	"fmt"
	"strings"

	"slipway/backend/session"
	"slipway/gpu"
)

// readShares reads how shares of devices are allocated:
//
//	SLIPWAY_GPU_QUANTUM   smallest share, for example 0.25; usually 0.1
//	SLIPWAY_GPU_STRATEGY  fill: one device after the other; evenly, as usual: the smallest part that suffices
//	SLIPWAY_GPU_FRAGMENTS 1: more than one device may be pieced together from unequal leftovers
//	SLIPWAY_GPU_RESERVE   memory of each device that is never allocated, for example 1g
//	SLIPWAY_GPU_EXCLUDE   UUIDs of devices that are never allocated, separated by commas
//
// Fragments are off, unlike in Backend.AI: what runs on several devices at once
// waits for the smallest of its parts, so that equal parts on devices that have
// room are what a person wants, and a wait that says why is better than parts
// of 1, 0.3 and 0.2. A share of one device or less stays on one in any case.
//
// It fails with server_start_invalid.
func readShares(env func(string) string) (gpu.Config, error) {
	var config gpu.Config
	wrong := func(name, hint string) error {
		return &session.Error{Code: session.CodeServerInvalid,
			Message: fmt.Sprintf("%s=%s is not valid.", name, env(name)), Hint: hint}
	}
	if text := env("SLIPWAY_GPU_QUANTUM"); text != "" {
		share, err := gpu.ParseShare(text)
		if err != nil || share < 1 || share > gpu.WholeDevice {
			return config, wrong("SLIPWAY_GPU_QUANTUM", "Write a share of one device, for example 0.1.")
		}
		config.Quantum = share
	}
	switch strategy := gpu.Strategy(env("SLIPWAY_GPU_STRATEGY")); strategy {
	case "", gpu.Fill, gpu.Evenly:
		config.Strategy = strategy
	default:
		return config, wrong("SLIPWAY_GPU_STRATEGY", "Write fill or evenly.")
	}
	switch env("SLIPWAY_GPU_FRAGMENTS") {
	case "", "0":
	case "1":
		config.AllowFragmentation = true
	default:
		return config, wrong("SLIPWAY_GPU_FRAGMENTS", "Write 1 to allow them, or 0.")
	}
	if text := env("SLIPWAY_GPU_RESERVE"); text != "" {
		amount, err := gpu.ParseBytes(text)
		if err != nil {
			return config, wrong("SLIPWAY_GPU_RESERVE", "Write an amount of memory, for example 1g.")
		}
		config.Floor = amount
	}
	for uuid := range strings.FieldsFuncSeq(env("SLIPWAY_GPU_EXCLUDE"),
		func(r rune) bool { return r == ',' || r == ' ' }) {
		config.Exclude = append(config.Exclude, gpu.UUID(uuid))
	}
	return config, nil
}
