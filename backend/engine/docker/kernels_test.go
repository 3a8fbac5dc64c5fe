package docker

import (
	"context"
	"net"
	"os"
	"sync"
	"testing"

	"slipway/backend/engine"
)

type noLink struct{}

func (noLink) accept(context.Context) (net.Conn, error) { return nil, errClosed }
func (noLink) close()                                   {}

// What a killed process left of a container is removed, but not while the same container is made again.
func TestASweepKeepsTheFilesOfWhatIsMade(t *testing.T) {
	ks, err := openKernels(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer ks.close()
	files := delivery{daemon: "it", arch: "amd64", config: engine.GuestConfig{Session: "abcdefghijkl"},
		binary: func(string) ([]byte, error) { return []byte("the guest"), nil },
		link:   func(*kernel) (link, error) { return noLink{}, nil }}
	const name = "slipway-abcdefghijkl-main1-1"
	for range 100 {
		if err := ks.write(must(ks.path(name))(t), files); err != nil { // by a process that was killed
			t.Fatal(err)
		}
		var both sync.WaitGroup
		both.Go(func() {
			if err := ks.sweep(name); err != nil {
				t.Error(err)
			}
		})
		k, _, err := ks.prepare(name, files)
		both.Wait()
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{k.guestPath(), k.configPath(), k.linkPath()} {
			if _, err := os.Stat(path); err != nil {
				t.Fatal(err)
			}
		}
		if err := ks.discard(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := ks.write(must(ks.path(name))(t), files); err != nil {
		t.Fatal(err)
	}
	if err := ks.sweep(name); err != nil {
		t.Fatal(err)
	}
	if names := must(ks.names("it"))(t); len(names) > 0 {
		t.Errorf("the sweep left %v", names)
	}
}

func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}
