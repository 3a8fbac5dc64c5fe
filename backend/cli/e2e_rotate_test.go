//go:build linux && !race

package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"slipway/backend/api"
	"slipway/backend/daemon"
	"slipway/backend/place"
	"slipway/backend/session"
)

// lone is the real program as a daemon in a folder of its own, which listens
// for paired computers.
func lone(t *testing.T) *installed {
	t.Helper()
	path, err := buildProgram()
	if err != nil {
		t.Fatal(err)
	}
	p := &installed{t: t, path: path, home: place.Home{Dir: t.TempDir()}}
	p.env = append(os.Environ(), "SLIPWAY_HOME="+p.home.Dir)
	t.Cleanup(func() {
		if log, err := os.ReadFile(daemon.LogFile(p.home)); err == nil && t.Failed() {
			t.Logf("the agent's log:\n%s", log)
		}
		if got := p.do("agent", "stop"); got.code != ExitOK {
			t.Errorf("stop: %+v", got)
		}
	})
	p.must("agent", "start", "--engine", "sim", "--listen", "127.0.0.1:0", "--keeper", "none")
	return p
}

// told decodes what a command prints as JSON.
func told[T any](p *installed, args ...string) (value T) {
	p.t.Helper()
	if text := p.must(append(args, "-o", "json")...); json.Unmarshal([]byte(text), &value) != nil {
		p.t.Fatalf("slipway %q printed %s", args, text)
	}
	return value
}

// typing runs a command at a terminal and types an answer each time that it asks
// for something with a word. It returns what the terminal showed.
func (p *installed) typing(word, answer string, args ...string) (shown string, err error) {
	p.t.Helper()
	cmd := p.command(args...)
	terminal, err := pty.Start(cmd)
	if err != nil {
		p.t.Fatal(err)
	}
	defer terminal.Close()
	var screen bytes.Buffer
	part := make([]byte, 4096)
	for asked := 0; ; {
		n, err := terminal.Read(part)
		screen.Write(part[:n])
		if now := strings.Count(screen.String(), word); now > asked {
			asked = now
			if _, err := io.WriteString(terminal, answer+"\r"); err != nil {
				p.t.Fatal(err)
			}
		}
		if err != nil {
			break // the program has left its terminal
		}
	}
	return screen.String(), cmd.Wait()
}

// pairedWith makes a laptop that is paired with an agent, which it calls box.
func pairedWith(t *testing.T, far *installed) *installed {
	t.Helper()
	near := install(t, "sim")
	code := told[session.PairCode](far, "agent", "pair")
	shown, err := near.typing("Type the code", code.Code, "agent", "add", "slipway://"+code.Address, "--name", "box")
	if err != nil {
		t.Fatalf("%v\n%s", err, shown)
	}
	near.boxUntil("reached", func(a api.Agent) bool { return a.Connection.State == "connected" })
	return near
}

// boxUntil waits until the agent box is as it should be.
func (p *installed) boxUntil(what string, is func(api.Agent) bool) api.Agent {
	p.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		a := told[api.Agent](p, "agent", "show", "box")
		if is(a) {
			return a
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("not %s: %+v", what, a)
		}
	}
}

func reached(key string) func(api.Agent) bool {
	return func(a api.Agent) bool {
		return a.Connection.State == "connected" && a.Fingerprint == key && a.Question == nil
	}
}

// TestKeysAreChangedWithoutAQuestion changes the keys of two real processes that
// are paired, and then puts a stranger in the agent's place.
func TestKeysAreChangedWithoutAQuestion(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds and runs the whole program")
	}
	far := lone(t)
	near := pairedWith(t, far)
	first := told[daemon.Status](far, "agent", "status").Key
	near.boxUntil("pinned", reached(first))

	t.Run("the agent's, and it is followed and remembered", func(t *testing.T) {
		rotated := told[session.KeyRotation](far, "agent", "rotate")
		if rotated.Before != first || rotated.Key == first || rotated.Clients != 1 {
			t.Fatalf("%+v", rotated)
		}
		near.boxUntil("reached under the new key", reached(rotated.Key))
		if now := told[daemon.Status](far, "agent", "status").Key; now != rotated.Key {
			t.Errorf("the agent shows %s", now)
		}
		near.must("shutdown")
		near.boxUntil("reached after a restart", reached(rotated.Key))
	})
	t.Run("the agent's, twice while the laptop is away and with a restart between", func(t *testing.T) {
		near.must("shutdown")
		if rotated := told[session.KeyRotation](far, "agent", "rotate"); rotated.Clients != 0 {
			t.Errorf("%+v", rotated)
		}
		status := told[daemon.Status](far, "agent", "status")
		far.must("agent", "stop")
		far.must("agent", "start", "--listen", status.Listen, "--keeper", "none")
		last := told[session.KeyRotation](far, "agent", "rotate").Key
		near.boxUntil("reached under the last key", reached(last))
	})
	t.Run("this computer's, which the agent lists in the old one's place", func(t *testing.T) {
		before := told[[]session.PairedClient](far, "agent", "clients")
		rotated := told[api.KeyRotation](near, "agent", "rotate", "--client")
		if len(before) != 1 || rotated.Before != before[0].Key || len(rotated.Told) != 1 || rotated.Told[0] != "box" ||
			len(rotated.Later) != 0 {
			t.Fatalf("%+v, %+v", before, rotated)
		}
		after := told[[]session.PairedClient](far, "agent", "clients")
		if len(after) != 1 || after[0].Key != rotated.Fingerprint || after[0].Name != before[0].Name ||
			after[0].Role != before[0].Role {
			t.Errorf("%+v became %+v", before, after)
		}
		near.boxUntil("reached with it", func(a api.Agent) bool { return a.Connection.State == "connected" })
		near.must("shutdown")
		near.boxUntil("reached with it after a restart",
			func(a api.Agent) bool { return a.Connection.State == "connected" })
	})
	t.Run("a login is needed to change that of another machine", func(t *testing.T) {
		if got := near.do("agent", "rotate", "--on", "box"); got.code == ExitOK ||
			!strings.Contains(got.stderr, "agent_call_unavailable") &&
				!strings.Contains(got.stderr, "on its own machine") {
			t.Errorf("%+v", got)
		}
		if got := near.do("agent", "rotate", "--on", "box", "--client"); got.code != ExitUsage {
			t.Errorf("%+v", got)
		}
	})
	t.Run("a new key without a proof is a question", func(t *testing.T) {
		status := told[daemon.Status](far, "agent", "status")
		far.must("agent", "stop")
		if err := os.Remove(far.home.Join("agent.key")); err != nil {
			t.Fatal(err)
		}
		far.must("agent", "start", "--listen", status.Listen, "--keeper", "none")
		stranger := told[daemon.Status](far, "agent", "status").Key
		a := near.boxUntil("asking", func(a api.Agent) bool { return a.Question != nil })
		if a.Question.Pinned != status.Key || a.Question.Found != stranger || a.Fingerprint != status.Key ||
			a.Connection.State == "connected" {
			t.Errorf("%+v", a)
		}
	})
}
