package files

import (
	"bytes"
	"crypto/sha256"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// ragged gives as many bytes at a time as it likes.
type ragged struct {
	r    io.Reader
	dice *rand.Rand
}

func (g ragged) Read(p []byte) (int, error) { return g.r.Read(p[:min(len(p), 1+g.dice.IntN(100_000))]) }

func TestWhatComesInAnyPiecesIsWrittenWhole(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{0, 1, blockBytes - 1, blockBytes, blockBytes + 1, 3*writeEvery/2 + 5} {
		data := make([]byte, size)
		if _, err := rand.NewChaCha8([32]byte{}).Read(data); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(t.TempDir(), "part")
		if err := os.WriteFile(name, []byte("before"), 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		told := int64(6)
		if err := CopyAt(file, 6, ragged{bytes.NewReader(data), dice}, sha256.New(), func(at int64) {
			if info, err := file.Stat(); err != nil || at < told || info.Size() < at {
				t.Errorf("it has written up to %d, after %d, and there are %d bytes, %v", at, told, info.Size(), err)
			}
			told = at
		}); err != nil {
			t.Fatal(err)
		}
		if told != int64(6+size) {
			t.Errorf("at last it told of %d bytes", told-6)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, append([]byte("before"), data...)) {
			t.Errorf("of %d bytes %d came, or others, %v", size, len(got)-6, err)
		}
	}
}

func TestWhatCannotBeWrittenIsNotReadOn(t *testing.T) {
	name := filepath.Join(t.TempDir(), "part")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(name) // only to be read
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := copyAt(&placed{file: file}, rand.NewChaCha8([32]byte{}), &runningSum{hash: sha256.New()}); err == nil {
		t.Error("it was written")
	}
}
