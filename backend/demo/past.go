package demo

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"slipway/backend/agent/launch"
	enginesim "slipway/backend/engine/sim"
	"slipway/backend/session"
	"slipway/gpu"
	"slipway/gpu/sim"
)

// pastDays is how far the past of a demonstration reaches back.
const pastDays = 30

// pastEvery is the time between two samples of the past: as long as one may speak
// for with certainty.
const pastEvery = 10 * time.Second

// errand is a kind of work that people have done again and again.
type errand struct {
	owner, name, label string
	image              string
	batch              bool
	cpus               int
	memory             gpu.Bytes
	share              gpu.Share
	kind               sim.Kind
}

// errands are what was done on a machine.
func errands(m Machine) []errand {
	if m.Name == LabAgent {
		return []errand{
			{"mina", "llm-tune", "lang", imageTorch, true, 16, 128 * gpu.GiB, 2 * gpu.WholeDevice, sim.Training},
			{Person, "vision-finetune", "vision", imageTorch, true, 8, 64 * gpu.GiB, gpu.WholeDevice, sim.Training},
			{"lena", "diffusion", "vision", imageNotebook, false, 8, 64 * gpu.GiB, 500, sim.Notebook},
			{"omar", "serve-whisper", "speech", imageTorch, false, 4, 24 * gpu.GiB, 500, sim.Serving},
		}
	}
	return []errand{
		{Person, "explore", "churn", imageNotebook, false, 4, 12 * gpu.GiB, 500, sim.Notebook},
		{Person, "train-churn", "churn", imageTorch, true, 4, 16 * gpu.GiB, gpu.WholeDevice, sim.Training},
		{Person, "features", "churn", imagePython, true, 8, 16 * gpu.GiB, 0, sim.Holding},
	}
}

// pastOf is what people did on a machine in the 30 days before now. The machine was
// started anew for each session; what its devices did then is simulated as it is
// in the present. dir is the folder of its agent.
func pastOf(m Machine, dir string, now time.Time) (history, error) {
	before := history{Agent: m.Name, Dir: dir, CPUs: m.CPUs, Memory: m.Memory}
	p := &past{machine: m, rng: rand.New(rand.NewPCG(m.Seed, 200)), pulled: map[string]bool{}}
	p.devices = sim.Open(sim.Config{Seed: m.Seed, Cards: m.Cards, Clock: func() gpu.Moment { return p.clock }})
	inventory, err := p.devices.Inventory(context.Background())
	if err != nil {
		return before, err
	}
	before.Devices = inventory
	today := now.UTC().Truncate(24 * time.Hour)
	before.Ended = func(yield func(endedSession) bool) {
		for day := pastDays; day > 0; day-- {
			at := today.AddDate(0, 0, -day)
			if at.Weekday() == time.Saturday || at.Weekday() == time.Sunday {
				continue
			}
			if !yield(p.ended(at.Add(8*time.Hour + some(p.rng, 9*time.Hour)))) {
				return
			}
		}
	}
	return before, nil
}

// past makes up one session after the other.
type past struct {
	machine Machine
	rng     *rand.Rand
	devices *sim.Machine
	clock   gpu.Moment
	number  int
	pulled  map[string]bool // images that were used before
}

// text draws a text of n of the letters.
func (p *past) text(letters string, n int) string {
	text := make([]byte, n)
	for i := range text {
		text[i] = letters[p.rng.IntN(len(letters))]
	}
	return string(text)
}

// ended is a session that was launched at a time.
func (p *past) ended(at time.Time) endedSession {
	all := errands(p.machine)
	e := all[p.rng.IntN(len(all))]
	p.number++
	length := time.Duration(8+p.rng.IntN(32)) * time.Minute
	one := endedSession{
		ID: session.ID(p.text("abcdefghijklmnopqrstuvwxyz", 1) + p.text("abcdefghijklmnopqrstuvwxyz234567", 11)),
		At: at, Ran: length,
		Launch: session.LaunchRequest{Owner: e.owner, Spec: e.spec(fmt.Sprintf("%s-%02d", e.name, p.number),
			length)},
		Container: p.text("0123456789abcdef", 64), Pinned: enginesim.Pinned(e.image),
	}
	if e.batch {
		p.batch(e, length, &one)
	} else {
		p.desk(e, &one)
	}
	one.CPU = time.Duration((0.3 + 0.5*p.rng.Float64()) * float64(e.cpus) * float64(one.Ran))
	steps := p.steps(e.image, one.Asked != "")
	one.Took = func(step string) time.Duration { return steps[step] }
	number := p.number
	one.Samples = func(s session.Session) iter.Seq[gpu.Sample] { return p.samples(number, s, e.kind) }
	return one
}

// desk is what a person worked in until they ended it.
func (p *past) desk(e errand, one *endedSession) {
	one.Asked, one.ExitCode, one.Ran = session.ReasonUser, 143, one.Ran+some(p.rng, time.Minute)
	seed, ran := p.rng.Uint64(), one.Ran
	one.Log = func(started time.Time) []logLine {
		rng := rand.New(rand.NewPCG(seed, 201))
		if e.kind == sim.Serving {
			return served(rng, ran)
		}
		return noted(rng, started, ran)
	}
}

// batch is what ran until it was done, or, one in six, until it failed.
func (p *past) batch(e errand, length time.Duration, one *endedSession) {
	log := func(ran time.Duration, broken int) func(time.Time) []logLine {
		return func(time.Time) []logLine {
			if e.share == 0 {
				return extracted(length, ran)
			}
			return trained(length, ran, broken)
		}
	}
	one.Log = log(length, 0)
	spec := &one.Launch.Spec
	switch fate := p.rng.IntN(12); {
	case fate == 0 && e.share > 0:
		broken := epochs(length)/2 + 1
		spec.Command = training(e.cpus, e.memory, length, broken)
		one.Ran, one.ExitCode = time.Duration(broken-1)*epochLength+time.Second, 1
		one.Log = log(one.Ran, broken)
	case fate == 0:
		spec.Command = tooLarge(e.memory)
		one.Ran, one.ExitCode, one.OOM = 20*time.Second+some(p.rng, 20*time.Second), 137, true
		one.Log = func(time.Time) []logLine { return []logLine{{Text: loading(e.memory)}} }
	case fate == 1:
		one.Ran = (length / 2).Truncate(time.Minute)
		spec.Timeout, one.Asked, one.ExitCode = session.Duration(one.Ran), session.ReasonTaskTimeout, 143
		one.Log = log(one.Ran, 0)
	}
}

// steps is how long each step of a session's way took. Who uses an image first
// pulls it.
func (p *past) steps(image string, asked bool) map[string]time.Duration {
	between := func(least, most int) time.Duration {
		return time.Duration(least+p.rng.IntN(most-least)) * time.Millisecond
	}
	took := map[string]time.Duration{
		launch.StepImage: between(1, 4), launch.StepNetwork: between(1, 3), launch.StepCreate: between(280, 450),
		launch.StepStart: between(280, 420), launch.StepGuest: between(120, 180),
		launch.StepStop: between(1, 2), launch.StepLogs: between(1, 6), launch.StepRemove: between(150, 200),
	}
	if asked {
		took[launch.StepStop] = between(90, 180)
	}
	if !p.pulled[image] {
		p.pulled[image], took[launch.StepPull] = true, between(14_000, 52_000)
	}
	return took
}

// samples runs the devices from the start of a session to a moment after its end.
func (p *past) samples(number int, s session.Session, kind sim.Kind) iter.Seq[gpu.Sample] {
	boot, container, length := fmt.Sprintf("past-%d", number), s.Kernels[0].Container, s.TerminatedAt.Sub(*s.StartedAt)
	read := func(gone time.Duration) (gpu.Sample, error) {
		up := time.Minute + gone
		p.clock = gpu.Moment{BootID: boot, Boot: up, Awake: up, Wall: s.StartedAt.Add(gone)}
		return p.devices.Sample(context.Background())
	}
	return func(yield func(gpu.Sample) bool) {
		for gone := time.Duration(0); gone < length; gone += pastEvery {
			if sample, err := read(gone); err != nil || !yield(sample) {
				return
			}
			if gone == 0 {
				p.devices.RunGranted(container, kind, s.Grants.GPUs)
			}
		}
		if sample, err := read(length); err != nil || !yield(sample) {
			return
		}
		p.devices.EndContainer(container)
		if sample, err := read(length + pastEvery); err == nil {
			yield(sample)
		}
	}
}
