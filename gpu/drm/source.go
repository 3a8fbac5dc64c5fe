// Package drm finds and measures AMD and Intel devices through files of the kernel: those under /sys/class/drm, and in
// /proc/PID/fdinfo the time and memory that each process uses of a device. It needs no library of a vendor, and nothing
// can hang or crash. The kernel's counters only grow, so busy time is exact, not sampled as on NVIDIA devices.
//
// The UUID of a device is "GPU-" and its unique id, as in AMD's own libraries, or else "PCI-" and its address.
package drm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway/gpu"
	"slipway/gpu/clock"
	"slipway/gpu/procs"
)

// Config configures a Source.
type Config struct {
	Root  string            // where proc, sys and dev are; empty: /
	Procs *procs.Table      // tells whose a process is; nil: a new table
	Now   func() gpu.Moment // reads the clocks; nil: clock.Now
}

// Source reads the AMD and Intel devices of this machine.
type Source struct {
	root  string
	procs *procs.Table
	now   func() gpu.Moment

	mu      sync.Mutex // guards what follows
	closed  bool
	scans   map[int]scan
	clients map[clientKey]engines // of the previous sample
	last    gpu.Moment            // of the previous sample
}

var _ gpu.Source = (*Source)(nil)

// Open returns the source; it starts nothing and reads nothing yet.
func Open(c Config) *Source {
	c.Root = cmp.Or(c.Root, "/")
	if c.Procs == nil {
		c.Procs = procs.NewTable(procs.Config{Root: c.Root})
	}
	if c.Now == nil {
		c.Now = clock.Now
	}
	return &Source{root: c.Root, procs: c.Procs, now: c.Now, scans: map[int]scan{}}
}

// Inventory lists the devices by their place on the bus.
func (s *Source) Inventory(ctx context.Context) ([]gpu.Device, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	cards := s.cards()
	devices := make([]gpu.Device, 0, len(cards))
	for i, c := range cards {
		devices = append(devices, c.device(i, s.root))
	}
	return devices, nil
}

func (s *Source) usable(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return &gpu.Error{Code: gpu.CodeSourceUnavailable, Message: "The reader of AMD and Intel devices was ended."}
	}
	return ctx.Err()
}

// Sample reads all devices and looks which processes are on them.
func (s *Source) Sample(ctx context.Context) (gpu.Sample, error) {
	if err := s.usable(ctx); err != nil {
		return gpu.Sample{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.now()
	sample := gpu.Sample{At: at, Epoch: gpu.Epoch{Boot: at.BootID}}
	cards := s.cards()
	if len(cards) == 0 {
		return sample, nil
	}
	sample.Epoch.Driver = s.driverEpoch(cards)
	found := s.scan(at)
	elapsed := at.Awake - s.last.Awake
	if s.last.BootID != at.BootID {
		elapsed = 0 // the first sample: nothing to compare with
	}
	for _, c := range cards {
		uses := s.uses(c, found, elapsed)
		d := c.sample(uses, elapsed, found.hidden == 0)
		d.Blind = found.err != nil
		sample.Devices = append(sample.Devices, d)
		for _, u := range uses {
			p := gpu.ProcessSample{PID: u.pid, Device: c.uuid, Util: u.util}
			if u.hasMem {
				p.Memory = new(u.memory)
			}
			who, err := s.procs.Lookup(u.pid)
			if err == nil {
				p.Start, p.Name, p.User, p.Container = who.Start, who.Name, who.User, strings.Join(who.Containers, ",")
			} else if !errors.Is(err, procs.ErrGone) {
				sample.Lost = append(sample.Lost, fmt.Sprintf("the owner of process %d is unknown: %v", u.pid, err))
			}
			sample.Processes = append(sample.Processes, p)
		}
	}
	switch {
	case found.err != nil:
		sample.Lost = append(sample.Lost, fmt.Sprintf("which processes are on AMD and Intel devices is unknown: %v",
			found.err))
	case found.hidden > 0:
		sample.Lost = append(sample.Lost, fmt.Sprintf("which of the %d processes of other users are on AMD and Intel "+
			"devices is unknown: only the administrator may look into them", found.hidden))
	}
	s.clients, s.last = make(map[clientKey]engines, len(found.clients)), at
	for _, c := range found.clients {
		s.clients[c.clientKey] = c.engines
	}
	return sample, nil
}

// Close makes later calls fail.
func (s *Source) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

func (s *Source) driverEpoch(cards []card) string {
	var marks []string
	for _, c := range cards {
		if mark := c.driver + procs.ModuleLoad(s.root, c.driver); !slices.Contains(marks, mark) {
			marks = append(marks, mark)
		}
	}
	return strings.Join(marks, ",")
}

// rescan is how long a process without a device counts as such: looking at every open file of the machine for each
// sample would cost more than everything else.
const rescan = 10 * time.Second
