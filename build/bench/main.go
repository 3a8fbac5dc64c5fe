// Command bench measures the built program on a real Docker daemon: the time to a first prompt, the echo of a terminal,
// large output, many shells, long lists, large files and folders, also in a browser, the opening of the window, a model
// that is served beside nginx, a session of a Slurm cluster beside ssh, and the cost of idling, planning and sampling.
// It also kills the program a thousand times. It prints a Markdown table and fails when a limit is missed.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"time"

	"slipway/build/bench/measure"
)

type options struct {
	binary  string
	image   string
	pairs   int
	echoes  int
	records int
	deaths  int
	idle    time.Duration
	copies  int
	windows int
	clicks  int
	only    string
}

type bench struct {
	*plane
	o options
	report
}

func main() {
	b := &bench{}
	flag.StringVar(&b.o.binary, "binary", "build/bin/slipway", "the program to measure")
	flag.StringVar(&b.o.image, "image", "slipway-test/minimal:1", "an image with bash that the daemon has")
	flag.IntVar(&b.o.pairs, "pairs", 20, "pairs of starts, interleaved")
	flag.IntVar(&b.o.echoes, "echoes", 1000, "bytes typed for each echo measurement")
	flag.IntVar(&b.o.records, "records", 1000, "finished sessions in the list")
	flag.DurationVar(&b.o.idle, "idle", 20*time.Second, "how long idleness is watched")
	flag.IntVar(&b.o.deaths, "deaths", 1000, "how often the program is killed")
	flag.IntVar(&b.o.copies, "copies", 5, "how often 1 GiB is copied in each way")
	flag.IntVar(&b.o.windows, "windows", 5, "how often the window is opened")
	flag.IntVar(&b.o.clicks, "clicks", 7, "how often a quick start is clicked")
	flag.StringVar(&b.o.only, "only", "",
		"only this: start, click, echo, output, stall, list, files, browser, waiting, window, inference, idle, plan, "+
			"sampler, deaths or cluster")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := b.run(ctx)
	b.print(os.Stdout, b.o)
	if err == nil && b.missed > 0 {
		err = fmt.Errorf("%d limits were missed", b.missed)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1) //nolint:gocritic // the deferred stop has run
	}
}

// run runs the measurements one after another on one control plane.
func (b *bench) run(ctx context.Context) (err error) {
	host := dockerHost()
	if host == "" {
		return errors.New(
			"set SLIPWAY_TEST_DOCKER to the address of a Docker daemon that has the test images; make bench does it")
	}
	if b.plane, err = startPlane(ctx, b.o.binary, host, noneWaits); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	b.describe()
	for _, m := range []struct {
		name string
		do   func()
	}{
		{"idle", b.measureIdle}, {"start", b.measureStart}, {"warm", b.measureWarm},
		{"click", b.measureClick}, {"project", b.measureProject},
		{"echo", b.measureEcho}, {"output", b.measureOutput},
		{"stall", b.measureStall}, {"list", b.measureList}, {"files", b.measureFiles}, {"browser", b.measureBrowser},
		{"waiting", b.measureWaiting}, {"window", b.measureWindow}, {"inference", b.measureInference},
		{"plan", b.measurePlan},
		{"sampler", b.measureSampler}, {"deaths", b.measureDeaths},
		{"cluster", b.measureCluster},
	} {
		if b.o.only != "" && b.o.only != m.name {
			continue
		}
		fmt.Fprintf(os.Stderr, "bench: %s …\n", m.name)
		if err := measure.Run(m.do); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

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
