package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"
)

func noise(t *testing.T, size int) []byte {
	t.Helper()
	data := make([]byte, size)
	if _, err := rand.NewChaCha8([32]byte{7}).Read(data); err != nil {
		t.Fatal(err)
	}
	return data
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func incomingAt(t *testing.T, there []byte) *incoming {
	t.Helper()
	name := filepath.Join(t.TempDir(), "part")
	if err := os.WriteFile(name, there, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	into, err := newIncoming(file)
	if err != nil {
		t.Fatal(err)
	}
	return into
}

func TestTheChecksumOfWhatComesIsThatOfTheWholeFile(t *testing.T) {
	whole := noise(t, 3<<20+5)
	const before, cut = 1000, 2<<20 + 1 // of another run, and where the connection breaks
	for name, there := range map[string][]byte{"from the beginning": nil, "on a part": whole[:before],
		"complete": whole} {
		t.Run(name, func(t *testing.T) {
			into := incomingAt(t, there)
			broken := errors.New("the connection broke")
			if into.at.Load() < cut {
				came := bytes.NewReader(whole[into.at.Load():cut])
				lost, err := into.take(io.MultiReader(came, iotest.ErrReader(broken)))
				if !errors.Is(lost, broken) || err != nil || into.at.Load() != cut {
					t.Fatalf("at %d: %v, %v", into.at.Load(), lost, err)
				}
			}
			if lost, err := into.take(bytes.NewReader(whole[into.at.Load():])); lost != nil || err != nil {
				t.Fatal(lost, err)
			}
			if got := into.checksum(); got != sumOf(whole) {
				t.Errorf("the checksum is %s", got)
			}
			if got, err := os.ReadFile(into.file.Name()); err != nil || !bytes.Equal(got, whole) {
				t.Errorf("the file is another, %v", err)
			}
		})
	}
}

func TestWhatIsThrownAwayIsNotInTheChecksum(t *testing.T) {
	into := incomingAt(t, noise(t, 1<<20))
	if err := into.restart(); err != nil {
		t.Fatal(err)
	}
	other := bytes.Repeat([]byte("other"), 200_000)
	if lost, err := into.take(bytes.NewReader(other)); lost != nil || err != nil {
		t.Fatal(lost, err)
	}
	if got := into.checksum(); got != sumOf(other) {
		t.Errorf("the checksum is %s", got)
	}
}

func TestAFileThatCannotBeWrittenIsNoLostConnection(t *testing.T) {
	into := incomingAt(t, nil)
	file, err := os.Open(into.file.Name()) // only to be read
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	into.file = file
	if lost, err := into.take(bytes.NewReader(noise(t, 1<<20))); lost != nil || err == nil {
		t.Errorf("%v, %v", lost, err)
	}
}

func TestWhatGrowsWhileItIsSentEndsWhereItDid(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(name, []byte("0123456789 and more"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := newOutgoing(name, 2, 10)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if got, err := io.ReadAll(iotest.OneByteReader(out)); err != nil || string(got) != "23456789" {
		t.Errorf("%q, %v", got, err)
	}
}
