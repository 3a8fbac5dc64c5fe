// Package devices reads all devices of this machine: one source over those of NVIDIA's driver and of the kernel.
package devices

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"slipway/gpu"
	"slipway/gpu/clock"
	"slipway/gpu/drm"
	"slipway/gpu/nvml"
	"slipway/gpu/nvml/payload"
)

// Config of Open.
type Config struct {
	Dir     string       // where the reader of NVIDIA devices may be put, for a program that carries one
	Library string       // path of NVIDIA's library; empty: where the system keeps it
	Log     *slog.Logger // gets a line when the reader is replaced; may be nil
}

// Open returns the devices of this machine. It starts and reads nothing yet; Close ends it. A program that can read
// NVIDIA devices is started again with nvml.ChildCommand as its first argument, for which it must call nvml.ChildMain.
func Open(c Config) (*Machine, error) {
	nv := nvml.Config{Library: c.Library, Log: c.Log}
	if !nvml.Built {
		reader, err := payload.Extract(c.Dir)
		switch {
		case err == nil:
			nv.Command = []string{reader}
		case !errors.Is(err, payload.ErrNone): // without one the source reports it if there is a card
			return nil, err
		}
	}
	return Join(clock.Now, nvml.Open(nv), drm.Open(drm.Config{})), nil
}

// Machine is several sources as one.
type Machine struct {
	now     func() gpu.Moment
	sources []gpu.Source

	mu      sync.Mutex     // guards what follows
	drivers []string       // what each source last said of its driver
	known   [][]gpu.Device // what each source last listed
}

var _ gpu.Source = (*Machine)(nil)

// Join makes one source of several. Devices are numbered in the order of the sources. A source that fails is a loss if
// another has devices.
func Join(now func() gpu.Moment, sources ...gpu.Source) *Machine {
	return &Machine{now: now, sources: sources, drivers: make([]string, len(sources)),
		known: make([][]gpu.Device, len(sources))}
}

// Inventory lists the devices of all sources. It fails when one source failed and no other has devices. Otherwise the
// devices of a failed source stay in the list as they were last seen, with a driver that does not respond.
func (m *Machine) Inventory(ctx context.Context) ([]gpu.Device, error) {
	var all []gpu.Device
	var failure error
	answered := false
	for i, s := range m.sources {
		devices, err := s.Inventory(ctx)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil && failure == nil {
			failure = err
		}
		answered = answered || err == nil && len(devices) > 0
		devices = m.remember(i, devices, err)
		next := 0
		for _, d := range all {
			next = max(next, d.Index+1)
		}
		for _, d := range devices {
			d.Index += next
			all = append(all, d)
		}
	}
	if !answered {
		return nil, failure
	}
	return all, nil
}

// remember returns what a source lists, or, if it failed, what it listed before, as lost.
func (m *Machine) remember(source int, devices []gpu.Device, err error) []gpu.Device {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		m.known[source] = slices.Clone(devices)
		return devices
	}
	silent := slices.Clone(m.known[source])
	for i, d := range silent {
		why := "its driver does not answer"
		if d.Lost == nil {
			silent[i].Lost = &gpu.Loss{Kind: gpu.LossSilent, Why: why}
		}
		silent[i].Capabilities = gpu.UnknownCapabilities(why)
	}
	return silent
}

// Sample reads all sources one after the other; they take milliseconds.
func (m *Machine) Sample(ctx context.Context) (gpu.Sample, error) {
	all := gpu.Sample{}
	var failures []error
	for i, s := range m.sources {
		one, err := s.Sample(ctx)
		if ctx.Err() != nil {
			return gpu.Sample{}, ctx.Err()
		}
		if err != nil {
			failures = append(failures, err)
			all.Lost = append(all.Lost, sentence(err))
			continue
		}
		if one.Since != 0 && (all.Since == 0 || one.Since < all.Since) {
			all.Since = one.Since
		}
		all.Devices = append(all.Devices, one.Devices...)
		all.Processes = append(all.Processes, one.Processes...)
		all.Lost = append(all.Lost, one.Lost...)
		all.Gone = append(all.Gone, one.Gone...)
		all.Ended = append(all.Ended, one.Ended...)
		m.mu.Lock()
		m.drivers[i] = one.Epoch.Driver
		m.mu.Unlock()
	}
	if len(failures) > 0 && len(all.Devices) == 0 {
		return gpu.Sample{}, failures[0]
	}
	all.At = m.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	// A source that fails for a moment keeps its part, so that the others' counters continue.
	all.Epoch = gpu.Epoch{Boot: all.At.BootID, Driver: strings.Join(m.drivers, ";")}
	return all, nil
}

func sentence(err error) string {
	var e *gpu.Error
	if errors.As(err, &e) && e.Hint != "" {
		return fmt.Sprintf("%s %s", e.Message, e.Hint)
	}
	return err.Error()
}

// Close ends all sources.
func (m *Machine) Close() error {
	var failures []error
	for _, s := range slices.Backward(m.sources) {
		failures = append(failures, s.Close())
	}
	return errors.Join(failures...)
}
