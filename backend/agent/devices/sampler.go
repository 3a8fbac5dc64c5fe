package devices

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"slipway/backend/agent/accounts"
	"slipway/backend/agent/host"
	"slipway/backend/engine"
	"slipway/backend/pace"
	"slipway/backend/session"
	"slipway/gpu"
)

const (
	// sampleOften is used while devices are watched, held or waited for: the guard must see an overshoot within two
	// samples. sampleSeldom is for unused devices: the buffers of the drivers reach back twice as far.
	sampleOften    = 2 * time.Second
	sampleSeldom   = 5 * time.Second
	samplePatience = 5 * time.Second // how long one sample may take
)

// Config configures a Sampler.
type Config struct {
	host.Host
	Attached *Attachment
	Books    *accounts.Books
	Guard    gpu.Policy // for sessions that stay above their share of a device's memory
	// EndProcess asks a process to end. nil: that is not possible.
	EndProcess func(pid int, start uint64) error
	EndSession host.EndSession
	// Used is called with what sessions use of their devices.
	Used func(at gpu.Moment, live []session.Session, uses []gpu.Live)
}

// Sampler measures the devices regularly and passes each sample to the rooms that need it.
type Sampler struct {
	config   Config
	devices  *Devices
	wake     chan struct{} // of capacity 1: who holds devices, or watches, changed
	guard    *gpu.Guard    // belongs to the goroutine of Run, as everything below
	noneTold string        // why there are no devices, as published last
}

// NewSampler returns a sampler of devices.
func NewSampler(devices *Devices, config Config) *Sampler {
	return &Sampler{config: config, devices: devices, wake: make(chan struct{}, 1),
		guard: &gpu.Guard{Policy: config.Guard}}
}

func (s *Sampler) Wake() { pace.Signal(s.wake) }

// Run finds the devices, samples them and keeps the accounts until ctx ends.
func (s *Sampler) Run(ctx context.Context) {
	if live, err := s.config.Records.LiveSessions(); err == nil { // else Collect logs it
		s.recallAlarms(live)
	}
	for ctx.Err() == nil {
		host.Wait(ctx, s.config.Clock.Often(s.Collect(ctx)), s.wake)
	}
}

// Collect runs one round and returns when the next is due.
func (s *Sampler) Collect(ctx context.Context) time.Duration {
	live, err := s.config.Records.LiveSessions()
	if err != nil {
		s.config.Log.Warn("devices cannot be accounted for", "err", err)
		return sampleSeldom
	}
	s.look(ctx, live)
	// Ends are counted first, at their moments; what was used until then is in the sample.
	s.config.Books.Follow(s.devices.Moment(), live)
	any := s.devices.Any()
	switch {
	case any:
		s.sample(ctx, live)
	case s.config.Health.State().Info.Elsewhere: // nothing here measures them, but they are allocated
		s.config.Books.Book(gpu.Sample{At: s.devices.Moment()})
	}
	s.tellLosses(live)
	if s.config.Books.Active() && s.config.Books.Due(s.devices.Moment()) {
		_ = s.config.Books.Checkpoint(s.devices.Moment(), false) // it logs its failure and is tried again
	}
	watched := s.config.Watched()
	s.tellBoard(live, any, watched)
	return min(s.interval(live, any, watched), s.config.Books.Soon())
}

// tellBoard publishes the devices. That there are none, and why, is published once to whoever watches.
func (s *Sampler) tellBoard(live []session.Session, any, watched bool) {
	none := ""
	if watched && !any {
		none = s.devices.Now().Text
	}
	if watched && (any || s.noneTold != none) {
		s.config.PublishBoard(live)
	}
	s.noneTold = none
}

func (s *Sampler) interval(live []session.Session, any, watched bool) time.Duration {
	used := slices.ContainsFunc(live, func(one session.Session) bool {
		return len(one.Grants.GPUs) > 0 || one.Status == session.Pending && !one.Spec.Accelerator.IsZero()
	})
	switch {
	case any && (watched || used):
		return sampleOften
	case any:
		return sampleSeldom
	case len(live) > 0:
		return accounts.CheckpointEvery
	}
	return inventoryEvery
}

// look lists the devices again if it is time, and wakes the queue if they changed.
func (s *Sampler) look(ctx context.Context, live []session.Session) {
	d := s.devices
	if !d.due() {
		return
	}
	before := d.Now().Devices
	look := func(ctx context.Context) error { return d.Look(ctx, heldBy(live)) }
	if err := engine.Within(ctx, s.config.Limits.Call, "inventory", look); err != nil && ctx.Err() == nil {
		s.config.Log.Debug("the devices cannot be listed", "err", err) // the board says it
	}
	after := d.Now().Devices
	if slices.EqualFunc(before, after, func(x, y gpu.Device) bool {
		return x.UUID == y.UUID && len(x.Instances) == len(y.Instances) && (x.Lost == nil) == (y.Lost == nil)
	}) {
		return
	}
	_ = s.config.Attached.Ask(ctx) // it is asked again when the engine answers
	s.config.PlanAgain()
}

// sample takes one sample and passes it on to the accounts, the queue, the guard and the idle checks.
func (s *Sampler) sample(ctx context.Context, live []session.Session) {
	limited, cancel := context.WithTimeout(ctx, samplePatience)
	defer cancel()
	sample, err := s.devices.Source.Sample(limited)
	if err != nil {
		if ctx.Err() == nil && s.devices.Fail(err) {
			s.config.Log.Warn("devices cannot be sampled", "err", err)
			s.config.PlanAgain() // nothing of them is allocated until they can be
		}
		return
	}
	report := s.config.Books.Book(sample)
	if report.Stale {
		return
	}
	if s.devices.Add(sample, report.Live) {
		s.config.PlanAgain()
	}
	s.guardDevices(sample, live)
	s.config.Used(sample.At, live, report.Live)
}

// Attachment knows how the engine attaches devices to containers.
type Attachment struct {
	Engine  engine.Host
	Devices *Devices
	Log     *slog.Logger
	Call    time.Duration // limit of a question to the engine

	mu   sync.Mutex // guards last
	last engine.Attachment
}

// Now is how devices are attached to containers, as far as the engine has reported it.
func (a *Attachment) Now() engine.Attachment {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last
}

func (a *Attachment) Ask(ctx context.Context) error {
	if !a.Devices.Any() {
		return nil
	}
	return engine.Within(ctx, a.Call, "attachment", func(ctx context.Context) error {
		attach, err := a.Engine.Attachment(ctx, false)
		if err != nil {
			if engine.Unavailable(err) {
				return err
			}
			a.Log.Warn("it is not known how devices are handed to containers", "err", err)
			return nil
		}
		a.mu.Lock()
		a.last = attach
		a.mu.Unlock()
		return nil
	})
}
