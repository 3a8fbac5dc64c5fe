package demo

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// Turn is a launch that somebody makes some time after a demonstration began.
type Turn struct {
	After time.Duration // since its first moment
	Key   string
	Act   Act
	// Stays is after how long whoever launched it ends what is still there.
	Stays time.Duration
}

// How far apart launches are, after the first while that a story has to itself.
const (
	turnsBegin = 25 * time.Minute
	turnsEvery = 20 * time.Minute // at least
	turnsSway  = 40 * time.Minute // more, at most
	patience   = 3 * time.Hour    // with which a batch is waited for
)

// Turns are what people launch on a machine as time goes by, for as long as it does: their errands. Batches end by
// themselves, and what is worked in is ended.
func Turns(m Machine) iter.Seq[Turn] {
	return func(yield func(Turn) bool) {
		rng := rand.New(rand.NewPCG(m.Seed, 300))
		all := errands(m)
		after := turnsBegin
		for number := 1; ; number++ {
			after += time.Duration(rng.Int64N(int64(turnsSway/time.Second))) * time.Second
			e := all[rng.IntN(len(all))]
			length := time.Duration(10+rng.IntN(50)) * time.Minute
			turn := Turn{After: after, Key: fmt.Sprintf("%sturn-%d", keyPrefix, number), Act: e.act(number, length),
				Stays: length}
			if e.batch {
				turn.Stays += patience
			}
			if !yield(turn) {
				return
			}
			after += turnsEvery
		}
	}
}

// errand is a kind of work that people have done again and again.
type errand struct {
	owner, name, label string
	image              string
	batch              bool
	cpus               int
	memory             gpu.Bytes
	share              gpu.Share
}

// errands are what was done on a machine.
func errands(m Machine) []errand {
	if m.Name == LabAgent {
		return []errand{
			{"mina", "llm-tune", "lang", imageTorch, true, 16, 128 * gpu.GiB, 2 * gpu.WholeDevice},
			{Person, "vision-finetune", "vision", imageTorch, true, 8, 64 * gpu.GiB, gpu.WholeDevice},
			{"lena", "diffusion", "vision", imageNotebook, false, 8, 64 * gpu.GiB, 500},
			{"omar", "serve-whisper", "speech", imageTorch, false, 4, 24 * gpu.GiB, 500},
		}
	}
	return []errand{
		{Person, "explore", "churn", imageNotebook, false, 4, 12 * gpu.GiB, 500},
		{Person, "train-churn", "churn", imageTorch, true, 4, 16 * gpu.GiB, gpu.WholeDevice},
		{Person, "features", "churn", imagePython, true, 8, 16 * gpu.GiB, 0},
	}
}

// act is an errand as it is launched now.
func (e errand) act(number int, length time.Duration) Act {
	return Act{Owner: e.owner, Spec: e.spec(fmt.Sprintf("%s-r%d", e.name, number), length)}
}

// spec is an errand of a length.
func (e errand) spec(name string, length time.Duration) session.Spec {
	spec := desk(name, e.image, e.label, e.cpus, e.memory, gpu.Request{Shares: e.share})
	if e.batch {
		spec.Type, spec.Command = session.Batch, e.script(length)
		spec.Timeout = session.Duration(length + time.Hour)
	}
	if e.share >= gpu.WholeDevice {
		spec.Accelerator = gpu.Request{Devices: int(e.share / gpu.WholeDevice)}
	}
	return spec
}

// script is the command of an errand that is a batch.
func (e errand) script(length time.Duration) string {
	if e.share == 0 {
		return features(e.cpus, e.memory, length)
	}
	return training(e.cpus, e.memory, length)
}

// Player launches and ends; an agent is one.
type Player interface {
	Launcher
	Terminate(ctx context.Context, id session.ID, force bool) (session.Session, error)
}

// leaving is when somebody ends a session that was launched in a turn.
type leaving struct {
	after   time.Duration
	session session.ID
}

// KeepPlaying launches what people launch on a machine as time goes by, and ends what they leave, until ctx ends.
// Launches that were due while a demonstration that is kept was not served are left out.
func KeepPlaying(ctx context.Context, on Player, m Machine) error {
	clock := m.Time.Clock()
	await := func(after time.Duration) error { return clock.Pause(ctx, clock.Until(m.Time.First.Add(after))) }
	from := clock.Since(m.Time.First)
	var leave []leaving
	for turn := range Turns(m) {
		for ; len(leave) > 0 && leave[0].after <= turn.After; leave = leave[1:] {
			if await(leave[0].after) != nil {
				return nil // the demonstration is over
			}
			_, _ = on.Terminate(ctx, leave[0].session, false) // most have ended by themselves
		}
		req := turn.Act.request(turn.Key)
		leave = append(leave, leaving{turn.After + turn.Stays, m.NewID(req)})
		slices.SortFunc(leave, func(a, b leaving) int { return cmp.Compare(a.after, b.after) })
		if turn.After < from {
			continue
		}
		if await(turn.After) != nil {
			return nil // as above
		}
		if err := turn.Act.launch(ctx, on, turn.Key); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}
