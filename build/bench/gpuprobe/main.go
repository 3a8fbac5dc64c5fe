//go:build linux && cgo

// Command gpuprobe compares Slipway's measurements of an NVIDIA device with known work: kernels that run for a set
// time, timed by CUDA's own events, and memory allocated in steps. It needs a driver and no Docker, takes about five
// minutes, prints a Markdown table and changes no settings of the device. Build it with C linkage:
//
//	CGO_ENABLED=1 go build -o build/bin/gpuprobe ./build/bench/gpuprobe
//	build/bin/gpuprobe > table.md
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"time"

	"slipway/build/bench/measure"
	"slipway/gpu"
	"slipway/gpu/nvml"
)

type options struct {
	seconds int
	poll    time.Duration
	device  string
	library string
}

func main() {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case nvml.ChildCommand:
			os.Exit(nvml.ChildMain(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
		case workCommand:
			end(measure.Run(func() { work(os.Args[2:], os.Stdout) }))
		}
	}
	var o options
	flag.IntVar(&o.seconds, "seconds", 60, "how long each load runs")
	flag.DurationVar(&o.poll, "poll", 2*time.Second, "how often devices are read")
	flag.StringVar(&o.device, "device", "", "UUID of the device to use; empty: the first")
	flag.StringVar(&o.library, "library", "", "path of the driver's library; empty: where the system keeps it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	end(probe(ctx, o))
}

func end(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "gpuprobe:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func probe(ctx context.Context, o options) (err error) {
	source := nvml.Open(nvml.Config{Library: o.library})
	defer func() { err = errors.Join(err, source.Close()) }()
	return measure.Run(func() {
		device := choose(measure.Get(source.Inventory(ctx)), gpu.UUID(o.device))
		p := &prober{options: o, ctx: ctx, source: source, device: device, out: os.Stdout}
		p.conditions()
		p.idle()
		p.rest()
		for _, percent := range []int{10, 50, 90} {
			p.duty(percent)
		}
		p.sharers()
		p.memory()
		p.costs()
		p.remarks()
	})
}

func choose(devices []gpu.Device, wanted gpu.UUID) gpu.Device {
	i := slices.IndexFunc(devices, func(d gpu.Device) bool { return wanted == "" || d.UUID == wanted })
	if i < 0 {
		measure.Fail("this machine has no NVIDIA device %s", wanted)
	}
	return devices[i]
}
