//go:build linux && cgo

package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// workCommand makes this program a worker.
const workCommand = "work"

// period is the length of one duty cycle.
const period = 100 * time.Millisecond

// work loads the device until stdin ends. It answers "mark" with its work since the last line, and "take N" with its
// memory after allocating N bytes more.
func work(args []string, out io.Writer) error {
	flags := flag.NewFlagSet(workCommand, flag.ContinueOnError)
	device := flags.String("device", "", "UUID")
	duty := flags.Int("duty", 0, "percent of the time that the device is to be busy")
	if err := flags.Parse(args); err != nil {
		return err
	}
	runtime.LockOSThread() // CUDA's context belongs to a thread
	if err := openCUDA(*device); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, "ready"); err != nil {
		return err
	}
	lines := make(chan string)
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			lines <- in.Text()
		}
		close(lines)
	}()
	var done result
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				return nil
			}
			if err := answer(line, &done, out); err != nil {
				return err
			}
		case <-tick.C:
			if *duty == 0 {
				continue
			}
			busy, err := spin(period * time.Duration(*duty) / 100)
			if err != nil {
				return err
			}
			done.BusyMs += busy.Seconds() * 1000
			done.Kernels++
		}
	}
}

func answer(line string, done *result, out io.Writer) error {
	if amount, ok := strings.CutPrefix(line, "take "); ok {
		n, err := strconv.ParseInt(amount, 10, 64)
		if err != nil {
			return err
		}
		if n > 0 {
			if err := take(n); err != nil {
				return err
			}
			done.Allocated += n
		}
	}
	if err := json.NewEncoder(out).Encode(*done); err != nil {
		return err
	}
	done.BusyMs, done.Kernels = 0, 0
	return nil
}
