package main

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"slipway/backend/api"
	"slipway/backend/session"
	"slipway/build/bench/load"
	"slipway/build/bench/measure"
)

// many holds 1,000 streams open at once and reports what they take of the program's memory.
func (s *served) many() {
	const streams = 1000
	var began atomic.Int64
	before := s.memory("VmRSS")
	result := make(chan load.Result, 1)
	go func() {
		result <- load.Run(streams, streams, nil, func(int) load.Answer {
			return s.ours.Ask(s.ctx, load.Question{Words: 41, Stream: true, Numbered: true,
				Pace: 250 * time.Millisecond, Began: func() { began.Add(1) }})
		}, nil)
	}()
	var most, together int64
	var got load.Result
	for done := false; !done; {
		select {
		case got = <-result:
			done = true
		case <-time.After(50 * time.Millisecond):
			together = max(together, int64(s.now().Traffic.Outstanding))
			most = max(most, s.memory("VmRSS")-before)
		}
	}
	each := most / streams
	s.report(fmt.Sprintf("%d streams, %d of them at once", streams, together),
		fmt.Sprintf("%s, %d kB each", s.failures(got), each/1000), "", "0 failed, ≤ 100 kB each, all at once",
		len(got.Failed()) == 0 && each <= 100_000 && together == streams)
	left := s.until("idle", func(now api.Service) bool { return now.Traffic.Outstanding == 0 })
	s.report("requests under way after them", fmt.Sprint(left.Traffic.Outstanding), "", "0", true)
}

// paced asks for streams at the pace of a fast model, by each way in turn: how much later words come through a proxy,
// and what it takes of the processors.
func (s *served) paced() {
	proxy := s.front()
	defer proxy.stop()
	const clients, requests, words, pace = 8, 32, 32, 10 * time.Millisecond
	ways := []struct {
		load.Target
		pids []int
	}{{s.ours, append(s.guests(), s.command.Process.Pid)}, {s.nginx, proxy.processes()}, {s.direct, nil}}
	first, gaps, cpu := make([]samples, 3), make([]samples, 3), make([]samples, 3)
	failed := make([]int, 3)
	for i := range (rounds + 1) * len(ways) {
		n := i % len(ways)
		before := cpuOf(ways[n].pids)
		got := load.Run(clients, requests, nil, func(int) load.Answer {
			return ways[n].Ask(s.ctx, load.Question{Words: words, Stream: true, Numbered: true, Pace: pace})
		}, nil)
		took := cpuOf(ways[n].pids) - before
		if failed[n] += len(got.Failed()); i < len(ways) {
			continue // the first round warms up
		}
		first[n] = append(first[n], got.Median(func(a load.Answer) time.Duration { return a.First }))
		gaps[n] = append(gaps[n], got.Median(func(a load.Answer) time.Duration { return a.Gap }))
		cpu[n] = append(cpu[n], took/time.Duration(got.Words()))
	}
	added := func(of []samples, n int) time.Duration { return of[n].median() - of[2].median() }
	s.report(fmt.Sprintf("a word each %s, %d clients: the first word comes later by", pace, clients),
		"p50 "+ms(added(first, 0)), "nginx: p50 "+ms(added(first, 1)), "≤ 4 ms",
		added(first, 0) <= 4*time.Millisecond)
	s.report("the same, the longest gap between words is longer by", "p50 "+ms(added(gaps, 0)),
		"nginx: p50 "+ms(added(gaps, 1)), "≤ 5 ms", added(gaps, 0) <= 5*time.Millisecond)
	s.report("the same, CPU for each word, guests included", fmt.Sprintf("%d µs", cpu[0].median().Microseconds()),
		fmt.Sprintf("nginx: %d µs", cpu[1].median().Microseconds()), "≤ 130 µs",
		cpu[0].median() <= 130*time.Microsecond)
	s.report("the same, failed", fmt.Sprint(failed[0]), fmt.Sprintf("nginx: %d; direct: %d", failed[1], failed[2]),
		"0", failed[0] == 0)
}

// plain asks for short answers in one piece, by each way in turn: how many a second, and what one takes of the
// processors.
func (s *served) plain() {
	proxy := s.front()
	defer proxy.stop()
	const clients, requests = 16, 800
	ways := []struct {
		load.Target
		pids []int
	}{{s.ours, append(s.guests(), s.command.Process.Pid)}, {s.nginx, proxy.processes()}}
	rates, cpu, failed := make([][]float64, len(ways)), make([]samples, len(ways)), 0
	for i := range (rounds + 1) * len(ways) {
		n := i % len(ways)
		before := cpuOf(ways[n].pids)
		got := load.Run(clients, requests, nil, func(int) load.Answer {
			return ways[n].Ask(s.ctx, load.Question{Words: 4})
		}, nil)
		took := cpuOf(ways[n].pids) - before
		if failed += len(got.Failed()); i < len(ways) {
			continue // the first round warms up
		}
		rates[n] = append(rates[n], got.Rate())
		cpu[n] = append(cpu[n], took/requests)
	}
	share := measure.Median(rates[0]) / measure.Median(rates[1])
	s.add(row{fmt.Sprintf("plain answers, %d clients: requests a second", clients),
		fmt.Sprintf("%.0f", measure.Median(rates[0])), fmt.Sprintf("nginx: %.0f", measure.Median(rates[1])),
		fmt.Sprintf("%.2f", share), "≥ 0.25", share >= 0.25})
	s.report("the same, CPU for each request, guests included", fmt.Sprintf("%d µs", cpu[0].median().Microseconds()),
		fmt.Sprintf("nginx: %d µs", cpu[1].median().Microseconds()), "≤ 1,200 µs, 0 failed",
		cpu[0].median() <= 1200*time.Microsecond && failed == 0)
}

// measureWaking asks a service that sleeps: when its first word comes after its session runs.
func (b *bench) measureWaking() {
	s := b.serve("sleeper", modelImage, session.ServiceWish{Replicas: 1, Sleep: session.Duration(time.Minute)},
		modelServer()...)
	defer s.remove()
	measure.OK(s.ours.Ask(s.ctx, load.Question{Words: 8, Stream: true}).Err)
	s.wake(20)
	s.wake(300)
}

// wake asks a service that falls asleep with so many requests at once. The router holds 256 of them.
func (s *served) wake(requests int) {
	s.until("asleep", func(now api.Service) bool {
		return now.State == session.ServiceAsleep && len(now.Live) == 0
	})
	begin := time.Now()
	got := load.Run(requests, requests, nil, func(int) load.Answer {
		return s.ours.Ask(s.ctx, load.Question{Words: 8, Stream: true})
	}, nil)
	var times samples
	refused, failed := 0, 0
	for _, a := range got.Answers {
		refusal := &load.Refusal{}
		switch {
		case a.Err == nil:
			times = append(times, a.First)
		case errors.As(a.Err, &refusal) && refusal.Status == http.StatusServiceUnavailable && refusal.RetryAfter != "":
			refused++
		default:
			failed++
		}
	}
	first := begin.Add(slices.Min(times))
	live := s.ready().Live
	late := first.Sub(*s.session(live[0]).StartedAt)
	most := max(0, requests-256)
	s.report(fmt.Sprintf("from zero, %d requests at once: the first word after the session runs", requests),
		fmt.Sprintf("%s, %d answered, %d told when to ask again, %d failed", ms(late), len(times), refused, failed),
		fmt.Sprintf("%s after the request; %d session", ms(first.Sub(begin)), len(live)),
		fmt.Sprintf("≤ 1 s, %d told, 0 failed", most),
		late <= time.Second && refused == most && failed == 0 && len(live) == 1)
}
