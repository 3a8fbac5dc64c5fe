//go:build linux

package docker_test

import (
	"crypto/rand"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/backend/engine"
	"slipway/backend/engine/docker"
	"slipway/backend/engine/enginetest"
	"slipway/backend/session"
	"slipway/gpu"
)

// BenchmarkLaunch takes turns between a container of ours, from Create to the
// guest's connection, and `docker run` of the same image with the same limits
// to its first byte. It reports medians in milliseconds and their ratio.
func BenchmarkLaunch(b *testing.B) {
	host := enginetest.RequireDocker(b)
	e := open(b, docker.Config{Instance: instanceOf(b),
		Guest: real})
	var create, start, guest, ours, theirs []time.Duration
	for b.Loop() {
		c := newContainer(instanceOf(b), "")
		began := time.Now()
		id, err := e.Create(b.Context(), c)
		if err != nil {
			b.Fatal(err)
		}
		created := time.Now()
		if err := e.Start(b.Context(), id); err != nil {
			b.Fatal(err)
		}
		started := time.Now()
		conn, err := e.Guest(b.Context(), id)
		if err != nil {
			b.Fatal(err)
		}
		greeted := time.Now()
		conn.Close() //nolint:errcheck // nothing was sent
		if err := e.Remove(b.Context(), id); err != nil {
			b.Fatal(err)
		}
		create, start, guest = append(create, created.Sub(began)), append(start, started.Sub(created)),
			append(guest, greeted.Sub(started))
		ours = append(ours, greeted.Sub(began))
		theirs = append(theirs, dockerRun(b, host))
	}
	milliseconds := func(d []time.Duration) float64 { return median(d).Seconds() * 1000 }
	b.ReportMetric(milliseconds(create), "create-ms")
	b.ReportMetric(milliseconds(start), "start-ms")
	b.ReportMetric(milliseconds(guest), "guest-ms")
	b.ReportMetric(milliseconds(ours), "slipway-ms")
	b.ReportMetric(milliseconds(theirs), "docker-run-ms")
	b.ReportMetric(float64(median(ours))/float64(median(theirs)), "ratio")
}

// dockerRun is the time to the first byte of `docker run`.
func dockerRun(b *testing.B, host string) time.Duration {
	b.Helper()
	name := "slipway-bench-" + strings.ToLower(rand.Text()[:8])
	cmd := exec.Command("docker", "-H", host, "run", "--name", name, "--cpuset-cpus", "0", "--cpus", "1",
		"--memory", "128m", "--memory-swap", "128m", enginetest.ImageMinimal, "sh", "-c", "echo .; exec sleep 60")
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		b.Fatal(err)
	}
	took := time.Since(began)
	if err := exec.Command("docker", "-H", host, "rm", "-f", name).Run(); err != nil {
		b.Fatal(err)
	}
	cmd.Wait() //nolint:errcheck // it was killed
	return took
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// newContainer describes a container with a name of its own.
func newContainer(instance, command string) engine.Container {
	id := session.ID(strings.ToLower(rand.Text()[:12]))
	return engine.Container{
		Name: "slipway-" + string(id) + "-main1-1", Hostname: session.MainKernel, Image: enginetest.ImageMinimal,
		Labels: map[string]string{
			engine.LabelSession: string(id), engine.LabelKernel: session.MainKernel, engine.LabelInstance: instance,
		},
		Guest: engine.GuestConfig{Session: id, Kernel: session.MainKernel, UID: 1000, GID: 1000, Command: command},
		CPUs:  []int{0}, Memory: 128 * gpu.MiB, Shm: 64 * gpu.MiB,
	}
}
