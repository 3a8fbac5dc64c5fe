//go:build linux

package backend

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/client"
	"slipway/backend/daemon"
	"slipway/backend/hub"
	"slipway/backend/place"
	"slipway/backend/session"
)

// windows is the program for Windows, which Wine runs on this machine.
type windows struct {
	t       *testing.T
	wine    string
	program string
	home    place.Home // as this system names it
}

// windowsPath is how programs of Windows name a file of this machine.
func windowsPath(path string) string { return "Z:" + strings.ReplaceAll(path, "/", `\`) }

// newWindows builds the program. build/ci/wine.sh says what runs it.
func newWindows(t *testing.T) *windows {
	t.Helper()
	wine := os.Getenv("SLIPWAY_TEST_WINE")
	switch {
	case testing.Short():
		t.Skip("needs Wine; left out under -short")
	case wine == "verify":
		t.Skip("needs Wine, which make verify has")
	case wine == "":
		t.Fatal("SLIPWAY_TEST_WINE is not set: this test needs Wine; run make verify, or use -short to leave it out")
	}
	w := &windows{t: t, wine: wine, program: filepath.Join(t.TempDir(), "slipway.exe"),
		home: place.Home{Dir: t.TempDir()}}
	build := exec.Command("go", "build", "-o", w.program, "slipway")
	build.Env = append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("it does not build: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		if _, _, err := w.try("shutdown"); err != nil {
			t.Error(err)
		}
		if log, err := os.ReadFile(w.home.LogFile()); err == nil && t.Failed() {
			t.Logf("its log:\n%s", log)
		}
	})
	return w
}

// try runs a command and returns what it says and its messages. It waits for the end of its output, which nothing that
// it started may hold. The services of Wine hold the messages of whichever program is the first.
func (w *windows) try(args ...string) (out, messages string, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.t.Context()), patience)
	defer cancel()
	file, err := os.CreateTemp(w.home.Dir, "messages-*")
	if err != nil {
		return "", "", err
	}
	defer file.Close()
	cmd := exec.CommandContext(ctx, w.wine, append([]string{w.program}, args...)...)
	cmd.Env = append(os.Environ(), "SLIPWAY_HOME="+windowsPath(w.home.Dir), "SLIPWAY_ENGINE=sim")
	cmd.Stderr = file
	said, err := cmd.Output()
	told, unread := os.ReadFile(file.Name())
	return strings.ReplaceAll(string(said), "\r\n", "\n"), string(told), errors.Join(err, unread)
}

func (w *windows) run(args ...string) string {
	w.t.Helper()
	out, messages, err := w.try(args...)
	if err != nil {
		w.t.Fatalf("slipway %s: %v\n%s%s", strings.Join(args, " "), err, out, messages)
	}
	return out
}

// works launches a session, and copies a file of random bytes out of it.
func (w *windows) works(t *testing.T, name string, on ...string) {
	t.Helper()
	w.run(append(append([]string{"run", "--detach", "--name", name}, on...), "python:3.12-slim")...)
	for deadline := time.Now().Add(patience); !strings.Contains(w.run("show", name), "RUNNING"); {
		if time.Now().After(deadline) {
			t.Fatal("it does not start")
		}
	}
	if said := w.run("exec", name, "--", "echo", "said in", name); said != "said in "+name+"\n" {
		t.Errorf("it says %q", said)
	}
	if _, _, err := w.try("exec", name, "--", "sh", "-c", "exit 7"); err == nil ||
		!strings.Contains(err.Error(), "7") {
		t.Errorf("a command that fails: %v", err)
	}
}

func TestTheProgramForWindowsIsAClient(t *testing.T) {
	w := newWindows(t)
	if said := w.run("version"); !strings.Contains(said, place.Version) {
		t.Errorf("version: %q", said)
	}
	w.run("serve", "--detach")
	if said, _, _ := w.try("doctor"); !strings.Contains(said, "Slipway's own files") || strings.Contains(said, "sudo") {
		t.Errorf("doctor: %s", said)
	}
	t.Run("sessions", func(t *testing.T) { w.works(t, "here") })
	c, err := client.Connect(t.Context(), w.home)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("the page", func(t *testing.T) {
		response, err := http.Get(strings.TrimSpace(w.run("login", "--print")))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		page := new(bytes.Buffer)
		if _, err := page.ReadFrom(response.Body); err != nil || !strings.Contains(page.String(), "<title>Slipway") {
			t.Errorf("%s: %s, %v", response.Status, page, err)
		}
	})
	t.Run("a lab server", func(t *testing.T) {
		_, control := servedAgent(t, daemon.Settings{Listen: "127.0.0.1:0"})
		status, err := control.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.pair(t, c, control, "slipway://"+status.Listen)
		w.works(t, "there", "--on", "lab")
		sent := make([]byte, 3<<20)
		_, _ = rand.Read(sent) // never fails
		file := filepath.Join(t.TempDir(), "sent.bin")
		if err := os.WriteFile(file, sent, 0o600); err != nil {
			t.Fatal(err)
		}
		w.run("cp", windowsPath(file), "there:sent.bin")
		back := filepath.Join(t.TempDir(), "back.bin")
		w.run("cp", "there:sent.bin", windowsPath(back))
		if got, err := os.ReadFile(back); err != nil || !bytes.Equal(got, sent) {
			t.Errorf("%d bytes come back, %v", len(got), err)
		}
		w.run("stop", "there")
	})
}

// pair adds the agent at an address as "lab".
func (w *windows) pair(t *testing.T, c *client.Client, control *daemon.Client, address string) {
	t.Helper()
	offer, err := control.PairCode(t.Context(), session.PairRequest{})
	if err != nil {
		t.Fatal(err)
	}
	adding, err := route.AgentAdd.Body(api.AgentRequest{
		AgentRequest: hub.AgentRequest{Address: address, Name: "lab"}}).Ask(t.Context(), c)
	for deadline := time.Now().Add(patience); err == nil && adding.State != hub.OperationDone &&
		adding.State != hub.OperationFailed; {
		if adding.Prompt != nil {
			answer := api.PromptAnswer{Prompt: adding.Prompt.ID, Text: offer.Code}
			_, err = route.OperationAnswer.At(adding.ID).Body(answer).Ask(t.Context(), c)
		}
		if err == nil {
			adding, err = route.Operation.At(adding.ID).Ask(t.Context(), c)
		}
		if time.Now().After(deadline) {
			t.Fatalf("it does not end: %+v", adding)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err != nil || adding.State != hub.OperationDone {
		t.Fatalf("%+v, %v", adding, err)
	}
}
