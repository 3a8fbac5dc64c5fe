package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"time"

	"slipway/build/bench/measure"
)

// figuresName is the file in which a process tells of itself, a line of JSON each.
const figuresName = "soak-figures"

// figure is the memory and goroutines of one process at one moment.
type figure struct {
	Process string        `json:"process"`
	After   time.Duration `json:"after"`
	// bytes of anonymous memory; 0 where the system does not report it
	Own        uint64 `json:"own"`
	Heap       uint64 `json:"heap"` // bytes of them in use after a collection
	Goroutines int    `json:"goroutines"`
}

// samplings is how many readings make one figure. The least counts, because calls in progress use memory.
const samplings = 10

// watch writes down what this process has, again and again until ctx ends.
func watch(ctx context.Context, process, path string, every time.Duration) {
	began, ticker := time.Now(), time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		f := least(ctx)
		f.Own = ownNow()
		if ctx.Err() != nil {
			return // what is being ended has less
		}
		f.Process, f.After = process, time.Since(began)
		fmt.Printf("%s %-12s %7.2f MiB, %6.2f MiB of it heap, %5d goroutines\n", f.After.Round(time.Second), f.Process,
			mib(f.Own), mib(f.Heap), f.Goroutines)
		if dir := os.Getenv(profilesVariable); dir != "" {
			if err := profile(filepath.Join(dir,
				fmt.Sprintf("%s-%s.heap", process, f.After.Round(time.Second)))); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
		if err := note(path, f); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}

func least(ctx context.Context) figure {
	f := figure{Heap: math.MaxUint64, Goroutines: math.MaxInt}
	for range samplings {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		f.Heap, f.Goroutines = min(f.Heap, m.HeapAlloc), min(f.Goroutines, runtime.NumGoroutine())
		wait(ctx, 50*time.Millisecond)
	}
	return f
}

// ownNow returns the anonymous memory after freeing what is unused; 0 where the system does not report it.
func ownNow() uint64 {
	debug.FreeOSMemory()
	own, _ := measure.Memory(os.Getpid(), "RssAnon")
	return uint64(own)
}

func mib(bytes uint64) float64 { return float64(bytes) / (1 << 20) }

func note(path string, f figure) error {
	line, err := json.Marshal(f)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}

// Limits of the growth since the first hour: the heap as a ratio, goroutines by those of a few running sessions. In a
// short run, which does not fill the hour of samples, the heap may double. Other memory is printed but not judged: it
// follows the busiest moment.
const (
	mostHeap       = 1.10
	mostHeapQuick  = 2.0
	mostGoroutines = 60
	lastFigures    = 5
)

// judgeFigures fails if a process has grown.
func (s soak) judgeFigures(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var all []figure
	for line := range strings.Lines(string(data)) {
		var f figure
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			return err
		}
		all = append(all, f)
	}
	if len(all) < 2 {
		return fmt.Errorf("%d figures in %s: it was too short", len(all), path)
	}
	first, last := all[0], middle(all[max(1, len(all)-lastFigures):])
	most := mostHeap
	if s.quick {
		most = mostHeapQuick
	}
	fmt.Printf("%s: after the first hour and at the end %.2f MiB and %.2f MiB, of it heap %.2f MiB and %.2f MiB; %d "+
		"and %d goroutines\n", first.Process, mib(first.Own), mib(last.Own), mib(first.Heap), mib(last.Heap),
		first.Goroutines, last.Goroutines)
	if float64(last.Heap) > most*float64(first.Heap) {
		return fmt.Errorf("%s: the heap has grown from %d to %d bytes since the first hour", first.Process, first.Heap,
			last.Heap)
	}
	if last.Goroutines > first.Goroutines+mostGoroutines {
		return fmt.Errorf("%s: goroutines have grown from %d to %d", first.Process, first.Goroutines, last.Goroutines)
	}
	return nil
}

// profilesVariable is a folder for a heap profile at each figure; empty: none.
const profilesVariable = "SLIPWAY_SOAK_PROFILES"

func profile(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(pprof.WriteHeapProfile(file), file.Close())
}

// middle is the median of each field.
func middle(figures []figure) figure {
	var owns, heaps []uint64
	var goroutines []int
	for _, f := range figures {
		owns, heaps, goroutines = append(owns, f.Own), append(heaps, f.Heap), append(goroutines, f.Goroutines)
	}
	return figure{Process: figures[0].Process, Own: measure.Median(owns), Heap: measure.Median(heaps),
		Goroutines: measure.Median(goroutines)}
}
