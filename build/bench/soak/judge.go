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

	"slipway/backend/place"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/build/bench/measure"
	"slipway/gpu"
)

// figure is the memory and goroutines of one process at one moment.
type figure struct {
	own        uint64 // bytes of anonymous memory; 0 where the system does not report it
	heap       uint64 // bytes of them in use after a collection
	goroutines int
}

// samplings is how many readings make one figure. The least counts, because calls in progress use memory.
const samplings = 10

// process is the name of this process in what is printed.
const process = "workstation"

// watch prints and returns the figures of this process until ctx ends.
func watch(ctx context.Context, every time.Duration) (all []figure) {
	began, ticker := time.Now(), time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return all
		case <-ticker.C:
		}
		f := least(ctx)
		f.own = ownNow()
		if ctx.Err() != nil {
			return all // a process that is ending has less
		}
		after := time.Since(began).Round(time.Second)
		fmt.Printf("%s %-12s %7.2f MiB, %6.2f MiB of it heap, %5d goroutines\n", after, process, mib(f.own),
			mib(f.heap), f.goroutines)
		if dir := os.Getenv(profilesVariable); dir != "" {
			if err := profile(filepath.Join(dir, fmt.Sprintf("%s-%s.heap", process, after))); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
		all = append(all, f)
	}
}

func least(ctx context.Context) figure {
	f := figure{heap: math.MaxUint64, goroutines: math.MaxInt}
	for range samplings {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		f.heap, f.goroutines = min(f.heap, m.HeapAlloc), min(f.goroutines, runtime.NumGoroutine())
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
func (s soak) judgeFigures(all []figure) error {
	if len(all) < 2 {
		return fmt.Errorf("%d figures: it was too short", len(all))
	}
	first, last := all[0], middle(all[max(1, len(all)-lastFigures):])
	most := mostHeap
	if s.quick {
		most = mostHeapQuick
	}
	fmt.Printf("%s: after the first hour and at the end %.2f MiB and %.2f MiB, of it heap %.2f MiB and %.2f MiB; %d "+
		"and %d goroutines\n", process, mib(first.own), mib(last.own), mib(first.heap), mib(last.heap),
		first.goroutines, last.goroutines)
	if float64(last.heap) > most*float64(first.heap) {
		return fmt.Errorf("%s: the heap has grown from %d to %d bytes since the first hour", process, first.heap,
			last.heap)
	}
	if last.goroutines > first.goroutines+mostGoroutines {
		return fmt.Errorf("%s: goroutines have grown from %d to %d", process, first.goroutines, last.goroutines)
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

func middle(figures []figure) figure {
	var owns, heaps []uint64
	var goroutines []int
	for _, f := range figures {
		owns, heaps, goroutines = append(owns, f.own), append(heaps, f.heap), append(goroutines, f.goroutines)
	}
	return figure{own: measure.Median(owns), heap: measure.Median(heaps), goroutines: measure.Median(goroutines)}
}

// judgeBooks fails if the records of a machine contradict each other, its accounts do not balance, or a session is not
// charged for the time that it had devices.
func judgeBooks(home place.Home) (err error) {
	books, err := store.Open(store.Config{Path: home.Join("sim", "agent.db")})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, books.Close()) }()
	var errs []error
	err = measure.Run(func() {
		for _, problem := range measure.Get(books.Check()) {
			errs = append(errs, fmt.Errorf("%s: %s", home.Dir, problem))
		}
		var state gpu.State
		measure.Get(books.Account("gpu/state", &state))
		errs = append(errs, gpu.NewAccounts(state).Check()...)
		errs = append(errs, judgeCharges(books)...)
	})
	return errors.Join(append(errs, err)...)
}

// judgeCharges compares what sessions had with what they are charged.
func judgeCharges(books *store.Store) (errs []error) {
	charged := map[string]gpu.Counters{}
	measure.OK(books.EachAccount("gpu/row/", "gpu/row0", func(_ string, data []byte) error {
		var row gpu.Row
		if err := json.Unmarshal(data, &row); err != nil {
			return err
		}
		sum := charged[row.Session]
		sum.Add(row.Counters)
		charged[row.Session] = sum
		return nil
	}))
	ended := measure.Get(books.List(session.Filter{Finished: true}))
	held := 0
	for _, s := range ended {
		var share gpu.Share
		for _, g := range s.Grants.GPUs {
			share += g.Share
		}
		if share == 0 || s.StartedAt == nil || s.TerminatedAt == nil {
			continue
		}
		held++
		want := int64(share) * s.TerminatedAt.Sub(*s.StartedAt).Milliseconds() / int64(gpu.WholeDevice)
		// Rows are in whole milliseconds, one for each device.
		if got := charged[string(s.ID)].AllocGPUMs; got < want-int64(2*len(s.Grants.GPUs)) ||
			got > want+int64(2*len(s.Grants.GPUs)) {
			errs = append(errs, fmt.Errorf("%s held %d GPU-ms and is charged %d", s.Name, want, got))
		}
	}
	fmt.Printf("%d sessions have ended, %d of them held devices\n", len(ended), held)
	return errs
}

// judgeLogs fails if a log has warnings or errors.
func judgeLogs(home place.Home) error {
	var errs []error
	for _, path := range []string{home.LogFile(), home.Join("lab", "agent.log")} {
		data, err := os.ReadFile(path)
		errs = append(errs, err)
		for line := range strings.Lines(string(data)) {
			if strings.Contains(line, "an agent is not reached") {
				continue // the lid was closed
			}
			if strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR") {
				errs = append(errs, fmt.Errorf("%s: %s", path, strings.TrimSpace(line)))
			}
		}
	}
	return errors.Join(errs...)
}
