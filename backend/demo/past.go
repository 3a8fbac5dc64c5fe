package demo

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"slipway/backend/agent"
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

// Past is what people did on a machine in the 30 days before now, oldest first.
// The machine was started anew for each session; what its devices did then is
// simulated as it is in the present.
func Past(m Machine, now time.Time) (iter.Seq[agent.Ended], error) {
	p := &past{machine: m, rng: rand.New(rand.NewPCG(m.Seed, 200))}
	p.devices = sim.Open(sim.Config{Seed: m.Seed, Cards: m.Cards, Clock: func() gpu.Moment { return p.clock }})
	inventory, err := p.devices.Inventory(context.Background())
	if err != nil {
		return nil, err
	}
	p.inventory = inventory
	today := now.UTC().Truncate(24 * time.Hour)
	return func(yield func(agent.Ended) bool) {
		for day := pastDays; day > 0; day-- {
			at := today.AddDate(0, 0, -day)
			if at.Weekday() == time.Saturday || at.Weekday() == time.Sunday {
				continue
			}
			if !yield(p.ended(at.Add(8*time.Hour + time.Duration(p.rng.IntN(9*3600))*time.Second))) {
				return
			}
		}
	}, nil
}

// past makes up one session after the other.
type past struct {
	machine   Machine
	rng       *rand.Rand
	devices   *sim.Machine
	inventory []gpu.Device
	clock     gpu.Moment
	number    int
}

// text draws a text of n of the letters.
func (p *past) text(letters string, n int) string {
	text := make([]byte, n)
	for i := range text {
		text[i] = letters[p.rng.IntN(len(letters))]
	}
	return string(text)
}

// ended is a session that began at a time.
func (p *past) ended(began time.Time) agent.Ended {
	all := errands(p.machine)
	e := all[p.rng.IntN(len(all))]
	p.number++
	length := time.Duration(8+p.rng.IntN(32)) * time.Minute
	over, zero := began.Add(length), 0
	grants := session.Grants{Memory: e.memory, GPUs: p.grants(e)}
	for cpu := range e.cpus {
		grants.CPUs = append(grants.CPUs, cpu)
	}
	spec := desk(fmt.Sprintf("%s-%02d", e.name, p.number), e.image, e.label, e.cpus, e.memory, gpu.Request{Shares: e.share})
	s := session.Session{
		ID: session.ID(p.text("abcdefghijklmnopqrstuvwxyz234567", 12)), Name: spec.Name, Owner: e.owner, Agent: p.machine.Name, Attempt: 1, Grants: grants,
		Status: session.Terminated, Result: session.ResultSuccess, Reason: session.ReasonUser, Priority: session.DefaultPriority,
		CreatedAt: began.Add(-2 * time.Second), ScheduledAt: &began, StartedAt: &began, TerminatedAt: &over,
	}
	if e.batch {
		spec.Type, spec.Command = session.Batch, training(e.cpus, e.memory, length)
		s.Reason, s.ExitCode = session.ReasonFinished, &zero
	}
	s.Spec = spec.WithDefaults()
	s.Kernels = []session.Kernel{{Name: session.MainKernel, Hostname: session.MainKernel, Container: p.text("0123456789abcdef", 64), Status: session.Terminated, Grants: grants}}
	busy := 0.3 + 0.5*p.rng.Float64()
	return agent.Ended{Session: s, CPU: time.Duration(busy * float64(e.cpus) * float64(length)), Samples: p.samples(s, e.kind)}
}

// grants are the first devices of the machine, in as many parts as are needed.
func (p *past) grants(e errand) []gpu.Grant {
	var grants []gpu.Grant
	for left := e.share; left > 0; left -= gpu.WholeDevice {
		d, part := p.inventory[len(grants)], min(left, gpu.WholeDevice)
		grants = append(grants, gpu.Grant{Device: d.UUID, Share: part, Memory: d.Usable() * gpu.Bytes(part) / gpu.Bytes(gpu.WholeDevice)})
	}
	return grants
}

// samples runs the devices from the start of a session to a moment after its end.
func (p *past) samples(s session.Session, kind sim.Kind) iter.Seq[gpu.Sample] {
	boot := fmt.Sprintf("past-%d", p.number)
	return func(yield func(gpu.Sample) bool) {
		container, length := s.Kernels[0].Container, s.TerminatedAt.Sub(*s.StartedAt)
		for gone := time.Duration(0); gone <= length+pastEvery; gone += pastEvery {
			up := time.Minute + gone
			p.clock = gpu.Moment{BootID: boot, Boot: up, Awake: up, Wall: s.StartedAt.Add(gone)}
			sample, err := p.devices.Sample(context.Background())
			if err != nil || !yield(sample) {
				return
			}
			switch gone {
			case 0:
				p.devices.RunGranted(container, kind, s.Grants.GPUs)
			case length:
				p.devices.EndContainer(container)
			}
		}
	}
}
