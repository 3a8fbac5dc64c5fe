// Command soak serves a demonstration for hours of its own time to a simulated person who looks at it, opens terminals,
// launches and ends sessions, and closes the lid. It prints the time to start, and the memory and goroutines once an
// hour of its time. It fails if they grow, the accounts do not balance, or a log has warnings.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"time"

	"slipway/backend/client"
	"slipway/backend/demo"
	"slipway/backend/demo/run"
	"slipway/backend/place"
	"slipway/backend/service"
	"slipway/build/bench/measure"
)

func main() {
	runtime.MemProfileRate = 0 // a profile takes memory of its own
	if os.Getenv(profilesVariable) != "" {
		runtime.MemProfileRate = 4 << 10 // bytes; what grows is small
	}
	var s soak
	flag.IntVar(&s.speed, "speed", demo.MostSpeed, "how much faster time goes by")
	flag.DurationVar(&s.length, "for", time.Hour, "how long it is served")
	flag.Uint64Var(&s.seed, "seed", 1, "the seed of the demonstration")
	flag.Parse()
	s.every = time.Hour / time.Duration(s.speed)
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	if err := errors.Join(measureStart(ctx, s.seed), s.run(ctx)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		cancel()
		os.Exit(1)
	}
	fmt.Println("All is well.")
}

type soak struct {
	speed  int
	length time.Duration
	every  time.Duration // between two figures
	seed   uint64
	quick  bool // it is too short for what fills up in the first hour to be full
}

func (s soak) run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "slipway-soak-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	home := place.Home{Dir: dir}
	figures, err := s.serve(ctx, home)
	if err != nil {
		return err
	}
	return errors.Join(s.judgeFigures(figures), judgeBooks(home), judgeBooks(demo.LabHome(home)), judgeLogs(home))
}

func (s soak) serve(ctx context.Context, home place.Home) ([]figure, error) {
	ctx, cancel := context.WithTimeout(ctx, s.length)
	defer cancel()
	ready, ended := make(chan service.Ready, 1), make(chan error, 1)
	go func() {
		ended <- run.Demo(ctx, run.Config{
			Options: demo.Options{Seed: s.seed, Speed: s.speed}, Keep: home.Dir,
			Ready: func(r service.Ready, _ string) { ready <- r },
		})
	}()
	select {
	case err := <-ended:
		return nil, fmt.Errorf("the demonstration is not served: %w", err)
	case <-ready:
		c, err := client.Connect(ctx, home)
		if err != nil {
			return nil, errors.Join(err, stop(cancel, ended))
		}
		watched := make(chan []figure, 1)
		go func() { watched <- watch(ctx, s.every) }()
		err = (&person{c}).use(ctx)
		err = errors.Join(err, stop(cancel, ended))
		return <-watched, err
	}
}

func stop(cancel context.CancelFunc, ended <-chan error) error {
	cancel()
	err := <-ended
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

const starts = 5

// measureStart prints the time until a new demonstration answers, with its lab server connected and its past made up.
func measureStart(ctx context.Context, seed uint64) error {
	var all []time.Duration
	for range starts {
		took, err := start(ctx, seed)
		if err != nil {
			return err
		}
		all = append(all, took)
	}
	fmt.Printf("ready in %s (median of %d; %s to %s)\n", measure.Median(all).Round(time.Millisecond), starts,
		slices.Min(all).Round(time.Millisecond), slices.Max(all).Round(time.Millisecond))
	return nil
}

func start(ctx context.Context, seed uint64) (took time.Duration, err error) {
	dir, err := os.MkdirTemp("", "slipway-soak-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	began := time.Now()
	err = run.Demo(ctx, run.Config{Options: demo.Options{Seed: seed}, Keep: dir,
		Ready: func(service.Ready, string) {
			took = time.Since(began)
			cancel()
		}})
	if took > 0 && errors.Is(err, context.Canceled) {
		err = nil
	}
	return took, err
}
