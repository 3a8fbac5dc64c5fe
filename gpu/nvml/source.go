package nvml

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"slipway/gpu"
	"slipway/gpu/clock"
	"slipway/gpu/procs"
)

// Config of a Source.
type Config struct {
	// Command starts the child; its options are added at the end. Empty: this very program with [ChildCommand], which
	// it must hand to [ChildMain]. A program without C linkage names another, or leaves it empty and says so.
	Command []string
	// Env is added to the environment of the child.
	Env []string
	// Library is the path of the driver's library; empty: wherever the system keeps libnvidia-ml.so.1.
	Library string
	// Root is where proc, sys and etc are; empty: /.
	Root string
	// Procs says whose a process is; nil: a table of its own.
	Procs *procs.Table
	// Patience is how long one call into the driver may take before the child is replaced; zero: 5 s.
	Patience time.Duration
	// Now reads the clocks; nil: clock.Now.
	Now func() gpu.Moment
	// Log is told when the child is replaced; nil: nobody.
	Log *slog.Logger
}

// Source is the NVIDIA devices of this machine.
type Source struct {
	config Config
	turn   chan struct{} // holds one token; whoever takes it may use what follows

	child  *child
	nextID uint64
	trouble
	meter  meter
	driver string       // its version, as last told
	known  []gpu.Device // of the last inventory
	closed bool
	absent time.Time // until when this machine is taken to have no NVIDIA device
}

var _ gpu.Source = (*Source)(nil)

const defaultPatience = 5 * time.Second

// absentFor is how long a machine without a device is not asked again.
const absentFor = time.Minute

// Open returns the source. Nothing is started before it is asked something, so that a machine without devices costs
// nothing. Close ends it.
func Open(c Config) *Source {
	c.Root, c.Patience = cmp.Or(c.Root, "/"), cmp.Or(max(c.Patience, 0), defaultPatience)
	if c.Procs == nil {
		c.Procs = procs.NewTable(procs.Config{Root: c.Root})
	}
	if c.Now == nil {
		c.Now = clock.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Source{config: c, turn: make(chan struct{}, 1)}
	s.turn <- struct{}{}
	return s
}

// take waits for the turn; the caller must give it back with done.
func (s *Source) take(ctx context.Context) error {
	select {
	case <-s.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.closed {
		s.done()
		return &gpu.Error{Code: gpu.CodeSourceUnavailable, Message: "The reader of NVIDIA devices is closed."}
	}
	return nil
}

func (s *Source) done() { s.turn <- struct{}{} }

// Inventory lists the devices. One that fell off the bus or stopped answering stays in the list as it was last seen,
// with its loss and unknown capabilities, until the driver does not count it any more.
func (s *Source) Inventory(ctx context.Context) ([]gpu.Device, error) {
	if err := s.take(ctx); err != nil {
		return nil, err
	}
	defer s.done()
	a, err := s.ask(ctx, request{Op: opInventory})
	if err != nil || s.isAbsent() {
		return nil, err
	}
	devices := make([]gpu.Device, 0, len(a.Inventory))
	for _, f := range a.Inventory {
		devices = append(devices, f.device(s.cgroup2()))
	}
	for _, d := range s.known {
		listed := slices.ContainsFunc(a.Inventory, func(f deviceFacts) bool { return f.UUID == string(d.UUID) })
		if l := s.lossOf(d, a.Lost); !listed && l.Kind != gpu.LossUnlisted && l.Kind != "" {
			d.Capabilities, d.Lost = gpu.UnknownCapabilities(l.Why), &l
			devices = append(devices, d)
		}
	}
	slices.SortFunc(devices, func(a, b gpu.Device) int { return a.Index - b.Index })
	s.known = devices
	return slices.Clone(devices), nil
}

// Sample reads all devices.
func (s *Source) Sample(ctx context.Context) (gpu.Sample, error) {
	if err := s.take(ctx); err != nil {
		return gpu.Sample{}, err
	}
	defer s.done()
	asked := s.meter.ask(s.config.Now())
	a, err := s.ask(ctx, request{Op: opSample, Last: asked.last, Since: asked.other})
	if err != nil {
		return gpu.Sample{}, err
	}
	at := s.config.Now()
	if s.isAbsent() || a.Reading == nil {
		return gpu.Sample{At: at, Epoch: gpu.Epoch{Boot: at.BootID}}, nil
	}
	s.part(a.Reading)
	sample, oddities := s.meter.take(*a.Reading, at, asked)
	if a.Reading.Driver != "" {
		s.driver = a.Reading.Driver
	}
	sample.Epoch = gpu.Epoch{Boot: at.BootID, Driver: s.driver + procs.ModuleLoad(s.config.Root, "nvidia")}
	sample.Lost = s.sentences(append(a.Lost, oddities...))
	sample.Gone = s.gone(a)
	sample.Lost = append(sample.Lost, s.missing(sample.Gone)...)
	s.nameEnded(sample.Ended)
	sample.Lost = append(sample.Lost, s.describe(sample.Processes, at)...)
	return sample, nil
}

// part says of each instance which part of its device it is.
func (s *Source) part(r *reading) {
	for i := range r.Devices {
		at := slices.IndexFunc(s.known, func(d gpu.Device) bool { return string(d.UUID) == r.Devices[i].UUID })
		if at < 0 {
			continue
		}
		for j := range r.Devices[i].Instances {
			in := &r.Devices[i].Instances[j]
			in.Part = s.known[at].Part(gpu.UUID(in.UUID))
		}
	}
}

// describe says whose each process is, and what that could not be said of.
func (s *Source) describe(samples []gpu.ProcessSample, at gpu.Moment) (lost []string) {
	pids := make([]int, len(samples))
	hidden, gone := 0, 0
	for i := range samples {
		p := &samples[i]
		pids[i] = p.PID
		who, err := s.config.Procs.Lookup(p.PID)
		switch {
		case errors.Is(err, procs.ErrHidden):
			hidden++
		case errors.Is(err, procs.ErrGone), err == nil && startedAt(who.Start) > at.Boot+time.Second:
			gone++ // and the number may be another's already
		case err != nil:
			lost = append(lost, fmt.Sprintf("the owner of process %d is unknown: %v", p.PID, err))
		default:
			p.Start, p.Name, p.User, p.Container = who.Start, who.Name, who.User, strings.Join(who.Containers, ",")
		}
	}
	s.config.Procs.Keep(pids)
	if hidden > 0 {
		lost = append(lost, fmt.Sprintf("the owners of %d processes on devices are unknown: /proc is mounted with "+
			"hidepid, so that this user sees only its own", hidden))
	}
	if gone > 0 && gone == len(samples) {
		s.strange++
	} else {
		s.strange = 0
	}
	if s.strange >= strangeFor {
		lost = append(lost, fmt.Sprintf("the owners of %d processes on devices are unknown: the driver's numbers mean "+
			"nothing here, as when Slipway runs in a container without the host's processes", gone))
	}
	return lost
}

// strangeFor is after how many samples in a row, in each of which no process could be found, more than bad luck is at
// work.
const strangeFor = 3

// startedAt converts a start in ticks; Linux tells them by the hundredth of a second on every machine.
func startedAt(ticks uint64) time.Duration { return time.Duration(ticks) * 10 * time.Millisecond }

// sentences says each loss once.
func (s *Source) sentences(losses []loss) (said []string) {
	for _, l := range losses {
		text := l.sentence(s.name(l.Device), s.why)
		if !slices.Contains(said, text) {
			said = append(said, text)
		}
	}
	return said
}

// name is how people know a device: "GPU 0 (GPU-8f6a…)".
func (s *Source) name(uuid string) string {
	if index, ok := strings.CutPrefix(uuid, "#"); ok {
		return "GPU " + index
	}
	for _, d := range s.known {
		if string(d.UUID) == uuid {
			return fmt.Sprintf("GPU %d (%s)", d.Index, uuid)
		}
	}
	return uuid
}

func (s *Source) cgroup2() bool {
	_, err := os.Stat(filepath.Join(s.config.Root, "sys/fs/cgroup/cgroup.controllers"))
	return err == nil
}

// Close ends the child. A child that hangs in the driver is left to the system.
func (s *Source) Close() error {
	<-s.turn
	defer s.done()
	if s.closed {
		return nil
	}
	s.closed = true
	s.drop()
	return nil
}
