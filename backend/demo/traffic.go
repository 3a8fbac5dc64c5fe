package demo

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// Turn is a launch that somebody makes some time after a demonstration began.
type Turn struct {
	After time.Duration // since its first moment
	Key   string
	Act   Act
}

// How far apart launches are, after the first while that a story has to itself.
const (
	turnsBegin = 25 * time.Minute
	turnsEvery = 20 * time.Minute // at least
	turnsSway  = 40 * time.Minute // more, at most
)

// Turns are what people launch on a machine as time goes by, for as long as it
// does: their errands, which end by themselves.
func Turns(m Machine) iter.Seq[Turn] {
	return func(yield func(Turn) bool) {
		rng := rand.New(rand.NewPCG(m.Seed, 300))
		all := errands(m)
		after := turnsBegin
		for number := 1; ; number++ {
			after += time.Duration(rng.Int64N(int64(turnsSway/time.Second))) * time.Second
			e := all[rng.IntN(len(all))]
			length := time.Duration(10+rng.IntN(50)) * time.Minute
			if !yield(Turn{After: after, Key: fmt.Sprintf("%sturn-%d", keyPrefix, number), Act: e.act(number, length)}) {
				return
			}
			after += turnsEvery
		}
	}
}

// act is an errand as it is launched now.
func (e errand) act(number int, length time.Duration) Act {
	spec := desk(fmt.Sprintf("%s-r%d", e.name, number), e.image, e.label, e.cpus, e.memory, gpu.Request{Shares: e.share})
	spec.Idle = &session.IdlePolicy{Network: session.Duration(length)}
	if e.batch {
		spec.Type, spec.Command = session.Batch, training(e.cpus, e.memory, length)
		spec.Idle, spec.Timeout = nil, session.Duration(length+time.Hour)
	}
	if e.share >= gpu.WholeDevice {
		spec.Accelerator = gpu.Request{Devices: int(e.share / gpu.WholeDevice)}
	}
	return Act{Owner: e.owner, Spec: spec}
}

// KeepPlaying launches what people launch on a machine as time goes by, until ctx
// ends. What was due while a demonstration that is kept was not served is left
// out.
func KeepPlaying(ctx context.Context, on Launcher, m Machine) error {
	clock := m.Time.Clock()
	from := clock.Since(m.Time.First)
	for turn := range Turns(m) {
		if turn.After < from {
			continue
		}
		if err := clock.Pause(ctx, clock.Until(m.Time.First.Add(turn.After))); err != nil {
			return nil //nolint:nilerr // the demonstration is over
		}
		if err := turn.Act.launch(ctx, on, turn.Key); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}
