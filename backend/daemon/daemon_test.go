//go:build unix

package daemon

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"slipway/backend/place"
	"slipway/backend/session"
)

func TestDaemonIsStartedOnceAndFound(t *testing.T) {
	home := newHome(t)
	if _, err := Connect(t.Context(), home); !errors.Is(err, ErrNotRunning) {
		t.Fatalf("before the start: %v", err)
	}
	path := program(t, home, "good")
	pids := make(chan int, 4)
	var group sync.WaitGroup
	for range cap(pids) {
		group.Go(func() {
			status, err := Start(t.Context(), home, StartOptions{Program: path, Settings: Settings{Engine: "sim"}})
			if err != nil {
				t.Error(err)
			}
			pids <- status.PID
		})
	}
	group.Wait()
	first := <-pids
	for range cap(pids) - 1 {
		if pid := <-pids; pid != first {
			t.Errorf("processes %d and %d both rule the folder", first, pid)
		}
	}
	if kept, err := LoadSettings(home); err != nil || kept.Engine != "sim" {
		t.Errorf("settings %+v, %v", kept, err)
	}
	t.Run("it leads a session of its own", func(t *testing.T) {
		if sid, err := sessionOf(first); err != nil || sid != first {
			t.Errorf("its session is %d, %v", sid, err)
		}
	})
	t.Run("it answers questions and tells failures as they are", func(t *testing.T) {
		c, err := Connect(t.Context(), home)
		if err != nil {
			t.Fatal(err)
		}
		code, err := c.PairCode(t.Context(), session.PairRequest{Owner: "ada"})
		if err != nil || code.Code != "12-tin-ada" {
			t.Errorf("code %+v, %v", code, err)
		}
		if clients, err := c.PairedClients(t.Context()); err != nil || len(clients) != 1 {
			t.Errorf("clients %+v, %v", clients, err)
		}
		if err := c.RevokeClient(t.Context(), "a/b"); err != nil {
			t.Error(err)
		}
		if err := c.RevokeClient(t.Context(), "x"); session.CodeOf(err) != "agent_find_not-found" ||
			session.AsError(err, "").Hint == "" {
			t.Errorf("revoking a stranger: %v", err)
		}
	})
	t.Run("killed, it is started again over what it left", func(t *testing.T) {
		if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		await := time.Now().Add(patience)
		for {
			if _, err := Connect(t.Context(), home); errors.Is(err, ErrNotRunning) {
				break
			}
			if time.Now().After(await) {
				t.Fatal("it is still found")
			}
		}
		if status := start(t, home, path); status.PID == first {
			t.Error("it is the same process")
		}
	})
}

func TestFailedStartSaysWhatTheDaemonSaid(t *testing.T) {
	home := newHome(t)
	_, err := Start(t.Context(), home, StartOptions{Program: program(t, home, "dying")})
	if session.CodeOf(err) != "server_start_failed" || !strings.Contains(session.AsError(err, "").Hint,
		"I cannot go on") {
		t.Errorf("dying: %v, %+v", err, session.AsError(err, ""))
	}
	_, err = Start(t.Context(), home, StartOptions{Program: program(t, home, "mute"), Timeout: time.Second / 2})
	if session.CodeOf(err) != "server_start_failed" {
		t.Errorf("mute: %v", err)
	}
	lock, err := home.Lock()
	if err != nil {
		t.Fatalf("what did not answer still holds the folder: %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Error(err)
	}
	if _, err := Start(t.Context(), home, StartOptions{Program: home.Join("none")}); session.CodeOf(
		err) != "server_start_failed" {
		t.Errorf("no program: %v", err)
	}
	gone := place.Home{Dir: filepath.Join(t.TempDir(), "removed")}
	if _, err := Start(t.Context(), gone, StartOptions{Program: gone.Join("bin")}); session.CodeOf(
		err) != "server_start_failed" || isThere(gone.Dir) {
		t.Errorf("a folder that was removed is there: %t, %v", isThere(gone.Dir), err)
	}
}

func TestBridgeStartsAndCarries(t *testing.T) {
	home := newHome(t)
	path := program(t, home, "good")
	start(t, home, path)
	in, feed := io.Pipe()
	sink, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Bridge(t.Context(), home, in, out) }()
	sent := bytes.Repeat([]byte("carried "), 100_000)
	go func() {
		_, _ = feed.Write(sent)
		_ = feed.Close()
	}()
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(sink, got); err != nil || !bytes.Equal(got, sent) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the end of its input ended it with %v", err)
	}
}

func TestSocketsMayLieDeep(t *testing.T) {
	dir := t.TempDir()
	for range 6 {
		dir = filepath.Join(dir, strings.Repeat("d", 40))
	}
	home := newHome(t)
	deep := place.Home{Dir: dir}
	path := program(t, home, "good")
	status := start(t, deep, path)
	c, err := Connect(t.Context(), deep)
	if err != nil || status.Home != dir {
		t.Fatalf("%+v, %v", status, err)
	}
	if err := c.StopAndWait(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestDetachedGoesOnWithoutWhoStartedIt(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	home := place.Home{Dir: t.TempDir()}
	var out, diag strings.Builder
	code, err := Detached(t.Context(), home, shell, []string{"-c", "echo said; echo diagnosed >&2; exit 7"}, &out,
		&diag)
	if err != nil || code != 7 || out.String() != "said\n" || diag.String() != "diagnosed\n" {
		t.Errorf("%d, %v: %q %q", code, err, out.String(), diag.String())
	}
	mark := home.Join("done")
	ctx, cancel := context.WithCancel(t.Context())
	ready := home.Join("ready")
	go func() {
		for !isThere(ready) {
			time.Sleep(lookPause)
		}
		cancel()
	}()
	left := home.Join("left")
	script := "touch " + ready + "; until [ -e " + left + " ]; do sleep 0.05; done; touch " + mark
	if _, err := Detached(ctx, home, shell, []string{"-c", script}, io.Discard, io.Discard); !errors.Is(err,
		context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); !isThere(mark); time.Sleep(lookPause) {
		if time.Now().After(deadline) {
			t.Fatal("it did not go on")
		}
	}
}
