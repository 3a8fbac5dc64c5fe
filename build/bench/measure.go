package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/hub"
	"slipway/backend/session"
	"slipway/build/bench/measure"
)

// measureStart compares a launch with docker run, in turns, also on a network like that of sessions, for which Docker
// does more than for its own.
func (b *bench) measureStart() {
	const apart = "slipway-bench"
	b.dockerSays("network", "create", "--opt=com.docker.network.bridge.enable_icc=false", apart)
	defer b.dockerSays("network", "rm", apart)
	var ours, whole, theirs, alike samples
	for i := range b.o.pairs + 1 {
		accepted, asked := b.startOnce()
		docker, same := b.dockerOnce(), b.dockerOnce("--network="+apart)
		if i > 0 { // the first ones warm the caches of all
			ours, whole = append(ours, accepted), append(whole, asked)
			theirs, alike = append(theirs, docker), append(alike, same)
		}
	}
	b.add(against("accepted → prompt", ours, "docker run -it", theirs, "≤ 1.05", 1.05))
	b.add(against("accepted → prompt", ours, "docker run -it on a network like a session's", alike, "", 0))
	b.add(against("asked → prompt", whole, "docker run -it", theirs, "", 0))
}

// startOnce launches a session and opens a shell. It returns the times to the prompt since answer and request.
func (b *bench) startOnce() (accepted, asked time.Duration) {
	events := b.follow()
	defer events.Close()
	begin := time.Now()
	s := b.launch(b.o.image)
	answered := time.Now()
	await(events, s.ID)
	t := b.open(s.ID)
	until(t, prompt)
	accepted, asked = time.Since(answered), time.Since(begin)
	t.close()
	measure.OK(b.end(b.ctx, s.ID))
	return accepted, asked
}

// prompt is in that of each shell: the name of its host. The docker command may have warned of something before.
const prompt = "main1"

func (b *bench) dockerOnce(flags ...string) time.Duration {
	begin := time.Now()
	l := b.docker(slices.Concat([]string{"run", "-it", "--rm", "--cpuset-cpus=0", "--cpus=1", "--memory=512m",
		"--memory-swap=512m", "--shm-size=64m", "--hostname=main1"}, flags, []string{b.o.image, "bash"})...)
	defer l.close()
	until(l, prompt)
	took := time.Since(begin)
	measure.OK(l.send([]byte("exit\r")))
	for {
		if _, err := l.receive(); err != nil {
			return took
		}
	}
}

// measureEcho compares the echo of a shell with that of docker exec, byte by byte in turn.
func (b *bench) measureEcho() {
	s := b.running()
	ours := b.open(s.ID, rawEcho...)
	theirs := b.docker(append([]string{"exec", "-it", container(s)}, rawEcho...)...)
	until(ours, "ready")
	until(theirs, "ready")
	var mine, others samples
	for i := range b.o.echoes {
		char := byte('A' + i%26)
		mine, others = append(mine, echo(ours, char)), append(others, echo(theirs, char))
	}
	w := against("terminal echo", mine, "docker exec -it", others, "≤ 2, p50 < 5 ms", 2)
	w.kept = w.kept && mine.median() < 5*time.Millisecond
	b.add(w)
	ours.close()
	theirs.close()
	measure.OK(b.end(b.ctx, s.ID))
}

func container(s api.Session) string {
	if len(s.Kernels) == 0 || s.Kernels[0].Container == "" {
		measure.Fail("session %s has no container", s.ID)
	}
	return s.Kernels[0].Container
}

const outputBytes = 10 << 20

// numbers returns the first n bytes of seq.
func numbers(n int) []byte {
	text := make([]byte, 0, n+16)
	for i := 1; len(text) < n; i++ {
		text = append(strconv.AppendInt(text, int64(i), 10), '\n')
	}
	return text[:n]
}

// measureOutput moves 10 MiB through a terminal and compares every byte.
func (b *bench) measureOutput() {
	s := b.running()
	command := []string{"sh", "-c", fmt.Sprintf("stty -onlcr; seq 1 100000000 | head -c %d", outputBytes)}
	inDocker := append([]string{"exec", "-it", container(s)}, command...)
	want := sha256.Sum256(numbers(outputBytes))
	var times, others samples
	for range 3 {
		times = append(times, whole(func() shell { return b.open(s.ID, command...) }, want))
		others = append(others, whole(func() shell { return b.docker(inDocker...) }, want))
	}
	b.add(row{"10 MiB of output, whole (SHA-256 equal)", ms(times.median()), "docker exec -it: " + ms(others.median()),
		fmt.Sprintf("%.2f", ratio(times.median(), others.median())), "whole", true})
	measure.OK(b.end(b.ctx, s.ID))
}

// whole returns the time from a shell's opening to the end of its output, which must have the digest want.
func whole(open func() shell, want [sha256.Size]byte) time.Duration {
	begin := time.Now()
	s := open()
	defer s.close()
	sum, size := sha256.New(), 0
	for {
		text, err := s.receive()
		if errors.Is(err, io.EOF) {
			break
		}
		measure.OK(err)
		size += len(text)
		sum.Write(text) //nolint:errcheck // a digest takes everything
	}
	if [sha256.Size]byte(sum.Sum(nil)) != want {
		measure.Fail("%d bytes came, not the %d that were written", size, outputBytes)
	}
	return time.Since(begin)
}

// chatter keeps writing about 1 MiB a second.
var chatter = []string{"sh", "-c", "while :; do head -c 52429 /dev/zero | tr '\\0' x; sleep 0.05; done"}

// measureStall compares the echo of nine shells while the viewer of a tenth reads and while it does not.
func (b *bench) measureStall() {
	s := b.running()
	var quiet []*attached
	for range 9 {
		t := b.open(s.ID, rawEcho...)
		defer t.close()
		until(t, "ready")
		quiet = append(quiet, t)
	}
	loud := b.open(s.ID, chatter...)
	defer loud.close()
	stall := make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() {
		for {
			select {
			case <-stall:
				return
			default:
			}
			if _, err := loud.receive(); err != nil {
				return
			}
		}
	})
	echoes := func() (all samples) {
		for i := range b.o.echoes {
			all = append(all, echo(quiet[i%len(quiet)], byte('A'+i%26)))
		}
		return all
	}
	reading := echoes()
	close(stall)
	reader.Wait()
	time.Sleep(time.Second) // the stalled viewer's window and buffers fill up
	b.add(against("echo of 9 shells, the 10th's viewer stalled", echoes(), "its viewer reading", reading, "≤ 1.5", 1.5))
	measure.OK(b.end(b.ctx, s.ID))
}

// measureList reads the list with many finished sessions. They are batch sessions of tomorrow that were cancelled, so
// that none has a container.
func (b *bench) measureList() {
	tomorrow := time.Now().Add(24 * time.Hour)
	spec := session.Spec{Type: "batch", Image: b.o.image, Command: "python3 train.py --epochs 10",
		Schedule: session.Schedule{NotBefore: &tomorrow}, Env: []session.EnvVar{{Name: "SEED", Value: "42"}}}
	errs := make([]error, 8)
	var fill sync.WaitGroup
	for w := range errs {
		fill.Go(func() {
			for i := w; i < b.o.records && errs[w] == nil; i += len(errs) {
				var s api.Session
				if s, errs[w] = route.Launch.Body(hub.LaunchRequest{Spec: spec}).Ask(b.ctx, b); errs[w] == nil {
					_, errs[w] = route.Terminate.At(string(s.ID)).Ask(b.ctx, b)
				}
			}
		})
	}
	fill.Wait()
	measure.OK(errs...)
	var times samples
	var answer json.RawMessage
	for range 200 {
		begin := time.Now()
		measure.OK(b.Call(b.ctx, route.Sessions.Method(), route.Sessions.Target(), nil, &answer))
		times = append(times, time.Since(begin))
	}
	var list []api.Session
	measure.OK(json.Unmarshal(answer, &list))
	if len(list) < b.o.records {
		measure.Fail("the list has %d sessions, not %d", len(list), b.o.records)
	}
	b.add(row{
		fmt.Sprintf("%s %s, %d finished, %d KiB, to its last byte", route.Sessions.Method(), route.Sessions.Target(),
			len(list), len(answer)>>10),
		times.text(), "", "", "p50 < 50 ms", times.median() < 50*time.Millisecond,
	})
}

func (b *bench) measureIdle() {
	b.watchIdle("idle, no session")
	s := b.running()
	b.watchIdle("idle, one running session")
	measure.OK(b.end(b.ctx, s.ID))
}

// watchIdle reports the share of a core and the resident memory.
func (b *bench) watchIdle(what string) {
	b.pause(2 * time.Second) // what came before settles
	before, begin := b.cpuTicks(), time.Now()
	b.pause(b.o.idle)
	const ticksPerSecond = 100 // USER_HZ of every Linux
	share := float64(b.cpuTicks()-before) / ticksPerSecond / time.Since(begin).Seconds()
	resident := b.memory("VmRSS")
	b.add(row{fmt.Sprintf("%s, over %s", what, b.o.idle),
		fmt.Sprintf("%.2f %% of a core, %.1f MB resident", 100*share, float64(resident)/1e6), "", "",
		"< 1 %, < 100 MB", share < 0.01 && resident < 100e6})
}

func (b *bench) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-b.ctx.Done():
		measure.OK(b.ctx.Err())
	}
}

func (b *bench) cpuTicks() int64 { return measure.Get(ticks(b.command.Process.Pid)) }

// memory is a figure of the program in bytes: VmRSS now, or VmHWM, the peak since clear_refs was written.
func (b *bench) memory(which string) int64 {
	return measure.Get(measure.Memory(b.command.Process.Pid, which))
}
