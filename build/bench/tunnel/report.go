//go:build linux

package main

import (
	"fmt"
	"io"
	"strings"

	"slipway/build/bench/measure"
)

// findings are the outcomes of one scenario, by case and variant.
type findings struct {
	s      scenario
	rate   []map[string][]float64 // of each round
	p50    []map[string][]float64 // of each round
	p99    []map[string][]float64
	memory []map[string][]float64
}

func newFindings(s scenario) *findings {
	f := &findings{s: s}
	for _, all := range []*[]map[string][]float64{&f.rate, &f.p50, &f.p99, &f.memory} {
		for range s.cases {
			*all = append(*all, map[string][]float64{})
		}
	}
	return f
}

func (f *findings) add(i int, kind string, out outcome) {
	f.rate[i][kind] = append(f.rate[i][kind], out.Rate)
	f.p50[i][kind] = append(f.p50[i][kind], measure.Median(out.Echo))
	f.p99[i][kind] = append(f.p99[i][kind], measure.Quantile(out.Echo, 0.99))
}

// report collects the findings.
type report struct {
	all    []*findings
	missed int
}

func (r *report) add(f *findings) { r.all = append(r.all, f) }

// print prints the table; what misses a limit has a mark.
func (r *report) print(w io.Writer, o options) {
	fmt.Fprintf(w, "| medians of %d rounds | variant | bulk MB/s | of raw | echo p50 ms | p99 ms | note "+
		"|\n|---|---|---|---|---|---|---|\n", o.rounds)
	for _, f := range r.all {
		for i, c := range f.s.cases {
			for _, kind := range f.s.kinds {
				if len(f.p50[i][kind]) > 0 || len(f.memory[i][kind]) > 0 {
					fmt.Fprintln(w, r.row(f, i, c, kind))
				}
			}
		}
	}
}

func (r *report) row(f *findings, i int, c work, kind string) string {
	rate, p50, p99 := measure.Median(f.rate[i][kind]), measure.Median(f.p50[i][kind]), measure.Median(f.p99[i][kind])
	cells := []string{f.s.name + ", " + c.title(), kind, "", "", "", "", ""}
	if rate > 0 {
		cells[2] = fmt.Sprintf("%.2f", rate/1e6)
		if raw := measure.Median(f.rate[i]["raw"]); raw > 0 {
			cells[3] = fmt.Sprintf("%.3f", rate/raw)
		}
	}
	if p50 > 0 {
		cells[4], cells[5] = fmt.Sprintf("%.2f", p50), fmt.Sprintf("%.2f", p99)
	}
	memory := measure.Median(f.memory[i][kind])
	if memory > 0 {
		cells[6] = fmt.Sprintf("%.1f MiB a side at most", memory/(1<<20))
	}
	if kind == "ours" {
		if cells[6] != "" {
			cells[6] += ", "
		}
		cells[6] += r.judge(f, i, c, rate, p50, p99, memory)
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

// judge says which limits ours reaches.
func (r *report) judge(f *findings, i int, c work, rate, p50, p99, memory float64) string {
	var said []string
	check := func(fine bool, format string, values ...any) {
		text := fmt.Sprintf(format, values...)
		if !fine {
			text = "**missed: " + text + "**"
			r.missed++
		}
		said = append(said, text)
	}
	if base := measure.Median(f.rate[i][c.limits.base]); c.limits.ratio > 0 && base > 0 {
		check(rate/base >= c.limits.ratio, "%.3f of %s ≥ %.2f", rate/base, c.limits.base, c.limits.ratio)
	}
	if raw := measure.Median(f.p50[i]["raw"]); c.limits.beyond > 0 && raw > 0 {
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
