//go:build linux

package backend

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"slipway/backend/hub"
	"slipway/backend/place"
	"slipway/backend/remote"
	"slipway/backend/server"
	"slipway/backend/session"
)

// window is a terminal as a page shows it: one WebSocket, which nobody opens again.
type window struct {
	mu     sync.Mutex // guards the following
	shown  bytes.Buffer
	hellos int
	flaw   error
}

// look reads until the socket ends or says something that a page would show as a flaw.
func (w *window) look(conn *websocket.Conn) {
	next, acked := uint64(0), uint64(0)
	for {
		kind, message, err := conn.ReadMessage()
		w.mu.Lock()
		switch {
		case err != nil:
			w.flaw = err
		case kind != websocket.BinaryMessage:
			w.flaw = fmt.Errorf("it was told %s", message)
		case message[0] == 'H':
			w.hellos++
		case message[0] == 'D':
			if at := binary.BigEndian.Uint64(message[1:]); at != next {
				w.flaw = fmt.Errorf("data at %d, %d comes next", at, next)
			}
			w.shown.Write(message[9:])
			next += uint64(len(message) - 9)
		}
		flaw := w.flaw
		w.mu.Unlock()
		if flaw != nil {
			return
		}
		if next-acked > 64<<10 {
			acked = next
			// a lost one shows in the read
			_ = conn.WriteMessage(websocket.BinaryMessage, binary.BigEndian.AppendUint64([]byte{'A'}, acked))
		}
	}
}

// count is the number in the last whole line, and checks that none is missing.
func (w *window) count(t *testing.T) int {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.flaw != nil {
		t.Fatalf("the terminal ended: %v", w.flaw)
	}
	lines := strings.Split(strings.ReplaceAll(w.shown.String(), "\r", ""), "\n")
	for i, line := range lines[:len(lines)-1] {
		if line != "n"+strconv.Itoa(i+1) {
			t.Fatalf("line %d is %q", i+1, line)
		}
	}
	return len(lines) - 1
}

// pageServer is the loopback server over a hub.
func pageServer(t *testing.T, h *hub.Hub) string {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := server.New(server.Config{Hub: h, Token: "token"})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

// TestFarMachineThroughTheControlPlane adds a machine by ssh, works there over a
// cable that is taken out, and removes it again, all through the hub and the
// server that the user interface stands on.
func TestFarMachineThroughTheControlPlane(t *testing.T) {
	w := newFarWorld(t)
	program := w.build(place.Version)
	configure := func(c *remote.Config) {
		c.SSHConfig, c.SSH, c.Programs = w.client, w.ssh, oneProgram(program)
	}
	n := newNearSide(t, configure)
	begun, err := n.AddAgent(hub.AgentRequest{Address: "lab", Group: "gpus"})
	added := n.work(begun, err, func(p hub.Prompt) string { return "no: " + p.Text })
	if added.State != hub.OperationDone || added.Agent != "lab" || added.Progress == nil ||
		added.Progress.Done != added.Progress.Total {
		t.Fatalf("%+v: %v", added, added.Error)
	}
	a := n.until("reached", "lab", online)
	if a.Entry.Dir != w.home || a.Connection.Transport != "ssh" || a.Role != "admin" {
		t.Errorf("%+v", a)
	}
	s, err := n.Launch(t.Context(),
		hub.LaunchRequest{Key: "one", Spec: session.Spec{Image: "slipway-test/minimal:1",
			Schedule:  session.Schedule{Group: "gpus"},
			Resources: session.Resources{CPU: 1, Memory: 256 << 20}}})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t.Context(), t, "the session runs", func() bool {
		now, stale, err := n.Get(t.Context(), string(s.ID))
		return err == nil && stale == nil && now.Status == session.Running && now.Agent == "lab"
	})

	address := pageServer(t, n.Hub)
	agent, id, err := n.Find(t.Context(), string(s.ID))
	if err != nil {
		t.Fatal(err)
	}
	shell, err := agent.OpenTerminal(t.Context(), id,
		session.TerminalRequest{Cols: 80, Rows: 24,
			Command: []string{"sh", "-c", "i=0; while :; do i=$((i+1)); echo n$i; sleep 0.02; done"}})
	if err != nil {
		t.Fatal(err)
	}
	conn, response, err := websocket.DefaultDialer.Dial(
		"ws://"+address+"/api/v1/sessions/"+string(s.ID)+"/terminals/"+shell.ID+"/attach",
		http.Header{"Authorization": {"Bearer token"}})
	if err != nil {
		t.Fatal(err, response)
	}
	var page window
	var looking sync.WaitGroup
	looking.Go(func() { page.look(conn) })
	defer func() { _ = conn.Close(); looking.Wait() }()
	grows := func(what string) {
		t.Helper()
		from := page.count(t)
		eventually(t.Context(), t, "the terminal goes on "+what, func() bool { return page.count(t) > from+20 })
	}
	grows("at first")

	t.Run("the cable is out for a while", func(t *testing.T) {
		before := page.count(t)
		w.cut(true)
		down := n.until("noticed as lost", "lab", func(a hub.Agent) bool { return !a.Connection.Online })
		if down.Connection.LastHeard == nil || down.Live != 1 {
			t.Errorf("%+v", down)
		}
		if now, stale, err := n.Get(t.Context(), string(s.ID)); err != nil || stale == nil ||
			now.Status != session.Running {
			t.Errorf("%+v, %v, %v", now.Status, stale, err)
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
			"http://"+address+"/api/v1/sessions/"+string(s.ID)+"/terminate", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer token")
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(body), `"agent_`) {
			t.Errorf("%d: %s", answer.StatusCode, body)
		}
		w.cut(false)
		back := time.Now()
		n.until("reached again", "lab", online)
		t.Logf("back after %s", time.Since(back).Round(time.Millisecond))
		eventually(t.Context(), t, "the terminal goes on after the cut",
			func() bool { return page.count(t) > before+20 })
		page.mu.Lock()
		defer page.mu.Unlock()
		if page.hellos != 1 {
			t.Errorf("the page was greeted %d times", page.hellos)
		}
	})

	t.Run("the devices are asked for by ssh", func(t *testing.T) {
		if devices, err := n.PairedClients(t.Context(), "lab"); session.CodeOf(err) != "agent_pair_unavailable" &&
			(err != nil || len(devices) != 0) {
			t.Errorf("%+v, %v", devices, err)
		}
	})

	t.Run("uninstalled, nothing is left on either side", func(t *testing.T) {
		begun, err := n.RemoveAgent("lab", true)
		if removed := n.work(begun, err, nil); removed.State != hub.OperationDone {
			t.Fatalf("%+v: %v", removed, removed.Error)
		}
		if agents := n.Agents(); len(agents) != 1 {
			t.Errorf("%+v", agents)
		}
		eventually(t.Context(), t, "no process is left", func() bool { return len(w.processes()) == 0 })
		list := exec.Command("docker", "-H", w.dockerHost, "ps", "-aq", "--filter",
			"label=slipway.session="+string(s.ID))
		if out, err := list.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("containers %s, %v", out, err)
		}
	})
}
