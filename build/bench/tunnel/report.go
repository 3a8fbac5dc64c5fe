//go:build linux

package main

import (
	"fmt"
	"io"
	"strings"

	"slipway/build/bench/measure"
)

// findings are the results of one scenario.
type findings struct {
	s  scenario
	of []map[string]*series // by case and variant
}

// series has the results of one case and variant, by round.
type series struct{ rate, p50, p99, memory []float64 }

func newFindings(s scenario) *findings {
	f := &findings{s: s}
	for range s.cases {
		one := map[string]*series{}
		for _, kind := range []string{"", "raw", "tls", "ours", "ours1", "ssh"} {
			one[kind] = &series{}
		}
		f.of = append(f.of, one)
	}
	return f
}

func (s *series) add(out outcome) {
	s.rate = append(s.rate, out.Rate)
	s.p50 = append(s.p50, measure.Median(out.Echo))
	s.p99 = append(s.p99, measure.Quantile(out.Echo, 0.99))
}

type report struct {
	all    []*findings
	missed int
}

func (r *report) add(f *findings) { r.all = append(r.all, f) }

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

func (r *report) row(title string, c work, kind string, of map[string]*series) string {
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

// judge compares the results with the limits.
func (r *report) judge(c work, of map[string]*series, rate, p50, p99, memory float64) string {
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
