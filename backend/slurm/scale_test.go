package slurm_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"slipway/backend/session"
	"slipway/backend/slurm"
	"slipway/backend/slurm/slurmtest"
)

// Ten thousand jobs pass through 500 nodes: none is doubled or lost, the end of each is seen, and the controller is
// asked as often as promised.
func TestTenThousandJobsOnFiveHundredNodes(t *testing.T) {
	jobs, nodes := 10_000, 500
	if testing.Short() {
		jobs, nodes = 1000, 50
	}
	testSeconds(t, func(t *testing.T) {
		lasts := func(j slurmtest.Job) time.Duration {
			return 5*time.Minute + time.Duration(j.ID%600)*time.Second
		}
		c := slurmtest.New(slurmtest.Config{Nodes: nodes, CPUs: 64, GPUs: 8, Runtime: lasts})
		dir := t.TempDir()
		one, p, _ := poll(t, c)
		for i := range jobs {
			r := request(dir, session.ID(fmt.Sprintf("s%05d", i)))
			r.Each.GPUs = 1 + i%2
			if _, err := one.Submit(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		began, before := time.Now(), c.Calls("squeue")
		p.Wake()
		ended := map[slurm.JobName]bool{}
		for len(ended) < jobs && time.Since(began) < 12*time.Hour {
			time.Sleep(time.Minute)
			synctest.Wait()
			for _, j := range p.Snapshot().Jobs {
				if j.State == slurm.Completed {
					ended[j.Name] = true
				}
			}
		}
		took, calls := time.Since(began), c.Calls("squeue")-before
		if len(ended) != jobs || c.Made() != jobs {
			t.Errorf("%d of %d jobs ended, %d were made", len(ended), jobs, c.Made())
		}
		if most := int(took/(15*time.Second)) + 2; calls > most {
			t.Errorf("%d calls of squeue in %s", calls, took)
		}
		t.Logf("%d jobs on %d nodes in %s: %d calls of squeue", jobs, nodes, took, calls)
	})
}

func TestAThousandWaitingSessionsAreOneCall(t *testing.T) {
	testSeconds(t, func(t *testing.T) {
		c := slurmtest.New(slurmtest.Config{Nodes: 1, CPUs: 1})
		one, p, _ := poll(t, c)
		dir := t.TempDir()
		for i := range 1001 { // one of them runs
			r := request(dir, session.ID(fmt.Sprintf("s%04d", i)))
			if _, err := one.Submit(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		p.Wake()
		time.Sleep(time.Minute)
		before := c.Calls("")
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := c.Calls("") - before; n != 240 || len(p.Snapshot().Jobs) != 1001 {
			t.Errorf("%d calls an hour for %d jobs", n, len(p.Snapshot().Jobs))
		}
	})
}

// queue is what squeue prints of n jobs on 500 nodes, half of which wait.
func queue(n int) []byte {
	var out bytes.Buffer
	for i := range n {
		fmt.Fprintf(&out, "%d\x1f%d\x1fN/A\x1fslipway-%012d-1\x1f", i+1, i+1, i)
		if i%2 == 0 {
			fmt.Fprintf(&out, "RUNNING\x1fNone\x1f1700000000\x1f1700003600\x1fn[%03d-%03d]\x1f1:00:00\x1f0:10",
				i%499, i%499+1)
		} else {
			fmt.Fprint(&out, "PENDING\x1fPriority\x1fN/A\x1fN/A\x1f\x1f1:00:00\x1f0:00")
		}
		fmt.Fprintf(&out, "\x1fgpu\x1fnormal\x1flab\x1f4294901760\x1fslipway:0123456789ab:%012d:1\n", i)
	}
	return out.Bytes()
}

// BenchmarkQueue asks a squeue for its jobs. held is the memory that the jobs take.
func BenchmarkQueue(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		file := filepath.Join(b.TempDir(), "queue")
		if err := os.WriteFile(file, queue(n), 0o600); err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("%d-jobs", n), func(b *testing.B) {
			dir := b.TempDir()
			script := []byte("#!/bin/sh\nexec cat " + file + "\n")
			if err := os.WriteFile(filepath.Join(dir, "squeue"), script, 0o700); err != nil {
				b.Fatal(err)
			}
			b.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
			c := slurm.New(slurm.Config{User: "lab"})
			before := heap()
			var jobs []slurm.Job
			var err error
			b.ReportAllocs()
			for b.Loop() {
				if jobs, err = c.Jobs(b.Context()); err != nil || len(jobs) != n {
					b.Fatalf("%d jobs: %v", len(jobs), err)
				}
			}
			b.ReportMetric(float64(heap()-before)/1024, "held-KiB")
			runtime.KeepAlive(jobs)
		})
	}
}

// heap is the memory in use.
func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
