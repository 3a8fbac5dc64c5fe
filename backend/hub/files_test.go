package hub_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"slipway/backend/agent"
	"slipway/backend/agent/simulated"
	"slipway/backend/agentrpc"
	"slipway/backend/hub"
	"slipway/backend/hub/hubtest"
	"slipway/backend/session"
	"slipway/gpu"
	"slipway/tunnel"
)

// farAgent runs an agent on a simulated engine and answers the tunnels of host.
func farAgent(t *testing.T) (*agent.Agent, *tunnel.Host) {
	t.Helper()
	a := simulated.Open(t, nil)
	host := tunnel.NewHost(tunnel.Config{})
	handler := agentrpc.NewHandler(agentrpc.HandlerConfig{Resolve: func(tunnel.Peer) (session.Agent, error) {
		return a.Agent(), nil
	}})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { handler.ServeHost(ctx, host) }) //nolint:errcheck // ends with ctx
	t.Cleanup(func() {
		host.Close()
		cancel()
		running.Wait()
	})
	return a, host
}

// path is the way between two machines: a socket that a test cuts.
type path struct {
	dir  string
	host *tunnel.Host

	mu    sync.Mutex // guards what follows
	conns []net.Conn
	dead  bool
	dials int
}

func (p *path) Dial(ctx context.Context, _ bool) (net.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return nil, errors.New("the path is cut")
	}
	p.dials++
	name := filepath.Join(p.dir, "s")
	_ = os.Remove(name)
	listener, err := net.Listen("unix", name)
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	near, err := new(net.Dialer).DialContext(ctx, "unix", name)
	if err != nil {
		return nil, err
	}
	theirs, err := listener.Accept()
	if err != nil {
		return nil, err
	}
	p.conns = append(p.conns, near, theirs)
	go p.host.Serve(tunnel.Carrier{Conn: theirs,
		Peer: tunnel.Peer{Transport: "unix", Name: "ada"}}) //nolint:errcheck // the near side sees it
	return tunnel.Carrier{Conn: near, Peer: tunnel.Peer{Transport: "unix", Name: "lab"}}, nil
}

// cut breaks the path for a while.
func (p *path) cut(d time.Duration) {
	p.mu.Lock()
	for _, c := range p.conns {
		c.Close()
	}
	p.conns, p.dead = nil, true
	p.mu.Unlock()
	time.AfterFunc(d, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.dead = false
	})
}

// flow passes bytes on and does something at two places among them.
type flow struct {
	io.Reader
	passed int64
	at     []int64
	do     func()
}

func (f *flow) Read(b []byte) (int, error) {
	n, err := f.Reader.Read(b)
	if f.passed += int64(n); len(f.at) > 0 && f.passed > f.at[0] {
		f.at = f.at[1:]
		f.do()
	}
	return n, err
}

// heap watches how much memory is in use at most.
func heap(t *testing.T) (most func() uint64) {
	var peak atomic.Uint64
	done := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
			}
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak.Store(max(peak.Load(), m.HeapInuse))
		}
	})
	return func() uint64 {
		close(done)
		watching.Wait()
		return peak.Load()
	}
}

func TestFilesPassTwoCuts(t *testing.T) {
	size := int64(256 << 20)
	if testing.Short() {
		size = 48 << 20
	}
	far, host := farAgent(t)
	way := &path{dir: t.TempDir(), host: host}
	line := tunnel.NewLine(tunnel.LineConfig{Dialer: way})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { line.Run(ctx) }) //nolint:errcheck // ends with ctx
	t.Cleanup(func() { cancel(); running.Wait() })
	if err := line.WaitUp(ctx); err != nil {
		t.Fatal(err)
	}
	client := agentrpc.NewClient(agentrpc.ClientConfig{Name: func() string { return "lab" }, Opener: line})
	h, err := hub.Open(hub.Config{Members: []hub.Member{{Name: "lab", Agent: client.Agent()}}, Shelf: &hubtest.Shelf{},
		Settings: noSettings(t)})
	if err != nil {
		t.Fatal(err)
	}
	launched, err := far.Launch(ctx,
		session.LaunchRequest{Spec: session.Spec{Image: "python:3.12",
			Resources: session.Resources{Memory: 256 * gpu.MiB}}})
	if err != nil {
		t.Fatal(err)
	}
	for launched.Status != session.Running {
		if launched, err = far.Get(ctx, launched.ID); err != nil || launched.Status.Terminal() {
			t.Fatalf("%+v, %v", launched, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	files, err := h.FilesOf(ctx, string(launched.ID), "")
	if err != nil {
		t.Fatal(err)
	}
	most := heap(t)
	cuts := []int64{size / 3, size * 2 / 3}
	sent := sha256.New()
	source := io.TeeReader(io.LimitReader(rand.NewChaCha8([32]byte{7}), size), sent)
	began := time.Now()
	up := session.Upload{Path: "large.bin", Key: "k"}
	there, err := files.Upload(ctx, up, &flow{Reader: source, at: cuts, do: func() { way.cut(300 * time.Millisecond) }})
	if err != nil || there != size {
		t.Fatalf("%d of %d bytes came: %v", there, size, err)
	}
	t.Logf("up in %v", time.Since(began))
	sum := hex.EncodeToString(sent.Sum(nil))
	info, err := files.FinishUpload(ctx, files.Place, session.FinishRequest{Upload: up,
		Finish: session.Finish{Size: size, SHA256: sum}})
	if err != nil {
		t.Fatal(err)
	}
	began = time.Now()
	from, err := files.Read(ctx, session.ReadRequest{Path: up.Path, Version: info.Version})
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	got := sha256.New()
	n, err := io.Copy(got, &flow{Reader: from, at: cuts, do: func() { way.cut(300 * time.Millisecond) }})
	if err != nil || n != size || !bytes.Equal(got.Sum(nil), sent.Sum(nil)) {
		t.Errorf("%d of %d bytes came back, %v", n, size, err)
	}
	peak := most()
	t.Logf("down in %v; %d dials; at most %d MiB in use", time.Since(began), way.dials, peak>>20)
	if way.dials < 5 {
		t.Errorf("%d dials: the path was not cut", way.dials)
	}
	// Three pieces of an upload, and what the streams of two machines hold.
	if peak > 160<<20 {
		t.Errorf("%d MiB were in use", peak>>20)
	}
}
