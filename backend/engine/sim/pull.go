package sim

import (
	"context"
	"math"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

const (
	pullDelay = 600 * time.Millisecond // until the first byte
	pullEvery = 250 * time.Millisecond // between two reports
	pullRate  = 48 * gpu.MiB           // bytes a second
	unpack    = 900 * time.Millisecond // after the last byte
)

// Pull implements [engine.Images]: layers arrive one after the other, at a varying rate. Its registry is public.
func (s *images) Pull(ctx context.Context, ref string, _ bool, progress func(session.Pull)) (private bool, err error) {
	if err := s.check(ctx); err != nil {
		return false, err
	}
	image, ok := s.published(ref)
	if !ok {
		return false, session.Because(session.CodePullNotFound,
			session.Say("simPullNotFound", session.Fill("image", ref)), session.Say("simPullNotFoundHint")).Failure(nil)
	}
	if err := s.pause(ctx, pullDelay); err != nil {
		return false, err
	}
	told := session.Pull{Total: image.download(), Layers: len(image.Layers)}
	progress(told)
	for tick := 0; told.Current < told.Total; tick++ {
		if err := s.pause(ctx, pullEvery); err != nil {
			return false, err
		}
		rate := gpu.Bytes(float64(pullRate) * (1 + 0.25*math.Sin(float64(tick)/5) - 0.1*math.Cos(float64(tick)*1.7)))
		told.Current = min(told.Total, told.Current+rate*gpu.Bytes(pullEvery/time.Millisecond)/1000)
		told.Rate, told.LayersDone = gpu.Bytes(float64(rate)*s.config.Speed), 0
		for left := told.Current; told.LayersDone < told.Layers && left >= image.Layers[told.LayersDone]; {
			left -= image.Layers[told.LayersDone]
			told.LayersDone++
		}
		progress(told)
	}
	if err := s.pause(ctx, unpack); err != nil {
		return false, err
	}
	s.mu.Lock()
	s.keep(image.describe())
	s.mu.Unlock()
	return false, s.save()
}
