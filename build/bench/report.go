package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"slipway/build/bench/measure"
)

type row struct {
	what, value, compared, ratio, limit string
	kept                                bool
}

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

// against is a row that compares times. most is the largest ratio allowed; 0: any.
func against(what string, ours samples, whom string, theirs samples, limit string, most float64) row {
	x := ratio(ours.median(), theirs.median())
	return row{what, ours.text(), whom + ": " + theirs.text(), fmt.Sprintf("%.2f", x), limit, most == 0 || x <= most}
}

func (b *bench) describe() {
	version := strings.TrimSpace(b.output("docker", "version", "--format",
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
	b.conditions = append(b.conditions,
		fmt.Sprintf("%d × %s, %s/%s, load %s when it began", runtime.NumCPU(), cpu, runtime.GOOS, runtime.GOARCH, load),
		fmt.Sprintf("Docker %s, image %s, 1 CPU, 512 MiB, 64 MiB shm", version, b.o.image),
		fmt.Sprintf("%s, %s", strings.TrimSpace(b.output(b.o.binary, "version")),
			time.Now().UTC().Format(time.RFC3339)),
	)
}

func (b *bench) output(name string, args ...string) string {
	command := exec.CommandContext(b.ctx, name, args...)
	command.Env = b.env
	data, err := command.Output()
	if err != nil {
		return "unknown"
	}
	first, _, _ := bytes.Cut(data, []byte{'\n'})
	return string(first)
}

func (r *report) print(w io.Writer, o options) {
	if len(r.rows) == 0 {
		return
	}
	fmt.Fprintln(w)
	for _, c := range r.conditions {
		fmt.Fprintf(w, "- %s\n", c)
	}
	fmt.Fprintf(w, "- %d pairs of starts, %d echoes a measurement; medians and ratios of this one run\n\n"+
		"| measured | Slipway | compared with | ratio | limit | |\n|---|---|---|---|---|---|\n", o.pairs, o.echoes)
	for _, row := range r.rows {
		mark := "✓"
		if !row.kept {
			mark = "✗ missed"
		}
		if row.limit == "" {
			mark = ""
		}
		cells := []string{row.what, row.value, row.compared, row.ratio, row.limit, mark}
		fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
	}
	fmt.Fprintln(w)
}

type samples []time.Duration

func (s samples) median() time.Duration { return measure.Median(s) }

func (s samples) text() string {
	return fmt.Sprintf("p50 %s, p99 %s", ms(s.median()), ms(measure.Quantile(s, 0.99)))
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
