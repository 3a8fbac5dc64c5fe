// Command bench measures what Slipway adds to Docker, on a real daemon and with
// the program as it was built: the time to a first prompt, the echo of a
// terminal, a large output, many shells, a long list, large files and large
// folders, the same by the pages in a browser, the opening of the window, and what it costs to do nothing, to plan and
// to sample. It kills the program a thousand times besides.
// It prints a Markdown table and fails when a limit is missed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

// options are the flags.
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
	only    string
}

func main() {
	var o options
	flag.StringVar(&o.binary, "binary", "build/bin/slipway", "the program to measure")
	flag.StringVar(&o.image, "image", "slipway-test/minimal:1", "an image with bash that the daemon has")
	flag.IntVar(&o.pairs, "pairs", 20, "pairs of starts, interleaved")
	flag.IntVar(&o.echoes, "echoes", 1000, "bytes typed for each echo measurement")
	flag.IntVar(&o.records, "records", 1000, "finished sessions in the list")
	flag.DurationVar(&o.idle, "idle", 20*time.Second, "how long idleness is watched")
	flag.IntVar(&o.deaths, "deaths", 1000, "how often the program is killed")
	flag.IntVar(&o.copies, "copies", 5, "how often 1 GiB is copied in each way")
	flag.IntVar(&o.windows, "windows", 5, "how often the window is opened")
	flag.StringVar(&o.only, "only", "", "only this measurement: start, echo, output, stall, list, files, browser, "+
		"window, idle, plan, sampler or deaths")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	report := &report{}
	err := run(ctx, o, report)
	report.print(os.Stdout, o)
	if err == nil && report.missed > 0 {
		err = fmt.Errorf("%d limits were missed", report.missed)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1) //nolint:gocritic // the deferred stop has run
	}
}

// run does the measurements one after another on one control plane.
func run(ctx context.Context, o options, r *report) (err error) {
	host := os.Getenv("SLIPWAY_TEST_DOCKER")
	if host == "" {
		host = os.Getenv("DOCKER_HOST")
	}
	if host == "" {
		return errors.New(
			"set SLIPWAY_TEST_DOCKER to the address of a Docker daemon that has the test images; make bench does it")
	}
	p, err := startPlane(ctx, o.binary, host)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	r.describe(ctx, p, o)
	for _, m := range []struct {
		name string
		run  func(context.Context, *plane, options, *report) error
	}{
		{"idle", measureIdle}, {"start", measureStart}, {"echo", measureEcho}, {"output", measureOutput},
		{"stall", measureStall}, {"list", measureList}, {"files", measureFiles}, {"browser", measureBrowser},
		{"window", measureWindow},
		{"plan", measurePlan}, {"sampler", measureSampler}, {"deaths", measureDeaths},
	} {
		if o.only != "" && o.only != m.name {
			continue
		}
		fmt.Fprintf(os.Stderr, "bench: %s …\n", m.name)
		if err := m.run(ctx, p, o, r); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}
