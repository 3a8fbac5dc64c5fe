package backend

import (
	"fmt"
	"strconv"
	"time"

	"slipway/backend/layers"
	"slipway/backend/session"
	"slipway/gpu"
)

// receiving reads from the environment what one person may have on the way to
// this machine:
//
//	SLIPWAY_IMAGES_RECEIVE_MOST   images at a time; usually 4
//	SLIPWAY_IMAGES_RECEIVE_SIZE   of all of them together; usually 100g
//	SLIPWAY_IMAGES_RECEIVE_KEEP   how long one is kept that stopped arriving; usually 7d
func receiving(env func(string) string) (layers.Quota, error) {
	var quota layers.Quota
	wrong := func(name, hint string) error {
		return &session.Error{Code: "agent_open_invalid", Message: fmt.Sprintf("%s=%s is not valid.", name, env(name)),
			Hint: hint}
	}
	if text := env("SLIPWAY_IMAGES_RECEIVE_MOST"); text != "" {
		most, err := strconv.Atoi(text)
		if err != nil || most < 1 {
			return quota, wrong("SLIPWAY_IMAGES_RECEIVE_MOST", "Write a number of images, for example 4.")
		}
		quota.Images = most
	}
	if text := env("SLIPWAY_IMAGES_RECEIVE_SIZE"); text != "" {
		size, err := gpu.ParseBytes(text)
		if err != nil || size <= 0 {
			return quota, wrong("SLIPWAY_IMAGES_RECEIVE_SIZE", "Write an amount, for example 100g.")
		}
		quota.Size = size
	}
	var keep session.Duration
	if err := keep.UnmarshalText([]byte(env("SLIPWAY_IMAGES_RECEIVE_KEEP"))); err != nil {
		return quota, wrong("SLIPWAY_IMAGES_RECEIVE_KEEP", "Write a whole number with s, m, h, d or w, for example 7d.")
	}
	quota.Keep = time.Duration(keep)
	return quota, nil
}
