package layers_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"slipway/backend/layers"
	"slipway/backend/session"
	"slipway/gpu"
)

// pictured is an image in memory that can be sent.
type pictured struct {
	parts   session.ImageParts
	content map[string][]byte
	sent    int // how often a stream was asked for
}

func digest(data []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(data)) }

// picture makes an image with layers of the given sizes, some of which hold
// nothing that can be compressed.
func picture(random *rand.Rand, sizes ...int) *pictured {
	p := &pictured{content: map[string][]byte{session.ImageConfig: []byte(`{"os":"linux"}`)}}
	p.parts = session.ImageParts{ID: digest(p.content[session.ImageConfig]), Refs: []string{"example:1"}, Arch: "amd64",
		OS: "linux"}
	for i, size := range sizes {
		data := make([]byte, size)
		for at := range data {
			data[at] = byte(at / 100)
			if i%2 == 0 {
				data[at] = byte(random.Uint32())
			}
		}
		p.content[digest(data)] = data
		p.parts.Layers = append(p.parts.Layers, session.ImageLayer{Digest: digest(data), Size: gpu.Bytes(size)})
	}
	return p
}

func (p *pictured) SendImage(ctx context.Context, wish session.ImageWish) (io.ReadCloser, error) {
	p.sent++
	reader, writer := io.Pipe()
	stop := context.AfterFunc(ctx, func() { reader.CloseWithError(ctx.Err()) })
	go func() {
		defer stop()
		w, err := layers.NewWriter(writer)
		// an engine has an order of its own
		for _, i := range rand.New(rand.NewPCG(uint64(p.sent), 3)).Perm(len(wish.Parts)) {
			mark := wish.Parts[i]
			if err == nil {
				err = w.Part(mark, bytes.NewReader(p.content[mark.Part][mark.Offset:]))
			}
		}
		if err == nil {
			err = w.Close()
		}
		writer.CloseWithError(err)
	}()
	return reader, nil
}

// owner is whoever brings the images.
const owner = "ann"

// shore is a target over a depot, reached by connections that a test may break.
type shore struct {
	t       *testing.T
	config  layers.Config
	present int
	budget  func() int // how many bytes the next connection carries; negative: all

	mu    sync.Mutex
	depot *layers.Depot
	ended sync.WaitGroup
	errs  []error
}

func newShore(t *testing.T, config layers.Config) *shore {
	t.Helper()
	if config.Dir == "" {
		config.Dir = t.TempDir()
	}
	s := &shore{t: t, config: config, budget: func() int { return -1 }}
	s.restart()
	t.Cleanup(s.ended.Wait)
	return s
}

// restart opens the depot anew, as after a death of the process.
func (s *shore) restart() {
	s.t.Helper()
	s.ended.Wait() // whoever received died with it
	depot, err := layers.Open(s.config)
	if err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.depot = depot
}

func (s *shore) current() *layers.Depot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.depot
}

func (s *shore) ExpectImage(_ context.Context, parts session.ImageParts) (session.ImageArrival, error) {
	return s.current().Expect(owner, parts, s.present)
}

func (s *shore) ReceiveImage(_ context.Context, id string) (io.ReadWriteCloser, error) {
	near, far := net.Pipe()
	depot := s.current()
	s.ended.Go(func() {
		err := depot.Receive(owner, id, far)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.errs = append(s.errs, err)
	})
	return &thread{Conn: near, left: s.budget()}, nil
}

// thread breaks after a number of bytes.
type thread struct {
	net.Conn
	left int // negative: it never breaks
}

var errBroken = errors.New("the connection broke")

func (c *thread) Write(p []byte) (int, error) {
	if c.left < 0 {
		return c.Conn.Write(p)
	}
	if len(p) <= c.left {
		c.left -= len(p)
		return c.Conn.Write(p)
	}
	n := 0
	if c.left > 0 {
		n, _ = c.Conn.Write(p[:c.left]) // what was lost is lost
	}
	c.left = 0
	return n, errors.Join(errBroken, c.Close())
}

// patient tries again after a broken connection, and calls between before.
func patient(between func()) layers.Report {
	return layers.Report{
		Progress: func(_, _ gpu.Bytes) {},
		Again: func(_ context.Context, err error) error {

			var e *session.Error
			if errors.As(err, &e) && e.Code != session.CodeImageReplaced {
				return err
			}
			between()
			return nil
		},
	}
}

// mustHold checks that every part has arrived as it was.
func mustHold(t *testing.T, depot *layers.Depot, p *pictured) {
	t.Helper()
	_, whole, err := depot.Parts(owner, p.parts.ID)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range p.content {
		stored, ok := whole[name]
		if !ok {
			t.Fatalf("part %s is not there", name)
		}
		content, err := stored.Open()
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(content)
		if err := errors.Join(err, content.Close()); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) || stored.Size != gpu.Bytes(len(want)) {
			t.Fatalf("part %s has %d bytes, said to be %d, and should have %d", name, len(got), stored.Size, len(want))
		}
	}
}

func TestImageArrivesWhateverBreaks(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 7))
			p := picture(random, 9<<20, 1, 1<<20+17, 0, 3<<20)
			s := newShore(t, layers.Config{})
			cuts := 0
			s.budget = func() int {
				if cuts++; cuts > 8 {
					return -1
				}
				return random.IntN(6 << 20)
			}
			report := patient(func() {
				if random.IntN(3) == 0 {
					s.restart() // its process died, with what it had in memory
				}
			})
			var last gpu.Bytes
			report.Progress = func(done, total gpu.Bytes) {
				if done > total {
					t.Errorf("%d of %d bytes have arrived", done, total)
				}
				last = done
			}
			if err := layers.Carry(t.Context(), p, s, p.parts, report); err != nil {
				t.Fatal(err)
			}
			mustHold(t, s.current(), p)
			var all gpu.Bytes
			for _, layer := range p.parts.Layers {
				all += layer.Size
			}
			if last != all {
				t.Errorf("%d of %d bytes were told at the end", last, all)
			}
		})
	}
}

func TestLayersThatAreThereAreNotSent(t *testing.T) {
	p := picture(rand.New(rand.NewPCG(3, 4)), 1000, 2000, 3000, 2000)
	p.parts.Layers[3] = p.parts.Layers[1] // the same layer twice
	s := newShore(t, layers.Config{})
	s.present = 1
	arrival, err := s.ExpectImage(t.Context(), p.parts)
	if err != nil {
		t.Fatal(err)
	}
	if arrival.Present != 2 || len(arrival.Missing) != 3 || arrival.Missing[0].Part != session.ImageConfig {
		t.Errorf("what is missing is %+v", arrival)
	}
}

func TestReceivedImageIsRefused(t *testing.T) {
	send := func(t *testing.T, config layers.Config, change func(*pictured)) error {
		p := picture(rand.New(rand.NewPCG(5, 6)), 2<<20)
		change(p)
		s := newShore(t, config)
		return layers.Carry(t.Context(), p, s, p.parts, patient(func() {}))
	}
	for name, c := range map[string]struct {
		code   session.Code
		config layers.Config
		change func(*pictured)
	}{
		"when a layer is another": {code: session.CodeImageCorrupt,
			change: func(p *pictured) { p.content[p.parts.Layers[0].Digest][77]++ }},
		"when the disk has no room": {
			code: session.CodeDiskFull, change: func(*pictured) {},
			config: layers.Config{Free: func(string) (gpu.Bytes, error) { return gpu.MiB, nil }},
		},
		"when a layer is named like a path": {code: session.CodeImageInvalid,
			change: func(p *pictured) { p.parts.Layers[0].Digest = "../../etc/passwd" }},
		"when its id is invalid": {code: session.CodeImageInvalid,
			change: func(p *pictured) { p.parts.ID = "example" }},
		"when it has no layers": {code: session.CodeImageInvalid,
			change: func(p *pictured) { p.parts.Layers = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			if err := send(t, c.config, c.change); session.CodeOf(err) != c.code {
				t.Errorf("the transfer fails with %v", err)
			}
		})
	}
}

func TestSecondStreamEndsTheFirst(t *testing.T) {
	p := picture(rand.New(rand.NewPCG(8, 9)), 4<<20)
	s := newShore(t, layers.Config{})
	if _, err := s.ExpectImage(t.Context(), p.parts); err != nil {
		t.Fatal(err)
	}
	stalled, err := s.ReceiveImage(t.Context(), p.parts.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := layers.Carry(t.Context(), p, s, p.parts, patient(func() {})); err != nil {
		t.Fatal(err)
	}
	mustHold(t, s.current(), p)
	if _, err := io.Copy(io.Discard, stalled); err != nil && !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the first stream ends with %v", err)
	}
}

func TestCancelledTransferEnds(t *testing.T) {
	p := picture(rand.New(rand.NewPCG(10, 11)), 64<<20)
	s := newShore(t, layers.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	report := patient(func() {})
	report.Progress = func(done, _ gpu.Bytes) {
		if done > 0 {
			cancel()
		}
	}
	if err := layers.Carry(ctx, p, s, p.parts, report); !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
	if err := s.current().Forget(owner, p.parts.ID); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(s.config.Dir); err != nil || len(entries) != 0 {
		t.Errorf("%v is left (%v)", entries, err)
	}
}

func TestImageNobodyGoesOnWithIsDroppedAfterAWeek(t *testing.T) {
	p := picture(rand.New(rand.NewPCG(12, 13)), 1000)
	now := time.Now()
	s := newShore(t, layers.Config{Now: func() time.Time { return now }})
	if _, err := s.ExpectImage(t.Context(), p.parts); err != nil {
		t.Fatal(err)
	}
	now = now.Add(6 * 24 * time.Hour)
	if err := s.current().Sweep(); err != nil {
		t.Fatal(err)
	}
	s.restart()
	if _, _, err := s.current().Parts(owner, p.parts.ID); err != nil {
		t.Fatalf("after six days: %v", err)
	}
	now = now.Add(25 * time.Hour)
	if err := s.current().Sweep(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.current().Parts(owner, p.parts.ID); session.CodeOf(err) != session.CodeImageUnexpected {
		t.Errorf("after a week: %v", err)
	}
}

// What one person brings is out of the reach of others, who have room of their own.
func TestTransfersAreTheirOwners(t *testing.T) {
	depot, err := layers.Open(layers.Config{Dir: t.TempDir(), Quota: layers.Quota{Images: 2}})
	if err != nil {
		t.Fatal(err)
	}
	images := make([]*pictured, 4)
	for i := range images {
		images[i] = picture(rand.New(rand.NewPCG(20, uint64(i))), 1000)
		images[i].parts.ID = fmt.Sprintf("sha256:%064d", i)
	}
	theirs := images[0]
	theirs.parts.Refs = []string{"slipway-custom/ann/tool:1"}
	if _, err := depot.Expect("ann", theirs.parts, 0); err != nil {
		t.Fatal(err)
	}
	forged := theirs.parts
	forged.Refs = []string{"slipway-custom/bob/tool:1"}
	if _, err := depot.Expect("bob", forged, 0); err != nil {
		t.Fatal(err)
	}
	if err := depot.Forget("bob", theirs.parts.ID); err != nil {
		t.Fatal(err)
	}
	if parts, _, err := depot.Parts("ann", theirs.parts.ID); err != nil ||
		!slices.Equal(parts.Refs, theirs.parts.Refs) {
		t.Errorf("after another brought and forgot the same, ann's is called %q, %v", parts.Refs, err)
	}
	if _, _, err := depot.Parts("bob", theirs.parts.ID); session.CodeOf(err) != session.CodeImageUnexpected {
		t.Errorf("another has it: %v", err)
	}
	for i, p := range images[1:] {
		_, err := depot.Expect("bob", p.parts, 0)
		if full := i == 2; full != (session.CodeOf(err) == session.CodeImageConflict) {
			t.Errorf("bob's image %d: %v", i, err)
		}
	}
	if _, err := depot.Expect("ann", images[1].parts, 0); err != nil {
		t.Errorf("ann has no place: bob has taken all: %v", err)
	}
}

// The size that a sender gives may be a lie, so what arrives is counted.
func TestWhatOnePersonSendsIsBounded(t *testing.T) {
	p := picture(rand.New(rand.NewPCG(30, 31)), 2<<20, 2<<20)
	quota := layers.Config{Quota: layers.Quota{Size: 3 * gpu.MiB}}
	s := newShore(t, quota)
	if _, err := s.ExpectImage(t.Context(), p.parts); session.CodeOf(err) != session.CodeTooLarge {
		t.Errorf("4 MiB are expected of one who may have 3: %v", err)
	}
	for i := range p.parts.Layers {
		p.parts.Layers[i].Size = 0
	}
	err := layers.Carry(t.Context(), p, s, p.parts, patient(func() {}))
	if session.CodeOf(err) != session.CodeTooLarge {
		t.Errorf("layers of a size that is a lie: %v", err)
	}
	var kept int64
	err = filepath.WalkDir(s.config.Dir, func(_ string, entry os.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			var info os.FileInfo
			if info, err = entry.Info(); err == nil {
				kept += info.Size()
			}
		}
		return err
	})
	if err != nil || kept > 4<<20 {
		t.Errorf("%d bytes are kept, %v", kept, err)
	}
}

func TestStrayFolderIsRemoved(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "stray"), 0o700); err != nil {
		t.Fatal(err)
	}
	newShore(t, layers.Config{Dir: dir})
	if _, err := os.Stat(filepath.Join(dir, "stray")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there (%v)", err)
	}
}

func FuzzReader(f *testing.F) {
	var stream bytes.Buffer
	w, err := layers.NewWriter(&stream)
	if err != nil {
		f.Fatal(err)
	}
	if err := errors.Join(w.Part(session.PartMark{Part: session.ImageConfig}, bytes.NewReader([]byte("{}"))),
		w.Close()); err != nil {
		f.Fatal(err)
	}
	f.Add(stream.Bytes())
	f.Add([]byte("C\x00\x00\x00\x05\xff\xff\xff\xff\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		reader := layers.NewReader(bytes.NewReader(data))
		for {
			frame, err := reader.Next()
			if err != nil {
				break
			}
			if len(frame.Payload) > 2<<20 || frame.Content > 1<<20 {
				t.Fatalf("a frame of %d bytes", len(frame.Payload))
			}
		}
		depot, err := layers.Open(layers.Config{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		p := picture(rand.New(rand.NewPCG(1, 1)), 10)
		if _, err := depot.Expect(owner, p.parts, 0); err != nil {
			t.Fatal(err)
		}
		near, far := net.Pipe()
		go func() {
			_, _ = near.Write(data) // as far as it is taken
			_ = near.Close()
		}()
		go func() { _, _ = io.Copy(io.Discard, near) }()
		_ = depot.Receive(owner, p.parts.ID, far) // whatever it says, it ends
	})
}
