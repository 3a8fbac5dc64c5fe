//go:build linux

// Command tunnel compares the tunnel with raw TCP, OpenSSH and a bare TLS relay: bulk, the echo of a key stroke while
// bulk saturates the path, opening streams, and the cost of idle ones. The two sides are in network namespaces joined
// by an emulated path, so it needs Linux, root and OpenSSH's server. It prints a Markdown table and fails when a limit
// is missed.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"slipway/build/bench/measure"
)

type options struct {
	rounds int
	warm   time.Duration
	time   time.Duration
	only   string
	kinds  string
	trace  bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if len(os.Args) == 3 && strings.HasPrefix(os.Args[1], "part-") {
		err = part(ctx, os.Args[1], os.Args[2])
	} else {
		err = whole(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "tunnel bench:", err)
		stop()
		os.Exit(1) //nolint:gocritic // the deferred stop has run
	}
}

var processes = map[string]func(context.Context, settings){"part-path": runPath, "part-target": runTarget,
	"part-near": runNear, "part-far": runFar, "part-client": runClient}

func part(ctx context.Context, name, setting string) error {
	run := processes[name]
	if run == nil {
		return fmt.Errorf("no part is called %s", name)
	}
	return measure.Run(func() {
		var s settings
		measure.OK(json.Unmarshal([]byte(setting), &s))
		run(ctx, s)
	})
}

func whole(ctx context.Context) error {
	var o options
	flag.IntVar(&o.rounds, "rounds", 5, "rounds, of which the median counts; the variants take turns within one")
	flag.DurationVar(&o.warm, "warm", 3*time.Second, "how long each measurement runs before it counts")
	flag.DurationVar(&o.time, "time", 5*time.Second, "how long it counts")
	flag.StringVar(&o.only, "only", "", "only scenarios whose name contains this")
	flag.StringVar(&o.kinds, "variants", "raw,ours,ours1,ssh,tls", "the variants to measure")
	flag.BoolVar(&o.trace, "trace", false, "print every measurement as it is made")
	flag.Parse()
	r := &report{}
	err := measureAll(ctx, o, r)
	r.print(os.Stdout, o)
	if err == nil && r.missed > 0 {
		err = fmt.Errorf("%d limits were missed", r.missed)
	}
	return err
}
