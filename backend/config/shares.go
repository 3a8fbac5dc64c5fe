package config

import (
	"strings"

	"slipway/gpu"
)

// shares reads how shares of devices are allocated:
//
//	SLIPWAY_GPU_QUANTUM   smallest share, for example 0.25; usually 0.1
//	SLIPWAY_GPU_STRATEGY  fill: one device after the other; evenly, as usual: the smallest part that suffices
//	SLIPWAY_GPU_FRAGMENTS 1: more than one device may be pieced together from unequal leftovers
//	SLIPWAY_GPU_RESERVE   memory of each device that is never allocated, for example 1g
//	SLIPWAY_GPU_EXCLUDE   UUIDs of devices that are never allocated, separated by commas
//
// Fragments are off, unlike in Backend.AI: what runs on several devices at once waits for the smallest of its parts, so
// that equal parts on devices that have room are what a person wants, and a wait that says why is better than parts of
// 1, 0.3 and 0.2. A share of one device or less stays on one in any case.
func (r *reader) shares() (config gpu.Config) {
	set(r, "SLIPWAY_GPU_QUANTUM", "Write a share of one device, for example 0.1.", &config.Quantum,
		func(text string) (gpu.Share, bool) {
			share, err := gpu.ParseShare(text)
			return share, err == nil && share >= 1 && share <= gpu.WholeDevice
		})
	config.Strategy = word(r, "SLIPWAY_GPU_STRATEGY", "Write fill or evenly.", gpu.Fill, gpu.Evenly)
	config.AllowFragmentation = word(r, "SLIPWAY_GPU_FRAGMENTS", "Write 1 to allow them, or 0.", "0", "1") == "1"
	set(r, "SLIPWAY_GPU_RESERVE", "Write an amount of memory, for example 1g.", &config.Floor, parseBytes)
	for uuid := range strings.FieldsFuncSeq(r.env("SLIPWAY_GPU_EXCLUDE"),
		func(r rune) bool { return r == ',' || r == ' ' }) {
		config.Exclude = append(config.Exclude, gpu.UUID(uuid))
	}
	return config
}
