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

// Pull implements [engine.ImageStore]: layers arrive three at a time, at a rate
// that sways as networks do. Its registry is open to everybody.
func (s *images) Pull(ctx context.Context, ref string, _ bool, progress func(session.Pull)) (private bool, err error) {
	return false, s.pull(ctx, ref, progress)
}

func (s *images) pull(ctx context.Context, ref string, progress func(session.Pull)) error {
	if err := s.check(ctx); err != nil {
		return err
	}
	image, ok := s.published(ref)
	if !ok {
		return session.Because(session.CodePullNotFound, session.Say("simPullNotFound", session.Fill("image", ref)),
			session.Say("simPullNotFoundHint")).Failure(nil)
	}
	if err := s.pause(ctx, pullDelay); err != nil {
		return err
	}
	d := &download{left: append([]gpu.Bytes{}, image.Layers...), total: image.download()}
	progress(d.report(0))
	for tick := 0; d.current < d.total; tick++ {
		if err := s.pause(ctx, pullEvery); err != nil {
			return err
		}
		rate := gpu.Bytes(float64(pullRate) * (1 + 0.25*math.Sin(float64(tick)/5) - 0.1*math.Cos(float64(tick)*1.7)))
		d.receive(rate * gpu.Bytes(pullEvery/time.Millisecond) / 1000)
		progress(d.report(gpu.Bytes(float64(rate) * s.config.Speed)))
	}
	if err := s.pause(ctx, unpack); err != nil {
		return err
	}
	s.mu.Lock()
	s.pulled[image.Ref] = true
	s.mu.Unlock()
	return s.save()
}

// download is a pull under way.
type download struct {
	left           []gpu.Bytes
	done           int
	current, total gpu.Bytes
}

// receive spreads n bytes over the layers that are under way.
func (d *download) receive(n gpu.Bytes) {
	const together = 3
	for n > 0 && d.current < d.total {
		active := 0
		for i := range d.left {
			if d.left[i] > 0 && active < together {
				active++
			}
		}
		share := max(n/gpu.Bytes(active), 1)
		for i := range d.left {
			if d.left[i] == 0 || active == 0 || n == 0 {
				continue
			}
			active--
			part := min(share, d.left[i], n)
			d.left[i] -= part
			d.current += part
			n -= part
			if d.left[i] == 0 {
				d.done++
			}
		}
	}
}

func (d *download) report(rate gpu.Bytes) session.Pull {
	return session.Pull{Current: d.current, Total: d.total, Rate: rate, LayersDone: d.done, Layers: len(d.left)}
}
