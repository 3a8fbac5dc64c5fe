package scheduler

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// crowded is a machine with 8 devices, all of them taken by 30 sessions, and
// 1,000 that wait, hardly two of which ask for the same.
func crowded() Snapshot {
	r := rand.New(rand.NewPCG(1, 1))
	s := Snapshot{Machine: Machine{Memory: 512 * gpu.GiB}}
	for i := range 64 {
		s.Machine.CPUs = append(s.Machine.CPUs, i)
	}
	for i := range 8 {
		id := gpu.UUID(fmt.Sprint("GPU-", i))
		s.Machine.Devices = append(s.Machine.Devices, gpu.Device{UUID: id, Model: "T", Index: i, Memory: 80 * gpu.GiB})
		s.Machine.Measured = append(s.Machine.Measured,
			Measured{Device: id, Free: 4 * gpu.GiB,
				Foreign: []Foreign{{PID: 100 + i, Name: "python", Memory: 2 * gpu.GiB}}})
	}
	var runs []Run
	for i := range 500 {
		runs = append(runs, Run{Kinds: []string{fmt.Sprint("kind", i%7)}, Length: time.Duration(1+r.IntN(600)) *
			time.Minute})
	}
	s.History = NewHistory(runs)
	for i := range 30 {
		since := noon.Add(-time.Duration(r.IntN(300)) * time.Minute)
		p := Promise{Session: session.ID(fmt.Sprint("run", i)), Name: fmt.Sprint("run-", i), Since: &since,
			Kinds:  []string{fmt.Sprint("kind", i%7)},
			Grants: session.Grants{CPUs: []int{2 * i, 2*i + 1}, Memory: 16 * gpu.GiB}}
		if i < 24 {
			p.Grants.GPUs = []gpu.Grant{{Device: gpu.UUID(fmt.Sprint("GPU-", i%8)), Share: 300, Memory: 24 * gpu.GiB}}
		}
		if i%2 == 0 {
			ends := noon.Add(time.Duration(1+r.IntN(600)) * time.Minute)
			p.Ends = &ends
		}
		s.Promised = append(s.Promised, p)
	}
	for i := range 1000 {
		q := Request{Session: session.ID(fmt.Sprintf("q%04d", i)), Name: fmt.Sprint("wait-", i),
			Resources: session.Resources{CPU: 1 + r.IntN(8), Memory: gpu.Bytes(1+r.IntN(64)) * gpu.GiB},
			Priority:  r.IntN(20), Kinds: []string{fmt.Sprint("kind", i%7)}}
		switch r.IntN(4) {
		case 0:
			q.GPU.Shares = gpu.Share(1+r.IntN(10)) * 100
		case 1:
			q.GPU.Devices = 1 + r.IntN(8)
		case 2:
			q.GPU.Memory = gpu.Bytes(1+r.IntN(70)) * gpu.GiB
		}
		if r.IntN(2) == 0 {
			q.Timeout = time.Duration(1+r.IntN(1000)) * time.Minute
		}
		s.Queue = append(s.Queue, q)
	}
	return s
}

// BenchmarkPlan plans with 1,000 waiting sessions and 8 devices; a median below
// 5 ms is the goal.
func BenchmarkPlan(b *testing.B) {
	s := crowded()
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		if len(Plan(s, noon).Decisions) != 1000 {
			b.Fatal("decisions are missing")
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2].Seconds()*1000, "median-ms")
}

func TestACrowdedPlanIsSound(t *testing.T) {
	s := crowded()
	plan := Plan(s, noon)
	checkPlan(t, s, plan)
	checkSentences(t, plan)
}
