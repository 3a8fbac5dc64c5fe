//go:build linux && cgo

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"slipway/build/bench/measure"
	"slipway/gpu"
	"slipway/gpu/nvml"
)

type prober struct {
	options
	ctx    context.Context //nolint:containedctx // of the whole run
	source *nvml.Source
	device gpu.Device
	out    io.Writer

	strangers, unseen, samples int
	lost                       []string
}

func (p *prober) conditions() {
	host := "unknown kernel"
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		host = "Linux " + strings.TrimSpace(string(release))
	}
	fmt.Fprintf(p.out, "%s (%s), driver %s, %s, %s; each load %d s, read every %s.\n\n", p.device.Model,
		p.device.Memory, p.device.Driver, host, time.Now().UTC().Format(time.RFC3339), p.seconds, p.poll)
	c := p.device.Capabilities
	fmt.Fprintf(p.out,
		"Process memory %s, process utilisation %s, energy counter %s, accounting %s, MIG %s, memory limit %s.\n\n",
		c.ProcessMemory.State,
		c.ProcessUtil.State, c.Energy.State, c.Accounting.State, c.MIG.State, c.MemoryLimit.State)
	fmt.Fprintln(p.out, "| what | truth | measured | difference |\n|---|---|---|---|")
}

func (p *prober) row(what, truth, measured, difference string) {
	fmt.Fprintf(p.out, "| %s | %s | %s | %s |\n", what, truth, measured, difference)
}

type worker struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
	stdin io.WriteCloser
}

// result is a worker's own measurement.
type result struct {
	BusyMs    float64 `json:"busyMs"` // by CUDA's events
	Kernels   int     `json:"kernels"`
	Allocated int64   `json:"allocated"`
}

// startWorker runs this program as a worker and waits until it is ready.
func (p *prober) startWorker(duty int) *worker {
	w := &worker{cmd: exec.CommandContext(p.ctx, measure.Get(os.Executable()), workCommand, "-device",
		string(p.device.UUID), "-duty", strconv.Itoa(duty))}
	w.cmd.Stderr = os.Stderr
	w.stdin = measure.Get(w.cmd.StdinPipe())
	w.lines = bufio.NewScanner(measure.Get(w.cmd.StdoutPipe()))
	measure.OK(w.cmd.Start())
	if !w.lines.Scan() || w.lines.Text() != "ready" {
		measure.OK(errors.New("the load did not begin"), w.cmd.Wait())
	}
	return w
}

func (w *worker) ask(line string) (r result) {
	measure.Get(fmt.Fprintln(w.stdin, line))
	if !w.lines.Scan() {
		measure.OK(errors.New("the load ended early"), w.cmd.Wait())
	}
	measure.OK(json.Unmarshal(w.lines.Bytes(), &r))
	return r
}

func (w *worker) finish() { measure.OK(w.stdin.Close(), w.cmd.Wait()) }

func (p *prober) watch(d time.Duration, pids ...int) *integral {
	prev, in := measure.Get(p.source.Sample(p.ctx)), &integral{}
	tick := time.NewTicker(p.poll)
	defer tick.Stop()
	for until := time.Now().Add(d); time.Now().Before(until); {
		select {
		case <-tick.C:
		case <-p.ctx.Done():
			measure.OK(p.ctx.Err())
		}
		next := measure.Get(p.source.Sample(p.ctx))
		in.add(prev, next, p.device.UUID, func(pid int) bool { return slices.Contains(pids, pid) })
		prev = next
		p.samples++
	}
	for _, text := range in.lost {
		if !slices.Contains(p.lost, text) {
			p.lost = append(p.lost, text)
		}
	}
	if len(pids) > 0 {
		p.strangers += in.strangers
		p.unseen += in.unseen
	}
	return in
}

func (p *prober) idle() {
	in := p.watch(time.Duration(p.seconds) * time.Second / 4)
	p.row("idle: busy", "0 s", fmt.Sprintf("%.2f s of %.1f s", in.device.Seconds(), in.covered.Seconds()), "")
	p.energyRow("idle: energy", in)
}

// rest measures a process that has a CUDA context and no work: an open context alone raises clocks and power.
func (p *prober) rest() {
	w := p.startWorker(0)
	defer w.finish()
	in := p.watch(time.Duration(p.seconds)*time.Second, w.cmd.Process.Pid)
	p.row("one process at rest: busy", "0 s", fmt.Sprintf("%.2f s of %.1f s", in.busy.Seconds(),
		in.covered.Seconds()), "")
	p.energyRow("one process at rest: energy", in)
}

// energyRow compares the counter with power summed over time.
func (p *prober) energyRow(what string, in *integral) {
	if p.device.Capabilities.Energy.State != gpu.Yes {
		p.row(what, "no counter", fmt.Sprintf("%.1f J from power", float64(in.power)/1000), "")
		return
	}
	difference := ""
	if in.power > 0 && in.energy > 0 {
		difference = fmt.Sprintf("power summed %+.1f %%", 100*(float64(in.power)/float64(in.energy)-1))
	}
	p.row(what, fmt.Sprintf("%.1f J counted", float64(in.energy)/1000),
		fmt.Sprintf("%.1f J from power", float64(in.power)/1000), difference)
}

// duty runs one process that is busy part of the time.
func (p *prober) duty(percent int) {
	w := p.startWorker(percent)
	w.ask("mark")
	in := p.watch(time.Duration(p.seconds)*time.Second, w.cmd.Process.Pid)
	r := w.ask("mark")
	truth, ours := r.BusyMs/1000, in.busy.Seconds()
	p.row(fmt.Sprintf("one process, %d %% busy: its busy time", percent),
		fmt.Sprintf("%.2f s (events of %d kernels)", truth, r.Kernels),
		fmt.Sprintf("%.2f s of %.1f s", ours, in.covered.Seconds()), fmt.Sprintf("%+.2f s, %+.1f points", ours-truth,
			100*(ours-truth)/in.covered.Seconds()))
	p.row(fmt.Sprintf("one process, %d %% busy: the device", percent), fmt.Sprintf("%.2f s", truth),
		fmt.Sprintf("%.2f s", in.device.Seconds()), fmt.Sprintf("%+.2f s", in.device.Seconds()-truth))
	p.energyRow(fmt.Sprintf("one process, %d %% busy: energy", percent), in)
	w.finish()
}

// sharers runs two processes. Their events overlap while they take turns, so the truth is only the device's time.
func (p *prober) sharers() {
	one, two := p.startWorker(70), p.startWorker(30)
	in := p.watch(time.Duration(p.seconds)*time.Second, one.cmd.Process.Pid, two.cmd.Process.Pid)
	p.row("two processes, 70 % and 30 % busy: together", fmt.Sprintf("%.2f s, the device's own", in.device.Seconds()),
		fmt.Sprintf("%.2f s", in.busy.Seconds()), fmt.Sprintf("%+.2f s", in.busy.Seconds()-in.device.Seconds()))
	one.finish()
	two.finish()
}

// memory allocates memory in steps and compares what is measured.
func (p *prober) memory() {
	w := p.startWorker(0)
	var base gpu.Bytes
	for i, step := range []gpu.Bytes{0, 256 * gpu.MiB, gpu.GiB, 2 * gpu.GiB} {
		r := w.ask("take " + strconv.FormatInt(int64(step), 10))
		in := p.watch(2*p.poll, w.cmd.Process.Pid)
		if i == 0 {
			base = in.peak
			p.row("memory: a process that took none", "0 B", in.peak.String(), "its CUDA context")
			continue
		}
		seen := in.peak - base
		p.row("memory: above that", gpu.Bytes(r.Allocated).String(), seen.String(),
			fmt.Sprintf("%+.2f %%", 100*(float64(seen)/float64(r.Allocated)-1)))
	}
	w.finish()
}

func (p *prober) costs() {
	const times = 50
	before, began := cpuTime(), time.Now()
	for range times {
		measure.Get(p.source.Sample(p.ctx))
	}
	took := time.Since(began) / times
	p.row("one reading of all devices", "", took.Round(10*time.Microsecond).String(),
		fmt.Sprintf("%s of this program's processor time, its child's left out",
			((cpuTime()-before)/times).Round(10*time.Microsecond)))
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func (p *prober) remarks() {
	fmt.Fprintf(p.out, "\nOther processes were on the device in %d of %d samples; the load was not seen in %d.\n",
		p.strangers, p.samples, p.unseen)
	for _, text := range p.lost {
		fmt.Fprintln(p.out, "Lost:", text)
	}
}

// workCommand makes this program a worker.
const workCommand = "work"

// period is the length of one duty cycle.
const period = 100 * time.Millisecond

// work loads the device until stdin ends. It answers "mark" with its work since the last line, and "take N" with its
// memory after allocating N bytes more.
func work(args []string, out io.Writer) {
	flags := flag.NewFlagSet(workCommand, flag.ContinueOnError)
	device := flags.String("device", "", "UUID")
	duty := flags.Int("duty", 0, "percent of the time that the device is to be busy")
	measure.OK(flags.Parse(args))
	runtime.LockOSThread() // CUDA's context belongs to a thread
	measure.OK(openCUDA(*device))
	measure.Get(fmt.Fprintln(out, "ready"))
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
				return
			}
			answer(line, &done, out)
		case <-tick.C:
			if *duty > 0 {
				done.BusyMs += measure.Get(spin(period*time.Duration(*duty)/100)).Seconds() * 1000
				done.Kernels++
			}
		}
	}
}

func answer(line string, done *result, out io.Writer) {
	if amount, ok := strings.CutPrefix(line, "take "); ok {
		if n := measure.Get(strconv.ParseInt(amount, 10, 64)); n > 0 {
			measure.OK(take(n))
			done.Allocated += n
		}
	}
	measure.OK(json.NewEncoder(out).Encode(*done))
	done.BusyMs, done.Kernels = 0, 0
}
