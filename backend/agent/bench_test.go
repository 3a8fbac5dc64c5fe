//go:build unix

package agent

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway/backend/agent/meter"
	"slipway/backend/engine"
	"slipway/backend/engine/docker"
	"slipway/backend/engine/enginetest"
	"slipway/backend/engine/sim/simtest"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
	"slipway/gpu/sim"
)

const (
	benchContainers = 100
	benchDevices    = 8
	benchPause      = 2 * time.Second // between two rounds of samples
)

// BenchmarkSampler measures what two seconds of watching 100 sessions and 8
// devices cost: one round of samples with its accounts, board and events, a
// fifth of a checkpoint and two fifteenths of an idle check. What the engine
// reads of the containers, and what the driver is asked, are not in it.
func BenchmarkSampler(b *testing.B) {
	stats := map[string]engine.Stats{}
	var ids []string
	for i := range benchContainers {
		ids = append(ids, fmt.Sprintf("%064x", i))
		stats[ids[i]] = engine.Stats{CPU: time.Duration(i) * time.Second, Memory: gpu.GiB, MemLimit: 2 * gpu.GiB,
			Pids: 5}
	}
	s := openSampled(b, engine.Of(&statsEngine{Engine: newFake(b, simtest.Config{}), stats: stats}), ids)
	s.measure(b, 0)
}

// BenchmarkSamplerWithContainers is BenchmarkSampler over 100 real containers of
// a real daemon, at the pace of an agent: every two seconds. Run it with
// -benchtime 30x.
func BenchmarkSamplerWithContainers(b *testing.B) {
	host := enginetest.RequireDocker(b)
	e, err := docker.Open(docker.Config{Host: host, Dir: b.TempDir(), Instance: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	ids := runContainers(b, host)
	s := openSampled(b, engine.Of(&realStats{Engine: newFake(b, simtest.Config{}), real: e}), ids)
	s.round() // asks the daemon for each container once
	if sampled := s.sampled(); sampled != benchContainers {
		b.Fatalf("%d of %d containers were sampled", sampled, benchContainers)
	}
	s.measure(b, benchPause)
}

// runContainers runs containers that do nothing until the benchmark ends.
func runContainers(b *testing.B, host string) []string {
	b.Helper()
	do := func(args ...string) string {
		docker := exec.Command("docker", append([]string{"-H", host}, args...)...)
		var complaints bytes.Buffer // a daemon without forwarding complains and works
		docker.Stderr = &complaints
		out, err := docker.Output()
		if err != nil {
			b.Fatalf("docker %q: %v\n%s", args, err, complaints.Bytes())
		}
		return strings.TrimSpace(string(out))
	}
	var ids []string
	b.Cleanup(func() {
		if len(ids) > 0 {
			do(append([]string{"rm", "-f"}, ids...)...)
		}
	})
	for range benchContainers {
		ids = append(ids, do("run", "-d", "--memory", "64m", enginetest.ImageMinimal, "sleep", "3600"))
	}
	return ids
}

// sampled is an agent that does not run, whose samples a benchmark takes.
type sampled struct {
	agent  *Agent
	clocks *clocks
	rounds int
}

// openSampled opens an agent whose sessions have one container each, and every
// two of the first ones a device.
func openSampled(b *testing.B, e engine.Engine, ids []string) *sampled {
	clocks := newClocks()
	machine := sim.Open(sim.Config{Seed: 1, Clock: clocks.now,
		Cards: slices.Repeat([]sim.Card{sim.Server}, benchDevices)})
	list, err := machine.Inventory(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	s, err := store.Open(store.Config{Path: b.TempDir() + "/agent.db"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	err = s.Update(func(tx *store.Tx) error {
		for i, container := range ids {
			now := time.Now().UTC()
			one := session.Session{
				ID: benchID(i), Name: fmt.Sprintf("session-%d", i), Owner: "ada",
				Agent: "local", Status: session.Running, End: session.End{Result: session.ResultUndefined},
				CreatedAt: now, Times: session.Times{ScheduledAt: &now, StartedAt: &now},
				Allocation: session.Allocation{
					Grants: session.Grants{CPUs: []int{i}, Memory: 2 * gpu.GiB},
					Kernels: []session.Kernel{{Name: session.MainKernel, Hostname: session.MainKernel,
						Container: container, Status: session.Running}},
				},
				Spec: session.Spec{Type: session.Interactive, Image: enginetest.ImageMinimal,
					Lifetime: session.Lifetime{Idle: &session.IdlePolicy{Network: hour}}},
			}
			if i < 2*benchDevices {
				one.Grants.GPUs = []gpu.Grant{{Device: list[i/2].UUID, Share: 500, Memory: 39 * gpu.GiB}}
				machine.RunGranted(container, sim.Training, one.Grants.GPUs)
			}
			if err := tx.Create(&one, ""); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	a, err := Open(Config{
		Name: "local", Dir: b.TempDir(), Engine: e, Store: s, Owner: "ada",
		Devices: DeviceConfig{Source: machine},
		Host:    HostConfig{Moment: clocks.now, Load: func(string) (meter.Load, error) { return meter.Load{}, nil }},
	})
	if err != nil {
		b.Fatal(err)
	}
	a.health.Up(engine.Info{CPUs: 128, Memory: 1 << 40})
	a.news.watch(1)
	return &sampled{agent: a, clocks: clocks}
}

// round does what an agent does in two seconds.
func (s *sampled) round() {
	ctx := context.Background()
	s.agent.meter.SampleSessions(ctx)
	s.agent.sampler.Collect(ctx)
	if s.rounds++; s.rounds%15 == 0 {
		s.agent.reclaim.Check(ctx, true)
		s.agent.reclaim.Check(ctx, true)
	}
}

// measure reports the part of a core that rounds take. With a pause they come
// as far apart as an agent's; else time is made to pass for them.
func (s *sampled) measure(b *testing.B, pause time.Duration) {
	b.ResetTimer()
	before := cpuTime(b)
	for b.Loop() {
		if pause > 0 {
			time.Sleep(pause)
		} else {
			s.clocks.sleep(benchPause)
		}
		s.round()
	}
	spent := cpuTime(b) - before
	b.ReportMetric(float64(spent)/float64(b.N)/float64(benchPause)*100, "%core")
}

// realStats is an engine without containers that tells of another's.
type realStats struct {
	*simtest.Engine
	real engine.Monitor
}

func (e *realStats) Stats(ctx context.Context, ids []string) (map[string]engine.Stats, error) {
	return e.real.Stats(ctx, ids)
}

// statsEngine tells of containers that it does not have.
type statsEngine struct {
	*simtest.Engine
	stats map[string]engine.Stats
}

func (e *statsEngine) Stats(_ context.Context, ids []string) (map[string]engine.Stats, error) {
	answer := make(map[string]engine.Stats, len(ids))
	for _, id := range ids {
		s := e.stats[id]
		s.At = time.Now()
		s.CPU += time.Since(time.Unix(0, 0)) / 10
		answer[id] = s
	}
	return answer, nil
}

// sampled is how many sessions have a sample.
func (s *sampled) sampled() (n int) {
	for i := range benchContainers {
		if len(s.agent.meter.Since(benchID(i), time.Time{})) > 0 {
			n++
		}
	}
	return n
}

func benchID(i int) session.ID { return session.ID(fmt.Sprintf("s%011d", i)) }

// cpuTime is the CPU time that this process has used.
func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
