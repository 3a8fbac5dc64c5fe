package place

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestHomeIsWhereTheEnvironmentSays(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		env  map[string]string
		want string
	}{
		"SLIPWAY_HOME above all": {map[string]string{"SLIPWAY_HOME": dir, "XDG_DATA_HOME": "/x", "HOME": "/h"},
			dir},
		"XDG_DATA_HOME before HOME": {map[string]string{"XDG_DATA_HOME": "/x", "HOME": "/h"}, "/x/slipway"},
		"a relative one is ignored": {map[string]string{"XDG_DATA_HOME": "x", "HOME": "/h"},
			"/h/.local/share/slipway"},
		"HOME where nothing else is":  {map[string]string{"HOME": "/h"}, "/h/.local/share/slipway"},
		"nothing at all is a failure": {map[string]string{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			home, err := FindHome(func(key string) string { return c.env[key] })
			if home.Dir != c.want || (err != nil) != (c.want == "") {
				t.Errorf("FindHome = %q, %v; want %q", home.Dir, err, c.want)
			}
		})
	}
}

func TestTokenAndServingAreForTheirOwnerAlone(t *testing.T) {
	home := Home{t.TempDir()}
	if err := home.SaveToken("secret"); err != nil {
		t.Fatal(err)
	}
	if err := home.SaveServing(Serving{PID: 7, Port: 7421, URL: "http://127.0.0.1:7421"}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{home.tokenFile(), home.servingFile()} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v; want 0600", path, info.Mode(), err)
		}
	}
	token, err := home.Token()
	if err != nil || token != "secret" {
		t.Errorf("Token = %q, %v", token, err)
	}
	serving, err := home.Serving()
	if err != nil || serving.PID != 7 || serving.URL != "http://127.0.0.1:7421" {
		t.Errorf("Serving = %+v, %v", serving, err)
	}
	if left, _ := filepath.Glob(home.Join("*.*.*")); len(left) > 0 {
		t.Errorf("temporary files are left: %v", left)
	}
	if err := errors.Join(home.RemoveServing(), home.RemoveServing()); err != nil {
		t.Errorf("removing it twice: %v", err)
	}
	if _, err := home.Serving(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Serving after its removal: %v, want fs.ErrNotExist", err)
	}
}

func TestOnlyOneHoldsTheLock(t *testing.T) {
	home := Home{filepath.Join(t.TempDir(), "new")}
	first, err := home.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := home.Lock(); !errors.Is(err, ErrLocked) {
		t.Errorf("a second Lock: %v, want ErrLocked", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := home.Lock()
	if err != nil {
		t.Fatalf("Lock after Close: %v", err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}

func answering(t *testing.T, home Home, token string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(server.Close)
	if err := errors.Join(home.SaveToken("right"),
		home.SaveServing(Serving{PID: os.Getpid(), URL: server.URL})); err != nil {
		t.Fatal(err)
	}
	return server
}

func TestConnectFindsWhatAnswersToTheToken(t *testing.T) {
	t.Run("nothing there", func(t *testing.T) {
		if _, err := (Home{t.TempDir()}).Connect(t.Context()); !errors.Is(err, ErrNotServing) {
			t.Errorf("Connect = %v, want ErrNotServing", err)
		}
	})
	t.Run("it answers", func(t *testing.T) {
		home := Home{t.TempDir()}
		server := answering(t, home, "right")
		connection, err := home.Connect(t.Context())
		if err != nil || connection.URL != server.URL || connection.Token != "right" {
			t.Errorf("Connect = %+v, %v", connection, err)
		}
	})
	t.Run("another program has its port", func(t *testing.T) {
		home := Home{t.TempDir()}
		answering(t, home, "of another")
		if _, err := home.Connect(t.Context()); !errors.Is(err, ErrNotServing) {
			t.Errorf("Connect = %v, want ErrNotServing", err)
		}
	})
	t.Run("another one has its port and has not said so yet", func(t *testing.T) {
		home := Home{t.TempDir()}
		next := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			if err := home.RemoveServing(); err != nil { // as it does before it listens
				t.Error(err)
			}
		}))
		defer next.Close()
		if err := errors.Join(home.SaveToken("right"), home.SaveServing(Serving{PID: 1, URL: next.URL})); err != nil {
			t.Fatal(err)
		}
		if _, err := home.Connect(t.Context()); !errors.Is(err, ErrNotServing) {
			t.Errorf("Connect = %v, want ErrNotServing", err)
		}
	})
	t.Run("it was killed", func(t *testing.T) {
		home := Home{t.TempDir()}
		answering(t, home, "right").Close()
		if _, err := home.Connect(t.Context()); !errors.Is(err, ErrNotServing) {
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
	home := Home{t.TempDir()}
	if err := os.WriteFile(home.LogFile(), []byte("of an earlier run\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var told bool
	_, err := home.ConnectOrStart(t.Context(), StartOptions{
		Executable: script(t, `echo "the engine $3 $4 is missing"; exit 1`),
		Engine:     "docker",
		Starting:   func() { told = true },
	})
	var failure *StartError
	if !errors.As(err, &failure) || failure.Log != "the engine --engine docker is missing" {
		t.Errorf("ConnectOrStart = %v, want a StartError with what the program wrote: %+v", err, failure)
	}
	if !told {
		t.Error("Starting was not called")
	}
}

func TestStartThatHangsIsGivenUp(t *testing.T) {
	home := Home{t.TempDir()}
	pidFile := home.Join("pid")
	_, err := home.ConnectOrStart(t.Context(), StartOptions{
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
	var failure *StartError
	if !errors.As(err, &failure) || !strings.Contains(failure.Text, "300ms") {
		t.Errorf("ConnectOrStart = %v, want a StartError that names the time", err)
	}
}

func TestStartWaitsForTheOneThatHoldsTheFolder(t *testing.T) {
	home := Home{t.TempDir()}
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
	connection, err := home.ConnectOrStart(context.WithoutCancel(t.Context()), StartOptions{Executable: program})
	<-ended
	if err != nil || connection.Token != "right" {
		t.Errorf("ConnectOrStart = %+v, %v; want the other one's", connection, err)
	}
}
