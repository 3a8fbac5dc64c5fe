package client

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway/backend/place"
	"slipway/backend/session"
)

func answering(t *testing.T, home place.Home, token string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(server.Close)
	if err := errors.Join(home.SaveToken("right"),
		home.SaveServing(place.Serving{PID: os.Getpid(), URL: server.URL})); err != nil {
		t.Fatal(err)
	}
	return server
}

func TestConnectFindsWhatAnswersToTheToken(t *testing.T) {
	t.Run("nothing there", func(t *testing.T) {
		if _, err := Connect(t.Context(), place.Home{Dir: t.TempDir()}); !errors.Is(err, ErrNotServing) {
			t.Errorf("Connect = %v, want ErrNotServing", err)
		}
	})
	t.Run("it answers", func(t *testing.T) {
		home := place.Home{Dir: t.TempDir()}
		server := answering(t, home, "right")
		connection, err := Connect(t.Context(), home)
		if err != nil || connection.URL != server.URL || connection.Token != "right" {
			t.Errorf("Connect = %+v, %v", connection, err)
		}
	})
	t.Run("another program has its port", func(t *testing.T) {
		home := place.Home{Dir: t.TempDir()}
		answering(t, home, "of another")
		if _, err := Connect(t.Context(), home); !errors.Is(err, ErrNotServing) {
			t.Errorf("Connect = %v, want ErrNotServing", err)
		}
	})
	t.Run("another one has its port and has not said so yet", func(t *testing.T) {
		home := place.Home{Dir: t.TempDir()}
		next := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			if err := home.RemoveServing(); err != nil { // as it does before it listens
				t.Error(err)
			}
		}))
		defer next.Close()
		if err := errors.Join(home.SaveToken("right"),
			home.SaveServing(place.Serving{PID: 1, URL: next.URL})); err != nil {
			t.Fatal(err)
		}
		if _, err := Connect(t.Context(), home); !errors.Is(err, ErrNotServing) {
			t.Errorf("Connect = %v, want ErrNotServing", err)
		}
	})
	t.Run("it was killed", func(t *testing.T) {
		home := place.Home{Dir: t.TempDir()}
		answering(t, home, "right").Close()
		if _, err := Connect(t.Context(), home); !errors.Is(err, ErrNotServing) {
			t.Errorf("Connect = %v, want ErrNotServing", err)
		}
	})
}

// script makes an executable that stands for the program.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestStartThatFailsTellsWhatItWrote(t *testing.T) {
	home := place.Home{Dir: t.TempDir()}
	if err := os.WriteFile(home.LogFile(), []byte("of an earlier run\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var told bool
	_, err := ConnectOrStart(t.Context(), home, StartOptions{
		Executable: script(t, `echo "the engine $3 $4 is missing"; exit 1`),
		Engine:     "docker",
		Starting:   func() { told = true },
	})
	if !errors.Is(err, ErrNotStarted) ||
		!strings.HasSuffix(session.AsError(err, "").Message, "It wrote: the engine --engine docker is missing") {
		t.Errorf("ConnectOrStart = %v, want ErrNotStarted with what the program wrote", err)
	}
	if !told {
		t.Error("Starting was not called")
	}
}

func TestStartThatHangsIsGivenUp(t *testing.T) {
	home := place.Home{Dir: t.TempDir()}
	pidFile := home.Join("pid")
	_, err := ConnectOrStart(t.Context(), home, StartOptions{
		Executable: script(t, `echo $$ > '`+pidFile+`'; exec sleep 60`),
		Timeout:    300 * time.Millisecond,
	})
	t.Cleanup(func() {
		// it may not have come that far
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			if pid, _ := os.ReadFile(pidFile); bytes.HasSuffix(pid, []byte("\n")) {
				_ = exec.Command("kill", strings.TrimSpace(string(pid))).Run()
				return
			}
		}
		t.Error("what hangs did not even start")
	})
	if !errors.Is(err, ErrNotStarted) || !strings.Contains(err.Error(), "300ms") {
		t.Errorf("ConnectOrStart = %v, want ErrNotStarted with the time", err)
	}
}

func TestStartWaitsForTheOneThatHoldsTheFolder(t *testing.T) {
	home := place.Home{Dir: t.TempDir()}
	lock, err := home.Lock() // another process has begun and does not answer yet
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	ended := make(chan struct{})
	program := script(t, "exit 1")
	go func() {
		defer close(ended)
		time.Sleep(100 * time.Millisecond)
		answering(t, home, "right")
	}()
	connection, err := ConnectOrStart(context.WithoutCancel(t.Context()), home, StartOptions{Executable: program})
	<-ended
	if err != nil || connection.Token != "right" {
		t.Errorf("ConnectOrStart = %+v, %v; want the other one's", connection, err)
	}
}
