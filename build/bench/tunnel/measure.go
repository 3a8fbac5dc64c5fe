//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"slipway/build/bench/link"
	"slipway/build/bench/measure"
)

type scenario struct {
	name     string
	up, down link.Direction
	local    bool // both sides on one machine
	cable    bool // as fast as the kernel carries packets
	kinds    []string
	cases    []work
}

type work struct {
	mode    string // up, down, echo, open or idle
	streams int
	limits  limits
}

// limits are those of our tunnel; zero is none.
type limits struct {
	ratio    float64 // of bulk, to base
	base     string  // the variant that ratio is relative to
	p50, p99 float64 // milliseconds
	beyond   float64 // milliseconds that the median may exceed raw TCP's, the path's round trip
	memory   int64   // bytes
	work     float64 // processor time for a byte, to that of base
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
	bulk := limits{ratio: 0.85, base: "tls", work: 1.5, p50: 5, p99: 25}
	fastest := []string{"raw", "tls", "ours", "ours1", "ssh"}
	transfers := []work{{"up", 1, bulk}, {"down", 1, bulk}, {"up", 8, bulk}, {"down", 8, bulk}}
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
		{name: "a cable", cable: true, kinds: fastest, cases: transfers},
		{name: "loopback", local: true, kinds: fastest, cases: slices.Concat(transfers, []work{
			{"echo", 0, limits{}}, {"open", 0, limits{}}, {"idle", 1000, limits{memory: 16 << 20}},
		})},
	}
}

func measureAll(ctx context.Context, o options, r *report) error {
	for _, s := range scenarios() {
		if !strings.Contains(s.name, o.only) {
			continue
		}
		if err := measureOne(ctx, o, s, r); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// measureOne measures one scenario: each round takes every variant in turn.
func measureOne(ctx context.Context, o options, s scenario, r *report) error {
	found := newFindings(s)
	defer func() { r.all = append(r.all, found) }()
	var closed error
	err := measure.Run(func() {
		l := newLab(s)
		defer func() { closed = l.close() }()
		l.open(ctx)
		for range o.rounds {
			for _, kind := range s.kinds {
				if slices.Contains(strings.Split(o.kinds, ","), kind) {
					measureKind(ctx, o, l, kind, found)
				}
			}
		}
	})
	return errors.Join(err, closed)
}

func measureKind(ctx context.Context, o options, l *lab, kind string, found *findings) {
	r := &rig{}
	defer r.stop()
	l.setUp(ctx, r, kind)
	for i, w := range found.s.cases {
		ask, of := r.s, found.of[i]
		ask.Mode, ask.Streams, ask.Warm, ask.Time = w.mode, w.streams, o.warm, o.time
		if w.mode == "idle" {
			if len(r.parts) == 2 && kind != "ssh" { // its processes are not ours to read
				of[kind] = series{memory: append(of[kind].memory, measureIdle(ctx, l, r, ask))}
			}
			continue
		}
		if w.streams == 0 {
			ask.Warm = 500 * time.Millisecond
		}
		before := r.processor()
		out := l.ask(ctx, ask)
		if o.trace {
			fmt.Fprintf(os.Stderr, "%s, %s, %s %d: %.2f MB/s, echo %.1f/%.1f ms of %d\n", found.s.name, kind, w.mode,
				w.streams, out.Rate/1e6, measure.Median(out.Echo), measure.Quantile(out.Echo, 0.99), len(out.Echo))
		}
		of[kind] = of[kind].with(out)
		if w.streams > 0 && kind != "ssh" {
			of[kind] = of[kind].worked(r.processor()-before, out)
		}
	}
}

// measureIdle returns the cost of idle streams on the more expensive side, in bytes.
func measureIdle(ctx context.Context, l *lab, r *rig, ask settings) (most float64) {
	before := r.memory()
	defer stop(l.start(ctx, l.s.Near, "part-client", ask))
	for i, after := range r.memory() {
		most = max(most, float64(after-before[i]))
	}
	return most
}

// findings are the results of one scenario.
type findings struct {
	s  scenario
	of []map[string]series // by case and variant
}

// series has the results of one case and variant, by round.
type series struct {
	rate, p50, p99, memory []float64
	work                   []float64 // seconds of processor time for 1 GB, of both relays
}

func newFindings(s scenario) *findings {
	f := &findings{s: s}
	for range s.cases {
		f.of = append(f.of, map[string]series{})
	}
	return f
}

func (s series) with(out outcome) series {
	s.rate = append(s.rate, out.Rate)
	s.p50 = append(s.p50, measure.Median(out.Echo))
	s.p99 = append(s.p99, measure.Quantile(out.Echo, 0.99))
	return s
}

func (s series) worked(seconds float64, out outcome) series {
	s.work = append(s.work, seconds/(float64(out.Bytes)/1e9))
	return s
}

type report struct {
	all    []*findings
	missed int
}

// print prints the table and marks missed limits.
func (r *report) print(w io.Writer, o options) {
	fmt.Fprintf(w, "| medians of %d rounds | variant | bulk MB/s | of raw | echo p50 ms | p99 ms | note "+
		"|\n|---|---|---|---|---|---|---|\n", o.rounds)
	for _, f := range r.all {
		for i, c := range f.s.cases {
			for _, kind := range f.s.kinds {
				if one := f.of[i][kind]; len(one.p50) > 0 || len(one.memory) > 0 {
					fmt.Fprintln(w, r.row(f.s.name+", "+c.title(), c, kind, f.of[i]))
				}
			}
		}
	}
}

func (r *report) row(title string, c work, kind string, of map[string]series) string {
	one := of[kind]
	rate, p50, p99 := measure.Median(one.rate), measure.Median(one.p50), measure.Median(one.p99)
	cells := []string{title, kind, "", "", "", "", ""}
	if rate > 0 {
		cells[2] = fmt.Sprintf("%.2f", rate/1e6)
		if raw := measure.Median(of["raw"].rate); raw > 0 {
			cells[3] = fmt.Sprintf("%.3f", rate/raw)
		}
	}
	if p50 > 0 {
		cells[4], cells[5] = fmt.Sprintf("%.2f", p50), fmt.Sprintf("%.2f", p99)
	}
	memory := measure.Median(one.memory)
	if memory > 0 {
		cells[6] = fmt.Sprintf("%.1f MiB a side at most", memory/(1<<20))
	}
	if work := measure.Median(one.work); work > 0 {
		cells[6] = fmt.Sprintf("%.2f CPU s/GB", work)
	}
	if kind == "ours" {
		if cells[6] != "" {
			cells[6] += ", "
		}
		cells[6] += r.judge(c, of, rate, p50, p99, memory)
	}
	return "| " + strings.Join(cells, " | ") + " |"
}

func (c work) title() string {
	switch c.mode {
	case "echo":
		return "idle echo"
	case "open":
		return "open a stream"
	case "idle":
		return fmt.Sprintf("%d idle forwards", c.streams)
	}
	return fmt.Sprintf("%s, %d stream(s)", c.mode, c.streams)
}

func (r *report) judge(c work, of map[string]series, rate, p50, p99, memory float64) string {
	var said []string
	check := func(fine bool, format string, values ...any) {
		text := fmt.Sprintf(format, values...)
		if !fine {
			text = "**missed: " + text + "**"
			r.missed++
		}
		said = append(said, text)
	}
	if base := measure.Median(of[c.limits.base].rate); c.limits.ratio > 0 && base > 0 {
		check(rate/base >= c.limits.ratio, "%.3f of %s ≥ %.2f", rate/base, c.limits.base, c.limits.ratio)
	}
	if base := measure.Median(of[c.limits.base].work); c.limits.work > 0 && base > 0 {
		work := measure.Median(of["ours"].work)
		check(work/base <= c.limits.work, "CPU %.2f of %s ≤ %.2f", work/base, c.limits.base, c.limits.work)
	}
	if raw := measure.Median(of["raw"].p50); c.limits.beyond > 0 && raw > 0 {
		check(p50 <= raw+c.limits.beyond, "p50 ≤ raw's + %.0f", c.limits.beyond)
	}
	if c.limits.p50 > 0 {
		check(p50 <= c.limits.p50, "p50 ≤ %.0f", c.limits.p50)
	}
	if c.limits.p99 > 0 {
		check(p99 <= c.limits.p99, "p99 ≤ %.0f", c.limits.p99)
	}
	if c.limits.memory > 0 {
		check(int64(memory) < c.limits.memory, "< %d MiB", c.limits.memory>>20)
	}
	return strings.Join(said, ", ")
}
