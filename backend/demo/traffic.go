package demo

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// Launch launches a session, as an agent does.
type Launch func(ctx context.Context, req session.LaunchRequest) (session.Session, error)

// Play launches the sessions of a story in order. Each has a key, so that a demo that was kept launches none again.
func Play(ctx context.Context, launch Launch, acts []Act) error {
	for i, act := range acts {
		if err := act.play(ctx, launch, fmt.Sprintf("%s%d-%s", keyPrefix, i, act.Spec.Name)); err != nil {
			return err
		}
	}
	return nil
}

func (a Act) play(ctx context.Context, launch Launch, key string) error {
	if _, err := launch(ctx, a.request(key)); err != nil {
		return fmt.Errorf("launch %s: %w", a.Spec.Name, err)
	}
	return nil
}

func (a Act) request(key string) session.LaunchRequest {
	return session.LaunchRequest{Key: key, Owner: cmp.Or(a.Owner, Person), Spec: a.Spec}
}

// keyPrefix is the prefix of the keys of launches of a story.
const keyPrefix = "demo-"

// NewID returns the id of a new session. Those of a story follow from the seed.
func (m Machine) NewID(req session.LaunchRequest) session.ID {
	if !strings.HasPrefix(req.Key, keyPrefix) {
		return session.NewID()
	}
	const letters = "abcdefghijklmnopqrstuvwxyz234567"
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %s %s", m.Seed, m.Name, req.Owner, req.Key))
	id := make([]byte, 12)
	for i := range id {
		id[i] = letters[sum[i]%32]
	}
	if id[0] < 'a' {
		id[0] = 'a' + sum[12]%26
	}
	return session.ID(id)
}

// Turn is a launch at a time of the demo.
type Turn struct {
	After time.Duration // since the demo began
	Key   string
	Act   Act
	Stays time.Duration // after which its owner terminates it
}

// Times between launches, after the first acts of a story.
const (
	turnsBegin = 25 * time.Minute
	turnsEvery = 20 * time.Minute // minimum
	turnsSway  = 40 * time.Minute // maximum in addition
	patience   = 3 * time.Hour    // how much longer a batch session may wait and run
)

// Turns returns the launches on a machine, without end.
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

type errand struct {
	owner, name, label string
	image              string
	batch              bool
	cpus               int
	memory             gpu.Bytes
	share              gpu.Share
}

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

func (e errand) act(number int, length time.Duration) Act {
	spec := desk(fmt.Sprintf("%s-r%d", e.name, number), e.image, e.label, e.cpus, e.memory, share(e.share))
	if e.batch {
		script := training
		if e.share == 0 {
			script = features
		}
		spec.Type, spec.Command = session.Batch, script(e.cpus, e.memory, length)
		spec.Timeout = session.Duration(length + time.Hour)
	}
	if e.share >= gpu.WholeDevice {
		spec.Accelerator = devices(int(e.share / gpu.WholeDevice))
	}
	return Act{Owner: e.owner, Spec: spec}
}

// Player launches and terminates sessions, as an agent does.
type Player interface {
	Launch(ctx context.Context, req session.LaunchRequest) (session.Session, error)
	Terminate(ctx context.Context, id session.ID, force bool) (session.Session, error)
}

// leaving is when the owner of a session terminates it.
type leaving struct {
	after   time.Duration
	session session.ID
}

// KeepPlaying launches and terminates sessions on a machine until ctx ends. It skips launches that were due while the
// demo was not served.
func KeepPlaying(ctx context.Context, on Player, m Machine) error {
	clock := m.Time.Clock()
	await := func(after time.Duration) error { return clock.Pause(ctx, clock.Until(m.Time.First.Add(after))) }
	from := clock.Since(m.Time.First)
	var leave []leaving
	for turn := range Turns(m) {
		for ; len(leave) > 0 && leave[0].after <= turn.After; leave = leave[1:] {
			if await(leave[0].after) != nil {
				return nil // the demo has ended
			}
			_, _ = on.Terminate(ctx, leave[0].session, false) // most have ended already
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
		if err := turn.Act.play(ctx, on.Launch, turn.Key); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}
