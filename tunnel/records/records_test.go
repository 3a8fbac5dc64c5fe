package records_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"slipway/tunnel/records"
)

// counted counts the writes to a connection.
type counted struct {
	net.Conn
	writes atomic.Int64
}

func (c *counted) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

func certificate(t *testing.T) tls.Certificate {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}
}

// ends returns two ends of a connection of TLS over TCP that have made their handshake, and what is below the first.
func ends(t *testing.T) (near, far *records.Conn, below *counted) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	dialled, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	below = &counted{Conn: dialled}
	near = records.Of(tls.Client(records.Below(below), &tls.Config{InsecureSkipVerify: true,
		DynamicRecordSizingDisabled: true}))
	far = records.Of(tls.Server(records.Below(accepted), &tls.Config{
		Certificates: []tls.Certificate{certificate(t)}}))
	t.Cleanup(func() { _, _ = dialled.Close(), accepted.Close() })
	var all sync.WaitGroup
	for _, end := range []*records.Conn{near, far} {
		all.Go(func() {
			if err := end.HandshakeContext(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	return near, far, below
}

func TestALargeWriteIsOneOfTheNetwork(t *testing.T) {
	near, far, below := ends(t)
	for _, size := range []int{1, 1 << 10, 16 << 10, 100 << 10, 256 << 10} {
		before, sent := below.writes.Load(), make([]byte, size)
		_, _ = rand.Read(sent)
		got := make(chan []byte)
		go func() {
			b := make([]byte, size)
			_, _ = io.ReadFull(far, b)
			got <- b
		}()
		if n, err := near.Write(sent); n != size || err != nil {
			t.Fatalf("wrote %d of %d: %v", n, size, err)
		}
		if !bytes.Equal(<-got, sent) {
			t.Fatalf("%d bytes arrived as others", size)
		}
		if writes := below.writes.Load() - before; writes != 1 {
			t.Errorf("%d bytes took %d writes", size, writes)
		}
	}
}

func TestManyWriteAtOnce(t *testing.T) {
	near, far, _ := ends(t)
	const pieces, writers = 200, 4
	sizes := [writers]int{3, 1 << 10, 20 << 10, 70 << 10}
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			piece := bytes.Repeat([]byte{byte(i)}, sizes[i])
			for range pieces {
				if _, err := near.Write(piece); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	go func() {
		all.Wait()
		_ = near.CloseWrite()
	}()
	var counts [writers]int
	for b := make([]byte, 32<<10); ; {
		n, err := far.Read(b)
		for _, v := range b[:n] {
			counts[v]++
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Error(err)
			}
			break
		}
	}
	for i, n := range counts {
		if n != pieces*sizes[i] {
			t.Errorf("of %d bytes of writer %d %d arrived", pieces*sizes[i], i, n)
		}
	}
}

func TestBothSidesWriteAtOnce(t *testing.T) {
	near, far, _ := ends(t)
	data := make([]byte, 4<<20)
	_, _ = rand.Read(data)
	want := sha256.Sum256(data)
	var all sync.WaitGroup
	for _, pair := range [][2]*records.Conn{{near, far}, {far, near}} {
		all.Go(func() {
			for piece := range slices.Chunk(data, 256<<10) {
				if _, err := pair[0].Write(piece); err != nil {
					t.Error(err)
				}
			}
		})
		all.Go(func() {
			sum := sha256.New()
			if _, err := io.CopyN(sum, pair[1], int64(len(data))); err != nil || !bytes.Equal(sum.Sum(nil), want[:]) {
				t.Errorf("other bytes arrived: %v", err)
			}
		})
	}
	all.Wait()
}

// blocked starts a write that the network takes no end of, and waits until it is under way.
func blocked(t *testing.T, near *records.Conn, below *counted) chan error {
	t.Helper()
	before, ended := below.writes.Load(), make(chan error, 1)
	go func() {
		_, err := near.Write(make([]byte, 64<<20))
		ended <- err
	}()
	for below.writes.Load() == before {
		time.Sleep(time.Millisecond)
	}
	return ended
}

func TestCloseEndsAWriteAtOnce(t *testing.T) {
	near, _, below := ends(t)
	ended := blocked(t, near, below)
	start := time.Now()
	_ = near.Close()
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("the write ended with %v", err)
	}
	if took := time.Since(start); took > 3*time.Second { // TLS gives its goodbye 5 s
		t.Errorf("it took %v", took)
	}
}

func TestADeadlineEndsWritesForGood(t *testing.T) {
	near, _, below := ends(t)
	ended := blocked(t, near, below)
	if err := near.SetWriteDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the write ended with %v", err)
	}
	if err := near.SetWriteDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{1, 100 << 10} {
		if _, err := near.Write(make([]byte, size)); err == nil {
			t.Errorf("%d bytes were written behind half a record", size)
		}
	}
}

func TestCloseSaysGoodbye(t *testing.T) {
	near, far, _ := ends(t)
	if _, err := near.Write(make([]byte, 100<<10)); err != nil {
		t.Fatal(err)
	}
	go func() { _ = near.Close() }()
	if n, err := io.Copy(io.Discard, far); n != 100<<10 || err != nil {
		t.Errorf("%d bytes, then %v", n, err)
	}
}
