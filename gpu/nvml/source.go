// Package nvml finds and measures NVIDIA devices through the driver's own library. That library may lack a function,
// return nonsense, hang or crash, and could take the program with it. Therefore only a child process loads it (see
// [ChildMain]), and [Source], its parent, asks it through a pipe. A child that dies or stops responding is replaced,
// what it was doing is omitted for a while, and everything else is still read; a sample reports what could not be read.
//
// # What is measured
//
// Busy time is how long anything at all ran on a device, not how much of it. On a whole device the driver charges each
// of its samples to one process. On a device that is divided into MIG instances it charges none. There its performance
// monitoring (GPM, from the Hopper generation on) reports how much of the time each GPU instance had work, and that
// counts for the part of the device that the instance is, so that no session is ever busier than its allocation. The
// processes in an instance, which is granted to one session, share it evenly. Where the driver or the card does not
// monitor, does not let this user ask, or several compute instances share one GPU instance, busy time is unknown: it is
// divided by allocation or missed, and reported as such.
//
// The child needs C linkage (go-nvml). A program built without it names another one that has it in [Config.Command].
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
	// Command starts the child; its options are appended. Empty: this program with [ChildCommand], which it must pass
	// to [ChildMain].
	Command []string
	Env     []string          // added to the environment of the child
	Library string            // path of the driver's library; empty: libnvidia-ml.so.1 wherever the system keeps it
	Root    string            // where proc, sys and etc are; empty: /
	Procs   *procs.Table      // tells whose a process is; nil: a new table
	Now     func() gpu.Moment // reads the clocks; nil: clock.Now
	Log     *slog.Logger      // gets a line when the child is replaced; may be nil
	// Patience is how long one call into the driver may take before the child is replaced; zero: 5 s.
	Patience time.Duration
}

// Source reads the NVIDIA devices of this machine.
type Source struct {
	config Config
	turn   chan struct{} // holds one token, which guards what follows

	child  *child
	nextID uint64
	trouble
	meter  meter
	driver string       // the last known version
	known  []gpu.Device // of the last inventory
	closed bool
	absent time.Time // until when this machine counts as one without NVIDIA devices
}

var _ gpu.Source = (*Source)(nil)

const defaultPatience = 5 * time.Second

// absentFor is how long a machine without a device is not asked again.
const absentFor = time.Minute

// Open returns the source, which starts nothing before the first question. Close ends it.
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

// take waits for the turn; the caller must return it with done.
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

// Inventory lists the devices. One that fell off the bus or stopped responding stays in the list as it was last seen,
// with its loss and unknown capabilities, while the driver counts it.
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
	for _, g := range sample.Gone {
		if g.Kind == gpu.LossUnlisted { // no other sentence is about it
			sample.Lost = append(sample.Lost, s.name(string(g.UUID))+": "+g.Why)
		}
	}
	s.nameEnded(sample.Ended)
	sample.Lost = append(sample.Lost, s.describe(sample.Processes, at)...)
	return sample, nil
}

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
			gone++ // and the number may be another process's already
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

// strangeFor is after how many samples in a row without any known process this is more than bad luck.
const strangeFor = 3

// startedAt converts a start in ticks, which are hundredths of a second on every Linux.
func startedAt(ticks uint64) time.Duration { return time.Duration(ticks) * 10 * time.Millisecond }

func (s *Source) sentences(losses []loss) (said []string) {
	for _, l := range losses {
		text := l.sentence(s.name(l.Device), s.why)
		if !slices.Contains(said, text) {
			said = append(said, text)
		}
	}
	return said
}

// name is what people call a device: "GPU 0 (GPU-8f6a…)".
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

// nameEnded adds whose each ended process was, if it released the device and still runs, or was seen before it ended.
func (s *Source) nameEnded(ended []gpu.EndedProcess) {
	for i := range ended {
		e := &ended[i]
		was := func(p procs.Process) bool { return startedAt(p.Start) <= e.Began+time.Second }
		who, err := s.config.Procs.Recall(e.PID)
		if err != nil || !was(who) {
			who, err = s.config.Procs.Lookup(e.PID)
		}
		if err == nil && was(who) {
			e.Known, e.Name, e.User, e.Container = true, who.Name, who.User, strings.Join(who.Containers, ",")
		}
	}
}

// ends returns the way in which a device is lost by the failure of a call; empty if only that call is.
func (l loss) ends() gpu.LossKind {
	switch {
	case l.Code == codeLost, l.Code == codeNoDevice:
		return gpu.LossFallen
	case l.Code == codeReset:
		return gpu.LossReset
	case l.Code == codeOmitted && (l.Call == "" || strings.HasPrefix(l.Device, "#")):
		return gpu.LossSilent
	}
	return ""
}

func (s *Source) gone(a answer) (gone []gpu.LostDevice) {
	for _, d := range s.known {
		if slices.ContainsFunc(a.Reading.Devices, func(r deviceReading) bool { return r.UUID == string(d.UUID) }) {
			continue
		}
		if l := s.lossOf(d, a.Lost); l.Kind != "" {
			gone = append(gone, gpu.LostDevice{UUID: d.UUID, Loss: l})
		}
	}
	return gone
}

// lossOf returns the way in which a device is lost that was not read. The kind is empty if it may be there: something
// else failed on it, or on a device whose UUID the driver did not report.
func (s *Source) lossOf(d gpu.Device, losses []loss) gpu.Loss {
	said := false
	for _, l := range losses {
		nameless := strings.HasPrefix(l.Device, "#")
		if l.Device != string(d.UUID) && !nameless {
			continue
		}
		said = true
		if nameless && l.Device != fmt.Sprintf("#%d", d.Index) {
			continue
		}
		switch kind := l.ends(); kind {
		case gpu.LossFallen:
			return gpu.Loss{Kind: kind, Why: "it fell off the bus"}
		case gpu.LossReset:
			return gpu.Loss{Kind: kind, Why: "it must be reset"}
		case gpu.LossSilent:
			a, _ := s.avoids(l)
			return gpu.Loss{Kind: kind, Why: a.why}
		}
	}
	if said {
		return gpu.Loss{}
	}
	return gpu.Loss{Kind: gpu.LossUnlisted, Why: "the driver does not list it any more"}
}
