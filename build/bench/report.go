package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

// row is one line of the table.
type row struct {
	what, value, compared, ratio, limit string
	kept                                bool
}

// report gathers rows.
type report struct {
	conditions []string
	rows       []row
	missed     int
}

func (r *report) add(w row) {
	if !w.kept {
		r.missed++
	}
	r.rows = append(r.rows, w)
}

// describe notes the conditions of the run.
func (r *report) describe(ctx context.Context, p *plane, o options) {
	version := strings.TrimSpace(output(ctx, p, "docker", "version", "--format",
		"{{.Server.Version}} (client {{.Client.Version}})"))
	cpu := "unknown CPU"
	if data, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(data)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				cpu = strings.TrimSpace(value)
				break
			}
		}
	}
	load := "?"
	if data, err := os.ReadFile("/proc/loadavg"); err == nil {
		load, _, _ = strings.Cut(string(data), " ")
	}
	r.conditions = append(r.conditions,
		fmt.Sprintf("%d × %s, %s/%s, load %s when it began", runtime.NumCPU(), cpu, runtime.GOOS, runtime.GOARCH, load),
		fmt.Sprintf("Docker %s, image %s, 1 CPU, 512 MiB, 64 MiB shm", version, o.image),
		fmt.Sprintf("%s, %s", strings.TrimSpace(output(ctx, p, o.binary, "version")),
			time.Now().UTC().Format(time.RFC3339)),
	)
}

func output(ctx context.Context, p *plane, name string, args ...string) string {
	command := exec.CommandContext(ctx, name, args...)
	command.Env = p.env
	data, err := command.Output()
	if err != nil {
		return "unknown"
	}
	first, _, _ := bytes.Cut(data, []byte{'\n'})
	return string(first)
}

// print writes the table.
func (r *report) print(w io.Writer, o options) {
	if len(r.rows) == 0 {
		return
	}
	var b strings.Builder
	b.WriteString("\n")
	for _, c := range r.conditions {
		fmt.Fprintf(&b, "- %s\n", c)
	}
	fmt.Fprintf(&b, "- %d pairs of starts, %d echoes a measurement; medians and ratios of this one run\n\n", o.pairs,
		o.echoes)
	b.WriteString("| measured | Slipway | compared with | ratio | limit | |\n|---|---|---|---|---|---|\n")
	for _, row := range r.rows {
		mark := "✓"
		if !row.kept {
			mark = "✗ missed"
		}
		if row.limit == "" {
			mark = ""
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", row.what, row.value, row.compared, row.ratio, row.limit,
			mark)
	}
	fmt.Fprintln(w, b.String()) //nolint:errcheck // standard output
}

// samples are lengths of time.
type samples []time.Duration

// quantile returns the sample below which the share q of all lies.
func (s samples) quantile(q float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func (s samples) median() time.Duration { return s.quantile(0.5) }

func (s samples) text() string {
	return fmt.Sprintf("p50 %s, p99 %s", ms(s.median()), ms(s.quantile(0.99)))
}

func ms(d time.Duration) string {
	return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
}

func ratio(a, b time.Duration) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}
