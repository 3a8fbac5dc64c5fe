//go:build linux

package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"slipway/build/bench/measure"
)

type outcome struct {
	Rate  float64   // bytes per second of bulk
	Bytes int64     // of bulk, also before the rate was measured
	Echo  []float64 // milliseconds
}

func runClient(ctx context.Context, s settings) {
	var out outcome
	switch s.Mode {
	case "open":
		out.Echo = openings(s)
	case "idle":
		holdIdle(ctx, s)
		return
	default:
		out = transfer(s)
	}
	measure.OK(json.NewEncoder(os.Stdout).Encode(out))
}

// dialWhat dials and sends the purpose of the connection.
func dialWhat(address string, what byte) net.Conn {
	conn := measure.Get(net.DialTimeout("tcp", address, 10*time.Second))
	if what == 's' { // what is under way at the end must not run into the next measurement
		_ = conn.(*net.TCPConn).SetLinger(0)
	}
	measure.Get(conn.Write([]byte{what}))
	return conn
}

// transfer measures bulk and echo at the same time.
func transfer(s settings) (out outcome) {
	var received atomic.Int64
	what, count := byte('s'), func() int64 { return swallowed(s) }
	if s.Mode == "down" {
		what, count = 'g', received.Load
	}
	first := count()
	for range s.Streams {
		conn := dialWhat(s.Bulk, what)
		defer conn.Close()
		go pump(conn, s.Mode, &received)
	}
	time.Sleep(s.Warm)
	before, start := count(), time.Now()
	var all sync.WaitGroup
	var mu sync.Mutex // guards failed and out.Echo
	var failed error
	for range 4 { // connections that measure echoes at the same time
		all.Go(func() {
			var times []float64
			err := measure.Run(func() { times = echo(s, start.Add(s.Time)) })
			mu.Lock()
			defer mu.Unlock()
			out.Echo, failed = append(out.Echo, times...), errors.Join(failed, err)
		})
	}
	time.Sleep(time.Until(start.Add(s.Time)))
	out.Rate = float64(count()-before) / time.Since(start).Seconds()
	out.Bytes = count() - first
	all.Wait()
	measure.OK(failed)
	return out
}

func pump(conn net.Conn, mode string, received *atomic.Int64) {
	b := make([]byte, 256<<10)
	for {
		if mode == "up" {
			if _, err := conn.Write(b); err != nil {
				return
			}
			continue
		}
		n, err := conn.Read(b)
		received.Add(int64(n))
		if err != nil {
			return
		}
	}
}

func swallowed(s settings) int64 {
	conn, err := net.Dial("unix", s.control())
	if err != nil {
		return 0
	}
	defer conn.Close()
	var n int64
	_ = binary.Read(conn, binary.LittleEndian, &n)
	return n
}

// echo sends key strokes and returns the time of each echo but the first, in milliseconds.
func echo(s settings, end time.Time) (times []float64) {
	conn := dialWhat(s.Echo, 'e')
	defer conn.Close()
	for i := 0; time.Now().Before(end); i++ {
		took := stroke(conn, make([]byte, 16))
		if i > 0 {
			times = append(times, took)
		}
		time.Sleep(time.Duration(5+rand.IntN(15)) * time.Millisecond)
	}
	return times
}

// stroke sends b and returns the time to its echo in milliseconds.
func stroke(conn net.Conn, b []byte) float64 {
	start := time.Now()
	_ = conn.SetDeadline(start.Add(30 * time.Second))
	measure.Get(conn.Write(b))
	measure.Get(io.ReadFull(conn, b))
	return float64(time.Since(start)) / 1e6
}

// openings measures the time to the first echo of new streams.
func openings(s settings) (times []float64) {
	for range 20 {
		start := time.Now()
		conn := dialWhat(s.Echo, 'e')
		stroke(conn, []byte{1})
		times = append(times, float64(time.Since(start))/1e6)
		_ = conn.Close()
	}
	return times
}

// holdIdle opens streams, uses each once, and keeps them until ctx ends.
func holdIdle(ctx context.Context, s settings) {
	for range s.Streams {
		conn := dialWhat(s.Echo, 'e')
		defer conn.Close()
		stroke(conn, []byte{1})
	}
	ready()
	<-ctx.Done()
}
