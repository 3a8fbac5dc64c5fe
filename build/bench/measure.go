package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/hub"
	"slipway/backend/session"
)

// measureStart compares a launch with docker run, in pairs.
func measureStart(ctx context.Context, p *plane, o options, r *report) error {
	var ours, whole, theirs samples
	for i := range o.pairs + 1 {
		accepted, asked, err := p.startOnce(ctx, o.image)
		if err != nil {
			return fmt.Errorf("slipway, start %d: %w", i, err)
		}
		theirsOnce, err := p.dockerOnce(ctx, o.image)
		if err != nil {
			return fmt.Errorf("docker run, start %d: %w", i, err)
		}
		if i == 0 {
			continue // the first pair warms the caches of both
		}
		ours, whole, theirs = append(ours, accepted), append(whole, asked), append(theirs, theirsOnce)
	}
	x := ratio(ours.median(), theirs.median())
	r.add(row{"accepted → first prompt byte", ours.text(), "docker run -it: " + theirs.text(), fmt.Sprintf("%.2f", x),
		"≤ 1.3", x <= 1.3})
	r.add(row{"asked → first prompt byte", whole.text(), "docker run -it: " + theirs.text(),
		fmt.Sprintf("%.2f", ratio(whole.median(), theirs.median())), "", true})
	return nil
}

// startOnce launches a session, opens a shell when it runs, and ends it. It
// returns the time to the first byte from the answer and from the request.
func (p *plane) startOnce(ctx context.Context, image string) (accepted, asked time.Duration, err error) {
	events, err := p.follow(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer events.close()
	begin := time.Now()
	s, err := p.launch(ctx, image)
	if err != nil {
		return 0, 0, err
	}
	answered := time.Now()
	if _, err := events.await(string(s.ID), "RUNNING"); err != nil {
		return 0, 0, err
	}
	t, err := p.open(ctx, string(s.ID))
	if err != nil {
		return 0, 0, err
	}
	if _, err := t.receive(); err != nil {
		return 0, 0, err
	}
	accepted, asked = time.Since(answered), time.Since(begin)
	return accepted, asked, errors.Join(t.close(), p.end(ctx, string(s.ID)))
}

// dockerOnce does the same with docker run.
func (p *plane) dockerOnce(ctx context.Context, image string) (time.Duration, error) {
	begin := time.Now()
	l, err := p.docker(ctx, "run", "-it", "--rm", "--cpuset-cpus=0", "--cpus=1", "--memory=512m", "--memory-swap=512m",
		"--shm-size=64m", "--hostname=main1", image, "bash")
	if err != nil {
		return 0, err
	}
	if _, err := l.receive(); err != nil {
		return 0, errors.Join(err, l.close())
	}
	took := time.Since(begin)
	if err := l.send([]byte("exit\r")); err != nil {
		return 0, err
	}
	for {
		if _, err := l.receive(); err != nil {
			break
		}
	}
	return took, l.close()
}

// container returns the id of a session's container.
func (p *plane) container(s api.Session) (string, error) {
	if len(s.Kernels) == 0 || s.Kernels[0].Container == "" {
		return "", fmt.Errorf("session %s has no container", s.ID)
	}
	return s.Kernels[0].Container, nil
}

// measureEcho compares the echo of a shell with that of docker exec, byte by
// byte in turn.
func measureEcho(ctx context.Context, p *plane, o options, r *report) error {
	s, err := p.running(ctx, o.image)
	if err != nil {
		return err
	}
	id, err := p.container(s)
	if err != nil {
		return err
	}
	ours, err := p.open(ctx, string(s.ID), rawEcho...)
	if err != nil {
		return err
	}
	theirs, err := p.docker(ctx, append([]string{"exec", "-it", id}, rawEcho...)...)
	if err != nil {
		return err
	}
	if err := errors.Join(until(ours, "ready"), until(theirs, "ready")); err != nil {
		return err
	}
	var a, b samples
	for i := range o.echoes {
		char := byte('A' + i%26)
		mine, err := echo(ours, char)
		if err != nil {
			return err
		}
		other, err := echo(theirs, char)
		if err != nil {
			return err
		}
		a, b = append(a, mine), append(b, other)
	}
	x := ratio(a.median(), b.median())
	r.add(row{"terminal echo", a.text(), "docker exec -it: " + b.text(), fmt.Sprintf("%.2f", x), "≤ 2, p50 < 5 ms",
		x <= 2 && a.median() < 5*time.Millisecond})
	return errors.Join(ours.close(), theirs.close(), p.end(ctx, string(s.ID)))
}

const outputBytes = 10 << 20

// numbers writes what seq writes, up to n bytes.
func numbers(n int) []byte {
	text := make([]byte, 0, n+16)
	for i := 1; len(text) < n; i++ {
		text = append(strconv.AppendInt(text, int64(i), 10), '\n')
	}
	return text[:n]
}

// measureOutput moves 10 MiB through a terminal and compares every byte.
func measureOutput(ctx context.Context, p *plane, o options, r *report) error {
	s, err := p.running(ctx, o.image)
	if err != nil {
		return err
	}
	id, err := p.container(s)
	if err != nil {
		return err
	}
	command := []string{"sh", "-c", fmt.Sprintf("stty -onlcr; seq 1 100000000 | head -c %d", outputBytes)}
	want := sha256.Sum256(numbers(outputBytes))
	var times, others samples
	for range 3 {
		begin := time.Now()
		ours, err := p.open(ctx, string(s.ID), command...)
		if err != nil {
			return err
		}
		if err := compare(ours, want); err != nil {
			return fmt.Errorf("slipway: %w", err)
		}
		times = append(times, time.Since(begin))
		begin = time.Now()
		theirs, err := p.docker(ctx, append([]string{"exec", "-it", id}, command...)...)
		if err != nil {
			return err
		}
		if err := compare(theirs, want); err != nil {
			return fmt.Errorf("docker exec: %w", err)
		}
		others = append(others, time.Since(begin))
	}
	r.add(row{"10 MiB of output, whole (SHA-256 equal)", ms(times.median()), "docker exec -it: " + ms(others.median()),
		fmt.Sprintf("%.2f", ratio(times.median(), others.median())), "whole", true})
	return p.end(ctx, string(s.ID))
}

// compare reads a shell to its end and compares the digest of what came.
func compare(s shell, want [sha256.Size]byte) error {
	sum := sha256.New()
	size := 0
	for {
		text, err := s.receive()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		size += len(text)
		sum.Write(text) //nolint:errcheck // a digest takes everything
	}
	if [sha256.Size]byte(sum.Sum(nil)) != want {
		return fmt.Errorf("%d bytes came, not the %d that were written", size, outputBytes)
	}
	return s.close()
}

// chatter is a program that goes on writing, about 1 MiB a second.
var chatter = []string{"sh", "-c", "while :; do head -c 52429 /dev/zero | tr '\\0' x; sleep 0.05; done"}

// measureStall compares the echo of nine shells while the viewer of a tenth
// reads with that while it does not.
func measureStall(ctx context.Context, p *plane, o options, r *report) error {
	s, err := p.running(ctx, o.image)
	if err != nil {
		return err
	}
	var quiet []*attached
	for range 9 {
		t, err := p.open(ctx, string(s.ID), rawEcho...)
		if err != nil {
			return err
		}
		if err := until(t, "ready"); err != nil {
			return err
		}
		quiet = append(quiet, t)
	}
	loud, err := p.open(ctx, string(s.ID), chatter...)
	if err != nil {
		return err
	}
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
	reading, err := echoes(quiet, o.echoes)
	if err != nil {
		return err
	}
	close(stall)
	reader.Wait()
	time.Sleep(time.Second) // the stalled viewer's window and buffers fill up
	stalled, err := echoes(quiet, o.echoes)
	if err != nil {
		return err
	}
	x := ratio(stalled.median(), reading.median())
	r.add(row{"echo of 9 shells, the 10th's viewer stalled", stalled.text(), "its viewer reading: " + reading.text(),
		fmt.Sprintf("%.2f", x), "≤ 1.5", x <= 1.5})
	for _, t := range append(quiet, loud) {
		if err := t.close(); err != nil {
			return err
		}
	}
	return p.end(ctx, string(s.ID))
}

// echoes types n bytes, one shell after another.
func echoes(shells []*attached, n int) (samples, error) {
	var all samples
	for i := range n {
		took, err := echo(shells[i%len(shells)], byte('A'+i%26))
		if err != nil {
			return nil, err
		}
		all = append(all, took)
	}
	return all, nil
}

// measureList fills the books with finished sessions and reads the list. They
// are batch sessions of tomorrow, called off: finished without a container.
func measureList(ctx context.Context, p *plane, o options, r *report) error {
	if err := p.fill(ctx, o); err != nil {
		return err
	}
	var times samples
	var answer json.RawMessage
	for range 200 {
		begin := time.Now()
		if err := p.Call(ctx, route.Sessions.Method(), route.Sessions.Target(), nil, &answer); err != nil {
			return err
		}
		times = append(times, time.Since(begin))
	}
	var list []api.Session
	if err := json.Unmarshal(answer, &list); err != nil {
		return err
	}
	if len(list) < o.records {
		return fmt.Errorf("the list has %d sessions, not %d", len(list), o.records)
	}
	r.add(row{
		fmt.Sprintf("%s %s, %d finished, %d KiB, to its last byte", route.Sessions.Method(), route.Sessions.Target(),
			len(list), len(answer)>>10),
		times.text(), "", "",
		"p50 < 50 ms", times.median() < 50*time.Millisecond,
	})
	return nil
}

func (p *plane) fill(ctx context.Context, o options) error {
	tomorrow := time.Now().Add(24 * time.Hour)
	work := make(chan int)
	errs := make([]error, 8)
	var group sync.WaitGroup
	for w := range errs {
		group.Go(func() {
			for range work {
				if errs[w] == nil {
					errs[w] = p.callOff(ctx, o.image, tomorrow)
				}
			}
		})
	}
	for i := range o.records {
		work <- i
	}
	close(work)
	group.Wait()
	return errors.Join(errs...)
}

func (p *plane) callOff(ctx context.Context, image string, at time.Time) error {
	spec := session.Spec{Type: "batch", Image: image, Command: "python3 train.py --epochs 10",
		Schedule: session.Schedule{NotBefore: &at},
		Env:      []session.EnvVar{{Name: "SEED", Value: "42"}}}
	s, err := route.Launch.Body(hub.LaunchRequest{Spec: spec}).Ask(ctx, p)
	if err == nil {
		_, err = route.Terminate.At(string(s.ID)).Ask(ctx, p)
	}
	return err
}

// measureIdle watches the program while nobody asks it for anything, without
// and with a session.
func measureIdle(ctx context.Context, p *plane, o options, r *report) error {
	share, resident, err := p.watchIdle(ctx, o.idle)
	if err != nil {
		return err
	}
	r.addIdle("idle, no session", o.idle, share, resident)
	s, err := p.running(ctx, o.image)
	if err != nil {
		return err
	}
	share, resident, err = p.watchIdle(ctx, o.idle)
	if err != nil {
		return err
	}
	r.addIdle("idle, one running session", o.idle, share, resident)
	return p.end(ctx, string(s.ID))
}

func (r *report) addIdle(what string, watched time.Duration, share float64, resident int64) {
	r.add(row{
		fmt.Sprintf("%s, over %s", what, watched), fmt.Sprintf("%.2f %% of a core, %.1f MB resident", 100*share,
			float64(resident)/1e6), "", "",
		"< 1 %, < 100 MB", share < 0.01 && resident < 100e6,
	})
}

// watchIdle returns the share of a core and the resident memory in bytes.
func (p *plane) watchIdle(ctx context.Context, d time.Duration) (share float64, resident int64, err error) {
	select {
	case <-time.After(2 * time.Second): // what came before settles
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
	before, err := p.cpuTicks()
	if err != nil {
		return 0, 0, err
	}
	begin := time.Now()
	select {
	case <-time.After(d):
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
	after, err := p.cpuTicks()
	if err != nil {
		return 0, 0, err
	}
	const ticksPerSecond = 100 // USER_HZ of every Linux
	share = float64(after-before) / ticksPerSecond / time.Since(begin).Seconds()
	resident, err = p.resident()
	return share, resident, err
}

func (p *plane) cpuTicks() (int64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.command.Process.Pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	user, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(fields[12], 10, 64)
	return user + system, err
}

func (p *plane) resident() (int64, error) { return p.memory("VmRSS:") }

// peak is the most that was resident since [plane.forgetPeak].
func (p *plane) peak() (int64, error) { return p.memory("VmHWM:") }

func (p *plane) forgetPeak() error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.command.Process.Pid), []byte("5"), 0)
}

func (p *plane) memory(which string) (int64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.command.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, which); ok {
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("%s is not told", which)
}
