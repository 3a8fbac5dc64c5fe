package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"slipway/backend/demo"
	"slipway/backend/demo/run"
	"slipway/backend/service"
	"slipway/build/bench/measure"
)

// starts is how many starts are measured.
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
