//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"slipway/build/bench/link"
)

// scenario is a path and what is measured on it.
type scenario struct {
	name     string
	up, down link.Direction
	local    bool
	kinds    []string
	cases    []work
}

// work is one measurement of a variant.
type work struct {
	mode    string // up, down, echo, open or idle
	streams int
	limits  limits
}

// limits are what ours must reach; zero is none.
type limits struct {
	ratio    float64 // of bulk, to base
	base     string  // the variant that ratio is relative to
	p50, p99 float64 // milliseconds
	// beyond is how many milliseconds the median may be beyond raw TCP's in the
	// same run, which is the path's round trip as a program sees it.
	beyond float64
	memory int64 // bytes
}

const (
	rtt       = 40.0 // milliseconds
	fastRate  = 100e6 / 8
	slowRate  = 10e6 / 8
	halfRTT   = 20 * time.Millisecond
	shallow   = 500_000   // bytes: 40 ms of the fast link
	deep      = 2_500_000 // bytes: 200 ms of the fast link
	slowQueue = 100_000   // bytes: 80 ms of the slow link
	loss      = 0.0005    // raw cubic falls to a sixth or so
)

func scenarios() []scenario {
	fast := link.Direction{Rate: fastRate, Delay: halfRTT, Queue: shallow}
	buried, lossy := fast, fast
	buried.Queue, lossy.Loss = deep, loss
	slow := link.Direction{Rate: slowRate, Delay: halfRTT, Queue: slowQueue}
	both := limits{ratio: 0.97, base: "raw", p50: rtt + 8, p99: rtt + 15}
	lost := limits{p50: rtt + 3, p99: rtt + 10}
	tunnels := []string{"raw", "ours", "ours1", "ssh"}
	return []scenario{
		{name: "100 Mbit/s, 40 ms", up: fast, down: fast, kinds: tunnels, cases: []work{
			{"echo", 0, limits{beyond: 1}}, {"open", 0, limits{p50: rtt + 4}},
			{"up", 1, both}, {"down", 1, both}, {"up", 8, both}, {"down", 8, both},
		}},
		{name: "the same, deep queue", up: buried, down: buried, kinds: tunnels,
			cases: []work{{"up", 1, both}, {"down", 1, both}}},
		{name: "the same, random loss", up: lossy, down: lossy, kinds: tunnels,
			cases: []work{{"up", 1, lost}, {"down", 1, lost}}},
		{name: "10 Mbit/s up, 40 ms", up: slow, down: fast, kinds: tunnels,
			cases: []work{{"up", 1, limits{p50: rtt + 25}}}},
		{name: "loopback", local: true, kinds: []string{"raw", "tls", "ours", "ours1", "ssh"}, cases: []work{
			{"up", 1, limits{ratio: 0.55, base: "tls"}}, {"up", 8, limits{ratio: 0.55, base: "tls"}},
			{"echo", 0, limits{}}, {"open", 0, limits{}}, {"idle", 1000, limits{memory: 16 << 20}},
		}},
	}
}

// measureAll measures every scenario in turn.
func measureAll(ctx context.Context, o options, r *report) error {
	for _, s := range scenarios() {
		if !strings.Contains(s.name, o.only) {
			continue
		}
		if err := measure(ctx, o, s, r); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// measure measures one scenario: each round takes every variant in turn.
func measure(ctx context.Context, o options, s scenario, r *report) (err error) {
	l, err := openLab(ctx, s.up, s.down, s.local)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	found := newFindings(s)
	defer func() { r.add(found) }()
	for round := range o.rounds {
		for _, kind := range s.kinds {
			if !slices.Contains(strings.Split(o.kinds, ","), kind) {
				continue
			}
			if err := measureKind(ctx, o, l, s, kind, found); err != nil {
				return fmt.Errorf("round %d, %s: %w", round, kind, err)
			}
		}
	}
	return nil
}

// measureKind measures one variant once.
func measureKind(ctx context.Context, o options, l *lab, s scenario, kind string, found *findings) error {
	rig, err := l.setUp(ctx, kind)
	if err != nil {
		return err
	}
	defer rig.close()
	for i, w := range s.cases {
		if w.mode == "idle" {
			if err := measureIdle(ctx, l, rig, kind, w, found, i); err != nil {
				return err
			}
			continue
		}
		ask := rig.s
		ask.Mode, ask.Streams, ask.Warm, ask.Time = w.mode, w.streams, o.warm, o.time
		if w.streams == 0 {
			ask.Warm = 500 * time.Millisecond
		}
		out, err := l.ask(ctx, ask)
		if err != nil {
			return err
		}
		if o.trace {
			fmt.Fprintf(os.Stderr, "%s, %s, %s %d: %.2f MB/s, echo %.1f/%.1f ms of %d\n", s.name, kind, w.mode,
				w.streams,
				out.Rate/1e6, quantile(out.Echo, 0.5), quantile(out.Echo, 0.99), len(out.Echo))
		}
		found.add(i, kind, out)
	}
	return nil
}

// measureIdle sees what idle streams cost on either side.
func measureIdle(ctx context.Context, l *lab, rig *rig, kind string, w work, found *findings, i int) error {
	if len(rig.parts) < 2 || kind == "ssh" {
		return nil // its processes are not ours to read
	}
	before := make([]int64, len(rig.parts))
	for i, p := range rig.parts {
		var err error
		if before[i], err = p.memory(); err != nil {
			return err
		}
	}
	ask := rig.s
	ask.Mode, ask.Streams = w.mode, w.streams
	holder, err := l.start(ctx, l.s.Near, "part-client", ask)
	if err != nil {
		return err
	}
	defer func() { _ = holder.stop() }()
	most := int64(0)
	for i, p := range rig.parts {
		after, err := p.memory()
		if err != nil {
			return err
		}
		most = max(most, after-before[i])
	}
	found.memory[i][kind] = append(found.memory[i][kind], float64(most))
	return nil
}
