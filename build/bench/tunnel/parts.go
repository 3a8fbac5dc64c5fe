//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"slipway/build/bench/link"
	"slipway/build/bench/measure"
	"slipway/tunnel"
	"slipway/tunnel/records"
)

// Ports, on loopback unless the comment says otherwise.
const (
	targetPort = "7100" // the target, on every address
	farPort    = "7200" // the far relay, on every address
	bulkPort   = "7001" // what the near relay forwards as bulk
	echoPort   = "7002" // what the near relay forwards as interactive
	sshPort    = "7022" // sshd, on every address
)

type settings struct {
	Folder  string // of sockets and keys
	Near    string // namespaces
	Far     string
	FarHost string // where the far side answers
	Kind    string // variant

	Up, Down link.Direction
	Cable    bool // a pair of the kernel's devices joins the namespaces besides

	Bulk, Echo string // addresses that the client dials
	Mode       string // what the client does: up, down, echo, open or idle
	Streams    int
	Warm, Time time.Duration
}

func (s settings) control() string { return filepath.Join(s.Folder, "control") }

// ready reports to the main process that a part is ready.
func ready() { fmt.Println("ready") }

// runPath makes the namespaces and carries their packets.
func runPath(ctx context.Context, s settings) {
	ends := link.Namespaces(ctx, s.Near, s.Far)
	if s.Cable {
		link.Cable(ctx, s.Near, s.Far)
	}
	ready()
	measure.OK(link.Run(ctx, ends, s.Up, s.Down))
}

// runTarget echoes (e), swallows (s) or floods (g) each connection, as its first byte says.
func runTarget(ctx context.Context, s settings) {
	listener := measure.Get(net.Listen("tcp", ":"+targetPort))
	control := measure.Get(net.Listen("unix", s.control()))
	context.AfterFunc(ctx, func() { _, _ = listener.Close(), control.Close() })
	var swallowed atomic.Int64
	go func() {
		for {
			conn, err := control.Accept()
			if err != nil {
				return
			}
			_ = binary.Write(conn, binary.LittleEndian, swallowed.Load())
			_ = conn.Close()
		}
	}()
	ready()
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go serveTarget(conn, &swallowed)
	}
}

func serveTarget(conn net.Conn, swallowed *atomic.Int64) {
	defer conn.Close()
	var what [1]byte
	if _, err := io.ReadFull(conn, what[:]); err != nil {
		return
	}
	size := 256 << 10
	if what[0] == 'e' {
		size = 256
	}
	for b := make([]byte, size); ; {
		n, err := len(b), error(nil)
		if what[0] != 'g' {
			n, err = conn.Read(b)
		}
		if what[0] == 's' {
			swallowed.Add(int64(n))
		} else if err == nil {
			_, err = conn.Write(b[:n])
		}
		if err != nil {
			return
		}
	}
}

type dialer struct {
	address string
	config  *tls.Config
}

func (d dialer) Dial(ctx context.Context, _ bool) (net.Conn, error) {
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", d.address)
	if err != nil {
		return nil, err
	}
	conn := tls.Client(records.Below(raw), d.config)
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, err
	}
	return records.Of(conn), nil
}

// runNear listens on the two ports and forwards connections.
func runNear(ctx context.Context, s settings) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(measure.Get(os.ReadFile(filepath.Join(s.Folder, "cert"))))
	config := &tls.Config{RootCAs: roots, ServerName: "bench", MinVersion: tls.VersionTLS13}
	address := net.JoinHostPort(s.FarHost, farPort)
	var open func(tunnel.Class) (net.Conn, error)
	if s.Kind == "tls" {
		open = func(tunnel.Class) (net.Conn, error) { return tls.Dial("tcp", address, config) }
	} else {
		t := measure.Get(tunnel.Dial(ctx, dialer{address, config}, tunnel.Config{OneCarrier: s.Kind == "ours1"}))
		defer t.Close()
		if bulk, err := t.Open(ctx, tunnel.Bulk); err == nil { // waits for the second carrier
			_ = bulk.Close()
		}
		open = func(c tunnel.Class) (net.Conn, error) { return t.Open(ctx, c) }
		go watch(ctx, t, s)
	}
	for port, class := range map[string]tunnel.Class{bulkPort: tunnel.Bulk, echoPort: tunnel.Interactive} {
		listener := measure.Get(net.Listen("tcp", "127.0.0.1:"+port))
		context.AfterFunc(ctx, func() { _ = listener.Close() })
		go forwardAll(listener, func() (net.Conn, error) { return open(class) })
	}
	ready()
	<-ctx.Done()
}

// watch prints the tunnel's statistics if TUNNEL_BENCH_WATCH is set.
func watch(ctx context.Context, t *tunnel.Tunnel, s settings) {
	if os.Getenv("TUNNEL_BENCH_WATCH") == "" {
		return
	}
	ticker := time.NewTicker(250 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			fmt.Fprintf(os.Stderr, "%s %+v\n", s.Kind, t.Stats())
		case <-ctx.Done():
			return
		}
	}
}

func forwardAll(listener net.Listener, open func() (net.Conn, error)) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			far, err := open()
			if err != nil {
				_ = conn.Close()
				return
			}
			join(conn, far)
		}()
	}
}

// join copies both ways until both end.
func join(a, b net.Conn) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(a, b)
		endOf(a)
	}()
	_, _ = io.Copy(b, a)
	endOf(b)
	<-done
	_, _ = a.Close(), b.Close()
}

func endOf(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = c.Close()
}

func runFar(ctx context.Context, s settings) {
	pair := measure.Get(tls.LoadX509KeyPair(filepath.Join(s.Folder, "cert"), filepath.Join(s.Folder, "key")))
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}
	listener := measure.Get(net.Listen("tcp", ":"+farPort))
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	target := func(from net.Conn) {
		conn, err := net.Dial("tcp", "127.0.0.1:"+targetPort)
		if err != nil {
			_ = from.Close()
			return
		}
		join(from, conn)
	}
	host := tunnel.NewHost(tunnel.Config{})
	go func() {
		for {
			t, err := host.Accept(ctx)
			if err != nil {
				return
			}
			go watch(ctx, t, s)
			go func() {
				for {
					stream, err := t.Accept()
					if err != nil {
						return
					}
					go target(stream)
				}
			}()
		}
	}()
	ready()
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		measure.OK(err)
		if s.Kind == "tls" {
			go target(tls.Server(conn, config))
		} else {
			carrier := records.Of(tls.Server(records.Below(conn), config))
			go func() { _ = host.Serve(tunnel.Carrier{Conn: carrier, Peer: tunnel.Peer{Transport: "tls"}}) }()
		}
	}
}
