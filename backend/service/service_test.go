package service

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"slipway/backend/local"
	"slipway/backend/place"
	"slipway/backend/session"
	"slipway/backend/store"
)

func TestStartWaitsForTheOneThatIsGivingUp(t *testing.T) {
	home := place.Home{Dir: t.TempDir()}
	lock, err := home.Lock()
	if err != nil {
		t.Fatal(err)
	}
	held := make(chan error, 1)
	go func() {
		second, err := hold(t.Context(), home)
		if err == nil {
			err = second.Close()
		}
		held <- err
	}()
	select {
	case err := <-held:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	if err := errors.Join(lock.Close(), <-held); err != nil {
		t.Fatal(err)
	}
}

func TestPortThatIsTaken(t *testing.T) {
	taken, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	t.Run("asked for, it is a failure that says so", func(t *testing.T) {
		err := Run(t.Context(), Config{Home: place.Home{Dir: t.TempDir()}, Engine: local.EngineSim, Port: port})
		if session.CodeOf(err) != "server_listen_conflict" {
			t.Errorf("ended with %v", err)
		}
	})
	t.Run("used last, another one is taken", func(t *testing.T) {
		shelf, err := store.OpenShelf(filepath.Join(t.TempDir(), "hub.db"))
		if err != nil {
			t.Fatal(err)
		}
		defer shelf.Close()
		if err := shelf.Save(portKey, port); err != nil {
			t.Fatal(err)
		}
		listener, got, err := listen(0, usualPort, shelf)
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		if got == port || got == 0 {
			t.Errorf("port %d", got)
		}
	})
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// patience is how long a test waits for what must happen. No test says how soon
// that is: a machine with other work may take its time.
const patience = 3 * time.Minute

// eventually waits until something is so.
func eventually(ctx context.Context, t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) || ctx.Err() != nil {
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}
