// Command soak serves a demonstration for hours of its own time, with somebody who
// looks at it, opens terminals, launches, ends, and closes the lid. It prints
// how long it takes to be ready, and once an hour of its time how much memory and how many goroutines both of its
// processes have, and fails where they grow, where the books do not balance, or
// where a log complains.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"time"

	"slipway/backend/client"
	"slipway/backend/demo"
	"slipway/backend/demo/run"
	"slipway/backend/place"
	"slipway/backend/service"
)

func main() {
	runtime.MemProfileRate = 0 // a profile takes memory of its own
	if os.Getenv(profilesVariable) != "" {
		runtime.MemProfileRate = 4 << 10 // bytes; what grows is small
	}
	if len(os.Args) > 1 && os.Args[1] == run.LabCommand {
		os.Exit(lab(os.Args[2:]))
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

// lab is the second process of the demonstration, which is watched as the first is.
func lab(args []string) int {
	said := &once{Writer: os.Stdout}
	if every, err := time.ParseDuration(os.Getenv(everyVariable)); err == nil && len(args) == 1 {
		said.then = func() { go watch(context.Background(), "lab", place.Home{Dir: args[0]}.Join(figuresName), every) }
	}
	return run.LabMain(args, nil, os.Stdin, said, os.Stderr)
}

// once does something after the first write, which says that the lab answers.
type once struct {
	io.Writer
	then func()
}

func (o *once) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if o.then != nil {
		o.then()
		o.then = nil
	}
	return n, err
}

// everyVariable says to the lab server how often it is to look at itself.
const everyVariable = "SLIPWAY_SOAK_EVERY"

// soak is one run.
type soak struct {
	speed  int
	length time.Duration
	every  time.Duration // between two figures
	seed   uint64
	quick  bool // it is too short for what fills up in the first hour to be full
}

// run serves the demonstration and judges it.
func (s soak) run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "slipway-soak-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Setenv(everyVariable, s.every.String()); err != nil {
		return err
	}
	home := place.Home{Dir: dir}
	if err := s.serve(ctx, home); err != nil {
		return err
	}
	return errors.Join(
		s.judgeFigures(home.Join(figuresName)), s.judgeFigures(demo.LabHome(home).Join(figuresName)),
		judgeBooks(home), judgeBooks(demo.LabHome(home)), judgeLogs(home),
	)
}

// serve serves it for as long as it is asked to, with somebody who uses it.
func (s soak) serve(ctx context.Context, home place.Home) error {
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
		return fmt.Errorf("the demonstration is not served: %w", err)
	case <-ready:
		c, err := client.Connect(ctx, home)
		if err != nil {
			return errors.Join(err, stop(cancel, ended))
		}
		using := make(chan error, 1)
		p := &person{c}
		go func() { using <- p.use(ctx) }()
		go watch(ctx, "workstation", home.Join(figuresName), s.every)
		err = <-using
		return errors.Join(err, stop(cancel, ended))
	}
}

// stop ends the demonstration and waits for it.
func stop(cancel context.CancelFunc, ended <-chan error) error {
	cancel()
	err := <-ended
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
