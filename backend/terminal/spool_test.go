package terminal

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// sample is output whose byte at an offset is known.
func sample(offset uint64, n int) []byte {
	p := make([]byte, n)
	for i := range p {
		o := offset + uint64(i)
		p[i] = byte(o) ^ byte(o>>8)*31 ^ byte(o>>16)*7
	}
	return p
}

func TestSpoolKeepsAtLeastItsCap(t *testing.T) {
	for name, cfg := range map[string]SpoolConfig{
		"in memory":          {Cap: 10_000},
		"with a file":        {Cap: 3 << 20, Path: "spool"},
		"of a handful":       {Cap: 1},
		"with a small file":  {Cap: 200 << 10, Path: "spool"},
		"file without need":  {Cap: 100, Path: "spool"},
		"of an odd interval": {Cap: 12_345},
	} {
		t.Run(name, func(t *testing.T) {
			if cfg.Path != "" {
				cfg.Path = filepath.Join(t.TempDir(), cfg.Path)
			}
			spool := NewSpool(cfg)
			random := rand.New(rand.NewPCG(1, uint64(cfg.Cap)))
			var end uint64
			for end < 3*uint64(cfg.Cap)+1000 {
				n := random.IntN(1 + random.IntN(70_000))
				if _, err := spool.Write(sample(end, n)); err != nil {
					t.Fatal(err)
				}
				end += uint64(n)
				start, got := spool.Bounds()
				if got != end || end-start < min(end, uint64(cfg.Cap)) {
					t.Fatalf("bounds are %d to %d after %d bytes", start, got, end)
				}
				checkRead(t, spool, start+uint64(random.Int64N(int64(end-start)+1)), random.IntN(100_000)+1)
			}
			start, _ := spool.Bounds()
			for offset := start; offset < end; {
				offset += uint64(checkRead(t, spool, offset, 32<<10))
			}
			var gap *GapError
			if _, err := spool.ReadAt(make([]byte, 1), start-1); !errors.As(err, &gap) || gap.To != start {
				t.Errorf("below start: %v", err)
			}
			if n, err := spool.ReadAt(make([]byte, 1), end+5); n != 0 || err != nil {
				t.Errorf("beyond the end: %d, %v", n, err)
			}
			if err := spool.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(cfg.Path); cfg.Path != "" && err == nil {
				t.Error("the file stays")
			}
			if _, err := spool.Write([]byte("x")); !errors.Is(err, ErrSpoolClosed) {
				t.Errorf("write after close: %v", err)
			}
		})
	}
}

func checkRead(t *testing.T, spool *Spool, offset uint64, n int) int {
	t.Helper()
	p := make([]byte, n)
	got, err := spool.ReadAt(p, offset)
	if err != nil {
		t.Fatalf("read at %d: %v", offset, err)
	}
	if !bytes.Equal(p[:got], sample(offset, got)) {
		t.Fatalf("%d bytes at %d are wrong", got, offset)
	}
	return got
}

func TestSpoolReadersAreIndependent(t *testing.T) {
	const total = 4 << 20
	spool := NewSpool(SpoolConfig{Cap: 256 << 10, Path: filepath.Join(t.TempDir(), "spool")})
	var readers sync.WaitGroup
	for seed := range uint64(4) {
		readers.Go(func() {
			random := rand.New(rand.NewPCG(seed, 2))
			buffer := make([]byte, 40<<10)
			for offset := uint64(0); offset < total; {
				changed := spool.Changed()
				n, err := spool.ReadAt(buffer[:1+random.IntN(len(buffer))], offset)
				var gap *GapError
				switch {
				case errors.As(err, &gap):
					offset = gap.To
				case err != nil:
					t.Errorf("read: %v", err)
					return
				case n == 0:
					<-changed
				case !bytes.Equal(buffer[:n], sample(offset, n)):
					t.Errorf("%d bytes at %d are wrong", n, offset)
					return
				}
				offset += uint64(n)
			}
		})
	}
	for offset := 0; offset < total; offset += 4096 {
		_, _ = spool.Write(sample(uint64(offset), 4096))
	}
	readers.Wait()
}

func TestSpoolGoesOnWithoutItsFile(t *testing.T) {
	spool := NewSpool(SpoolConfig{Cap: 1 << 20, Path: filepath.Join(t.TempDir(), "no", "such", "folder", "spool")})
	for offset := uint64(0); offset < 2<<20; offset += 1000 {
		if _, err := spool.Write(sample(offset, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	if spool.Err() == nil {
		t.Error("the loss of the file is not told")
	}
	start, end := spool.Bounds()
	if end-start < memorySize/2 {
		t.Errorf("only %d bytes are kept", end-start)
	}
	for offset := start; offset < end; {
		offset += uint64(checkRead(t, spool, offset, 10_000))
	}
}

func TestSpoolFileThatFailsMidway(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spool")
	spool := NewSpool(SpoolConfig{Cap: 1 << 20, Path: path})
	write := func(from, to uint64) {
		for offset := from; offset < to; offset += 1024 {
			_, _ = spool.Write(sample(offset, 1024))
		}
	}
	write(0, 600<<10)
	_ = spool.file.Close() // the disk is gone
	write(600<<10, 1200<<10)
	if spool.Err() == nil {
		t.Fatal("the loss of the file is not told")
	}
	start, end := spool.Bounds()
	for offset := start; offset < end; {
		offset += uint64(checkRead(t, spool, offset, 10_000))
	}
}
