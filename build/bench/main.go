// Command bench measures the built program on a real Docker daemon: the time to a first prompt, the echo of a terminal,
// large output, many shells, long lists, large files and folders, also in a browser, the opening of the window, and the
// cost of idling, planning and sampling. It also kills the program a thousand times. It prints a Markdown table and
// fails when a limit is missed.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
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
	flag.StringVar(&b.o.only, "only", "", "only this measurement: start, echo, output, stall, list, files, browser, "+
		"window, idle, plan, sampler or deaths")
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
	host := cmp.Or(os.Getenv("SLIPWAY_TEST_DOCKER"), os.Getenv("DOCKER_HOST"))
	if host == "" {
		return errors.New(
			"set SLIPWAY_TEST_DOCKER to the address of a Docker daemon that has the test images; make bench does it")
	}
	if b.plane, err = startPlane(ctx, b.o.binary, host); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	b.describe()
	for _, m := range []struct {
		name string
		do   func()
	}{
		{"idle", b.measureIdle}, {"start", b.measureStart}, {"echo", b.measureEcho}, {"output", b.measureOutput},
		{"stall", b.measureStall}, {"list", b.measureList}, {"files", b.measureFiles}, {"browser", b.measureBrowser},
		{"window", b.measureWindow}, {"plan", b.measurePlan}, {"sampler", b.measureSampler},
		{"deaths", b.measureDeaths},
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
