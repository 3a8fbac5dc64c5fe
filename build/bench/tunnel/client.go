//go:build linux

package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// outcome is what one measurement of the client found.
type outcome struct {
	Rate float64   // bytes per second of bulk
	Echo []float64 // milliseconds
}

// echoes is how many connections ask for echoes at a time.
const echoes = 4

// runClient makes one measurement and prints its outcome.
func runClient(ctx context.Context, s settings) error {
	var out outcome
	var err error
	switch s.Mode {
	case "open":
		out.Echo, err = openings(s)
	case "idle":
		return holdIdle(ctx, s)
	default:
		out, err = transfer(s)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}

// dialWhat dials and says what the connection is for.
func dialWhat(address string, what byte) (net.Conn, error) {
	conn, err := net.DialTimeout("tcp", address, 10*time.Second)
	if err != nil {
		return nil, err
	}
	if what == 's' { // what is under way at the end must not run into the next measurement
		_ = conn.(*net.TCPConn).SetLinger(0)
	}
	if _, err := conn.Write([]byte{what}); err != nil {
		return nil, err
	}
	return conn, nil
}

// transfer measures bulk and echo at the same time.
func transfer(s settings) (outcome, error) {
	var out outcome
	var received atomic.Int64
	for range s.Streams {
		what := byte('s')
		if s.Mode == "down" {
			what = 'g'
		}
		conn, err := dialWhat(s.Bulk, what)
		if err != nil {
			return out, err
		}
		defer conn.Close()
		go pump(conn, s.Mode, &received)
	}
	count := received.Load
	if s.Mode == "up" {
		count = func() int64 { return swallowed(s) }
	}
	time.Sleep(s.Warm)
	before, start := count(), time.Now()
	var all sync.WaitGroup
	var mu sync.Mutex // guards failed and out.Echo
	var failed error
	for range echoes {
		all.Go(func() {
			times, err := echo(s, start.Add(s.Time))
			mu.Lock()
			defer mu.Unlock()
			out.Echo = append(out.Echo, times...)
			if err != nil {
				failed = err
			}
		})
	}
	time.Sleep(time.Until(start.Add(s.Time)))
	out.Rate = float64(count()-before) / time.Since(start).Seconds()
	all.Wait()
	return out, failed
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

// swallowed asks the target how many bytes it has swallowed.
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

// echo sends a key stroke now and then and returns how long each took to come
// back, in milliseconds. The first of a connection does not count.
func echo(s settings, end time.Time) ([]float64, error) {
	conn, err := dialWhat(s.Echo, 'e')
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	var times []float64
	b := make([]byte, 16)
	for i := 0; time.Now().Before(end); i++ {
		start := time.Now()
		_ = conn.SetDeadline(start.Add(30 * time.Second))
		if _, err := conn.Write(b); err != nil {
			return times, err
		}
		if _, err := io.ReadFull(conn, b); err != nil {
			return times, err
		}
		if i > 0 {
			times = append(times, float64(time.Since(start))/1e6)
		}
		time.Sleep(time.Duration(5+rand.IntN(15)) * time.Millisecond)
	}
	return times, nil
}

// openings measures how long a new stream takes to answer for the first time.
func openings(s settings) ([]float64, error) {
	var times []float64
	for range 20 {
		start := time.Now()
		conn, err := dialWhat(s.Echo, 'e')
		if err != nil {
			return nil, err
		}
		if _, err := conn.Write([]byte{1}); err != nil {
			return nil, err
		}
		if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
			return nil, err
		}
		times = append(times, float64(time.Since(start))/1e6)
		_ = conn.Close()
	}
	return times, nil
}

// holdIdle opens streams, uses each once, and holds them until it is told to end.
func holdIdle(ctx context.Context, s settings) error {
	for range s.Streams {
		conn, err := dialWhat(s.Echo, 'e')
		if err != nil {
			return err
		}
		defer conn.Close()
		if _, err := conn.Write([]byte{1}); err != nil {
			return err
		}
		if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
			return err
		}
	}
	fmt.Println("ready")
	<-ctx.Done()
	return nil
}
