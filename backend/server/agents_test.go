package server_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"slipway/backend/api"
	"slipway/backend/hub"
	"slipway/backend/hub/hubtest"
	"slipway/backend/session"
	"slipway/backend/terminal"
)

const labAddress = "ssh://ada@lab"

// addLab adds an agent on another machine through the API and returns it with
// the way to it.
func (w *world) addLab(t *testing.T) (*hubtest.Agent, *hubtest.Remote) {
	t.Helper()
	lab := hubtest.New("itself")
	w.connector.Machine(labAddress, lab)
	lab.Put(session.Session{ID: "aaaaaaaaaaaa", Name: "over-there", Status: session.Running,
		Spec: session.Spec{Image: "a:1"}, CreatedAt: time.Now()})
	var op api.Operation
	if status := w.call(t, "POST", "/api/v1/agents", `{"address":"ada@lab","group":"gpus"}`,
		&op); status != http.StatusAccepted {
		t.Fatalf("adding answers %d", status)
	}
	w.until(t, "the agent is reached", func() bool {
		var a api.Agent
		return w.call(t, "GET", "/api/v1/agents/lab", "", &a) == 200 && a.Connection.State == "connected" && a.Live == 1
	})
	return lab, w.connector.Remote(labAddress)
}

// cutLab cuts the way to the agent and waits until that is known.
func (w *world) cutLab(t *testing.T, remote *hubtest.Remote) {
	t.Helper()
	remote.SetUp(false)
	w.until(t, "it is down", func() bool {
		var a api.Agent
		w.call(t, "GET", "/api/v1/agents/lab", "", &a)
		return a.Connection.State == "down"
	})
}

// until looks again and again until something is so.
func (w *world) until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

func TestAgentsOverTheAPI(t *testing.T) {
	w := start(t)
	_, remote := w.addLab(t)
	var all []api.Agent
	if w.call(t, "GET", "/api/v1/agents", "", &all); len(all) != 2 || !all[0].Local || all[1].Address != labAddress ||
		all[1].Group != "gpus" || all[1].Fingerprint == "" {
		t.Fatalf("%+v", all)
	}
	t.Run("an operation is found and has ended", func(t *testing.T) {
		var ops []api.Operation
		if w.call(t, "GET", "/api/v1/operations", "", &ops); len(ops) != 1 || ops[0].State != "done" ||
			ops[0].Agent != "lab" || len(ops[0].Steps) != 1 {
			t.Fatalf("%+v", ops)
		}
	})
	t.Run("wrong values name their field", func(t *testing.T) {
		for body, field := range map[string]string{
			`{"address":"http://lab"}`: "address", `{"address":"-oProxyCommand=x"}`: "address",
			`{"address":"other","name":"a b"}`: "name", `{"address":"other","group":"/"}`: "group",
		} {
			var p session.Error
			if status := w.call(t, "POST", "/api/v1/agents", body, &p); status != 422 || len(p.Fields) != 1 ||
				p.Fields[0].Field != field {
				t.Errorf("%s: %d %+v", body, status, p)
			}
		}
	})
	t.Run("clients are listed and revoked", func(t *testing.T) {
		remote.SetClients(session.PairedClient{Name: "desk", Key: "print-of-here", Role: "admin"})
		var clients []api.PairedClient
		if w.call(t, "GET", "/api/v1/agents/lab/clients", "", &clients); len(clients) != 1 || !clients[0].This {
			t.Fatalf("%+v", clients)
		}
		if status := w.call(t, "DELETE", "/api/v1/agents/lab/clients/print-of-here", "", nil); status != 204 {
			t.Fatalf("revoking answers %d", status)
		}
		var code api.PairCode
		if status := w.call(t, "POST", "/api/v1/agents/lab/pair", `{"role":"admin"}`, &code); status != 201 ||
			code.Code != "1-ada-admin" {
			t.Fatalf("%d %+v", status, code)
		}
		if status := w.call(t, "POST", "/api/v1/agents/lab/pair", `{"role":"king"}`, nil); status != 422 {
			t.Fatalf("a wrong role answers %d", status)
		}
	})
	t.Run("keys are changed", func(t *testing.T) {
		var changed api.KeyRotation
		if status := w.call(t, "POST", "/api/v1/agents/lab/rotate", "", &changed); status != 200 ||
			changed.Fingerprint != "new-print" || changed.Told == nil || changed.Later == nil {
			t.Fatalf("%d %+v", status, changed)
		}
		if status := w.call(t, "POST", "/api/v1/key/rotate", "", &changed); status != 200 ||
			changed.Fingerprint != "new-print-of-here" || len(changed.Told) != 1 || changed.Told[0] != "lab" {
			t.Fatalf("%d %+v", status, changed)
		}
		if status := w.call(t, "POST", "/api/v1/agents/nobody/rotate", "", nil); status != 404 {
			t.Fatalf("an unknown agent answers %d", status)
		}
	})
	t.Run("a cut says when it was heard last, and calls fail at once", func(t *testing.T) {
		w.cutLab(t, remote)
		w.until(t, "its sessions are as old as that", func() bool {
			var one api.Session
			return w.call(t, "GET", "/api/v1/sessions/aaaaaaaaaaaa", "", &one) == 200 && one.LastHeard != nil &&
				one.Agent == "lab"
		})
		var p session.Error
		if status := w.call(t, "POST", "/api/v1/sessions/aaaaaaaaaaaa/terminate", "{}", &p); status != 503 ||
			!strings.HasPrefix(string(p.Code), "agent_") || p.Hint == "" {
			t.Fatalf("%d %+v", status, p)
		}
		var a api.Agent
		if w.call(t, "GET", "/api/v1/agents/lab", "", &a); a.Connection.State != "down" || a.Connection.Error == nil ||
			a.Connection.NextTry == nil || a.Connection.LastHeard == nil {
			t.Fatalf("%+v", a.Connection)
		}
	})
}

func TestAnswerOfAPromptIsToldToNobody(t *testing.T) {
	w := start(t)
	w.connector.Machine(labAddress, hubtest.New("itself"))
	got := make(chan string, 1)
	w.connector.Adding = func(ctx context.Context, work *hub.Work, _ hub.Entry) error {
		answer, err := work.Ask(ctx, hub.Prompt{Kind: hub.PromptPassword, Text: "Password:", Secret: true})
		got <- answer
		return err
	}
	events := w.dial(t, "/api/v1/events")
	var told bytes.Buffer
	var reading sync.WaitGroup
	reading.Go(func() {
		for {
			_, message, err := events.ReadMessage()
			if err != nil {
				return
			}
			told.Write(message)
		}
	})
	var op api.Operation
	w.call(t, "POST", "/api/v1/agents", `{"address":"ada@lab"}`, &op)
	w.until(t, "it asks", func() bool {
		w.call(t, "GET", "/api/v1/operations/"+op.ID, "", &op)
		return op.Prompt != nil && op.State == "waiting"
	})
	if !op.Prompt.Secret || op.Prompt.Kind != "password" {
		t.Fatalf("%+v", op.Prompt)
	}
	w.call(t, "POST", "/api/v1/operations/"+op.ID+"/answer", fmt.Sprintf(`{"prompt":%q,"text":"open-sesame"}`,
		op.Prompt.ID), nil)
	if answer := <-got; answer != "open-sesame" {
		t.Fatalf("%q", answer)
	}
	_, body := do(t, http.DefaultClient, w.request(t, "GET", "/api/v1/operations", ""))
	_ = events.Close()
	reading.Wait()
	if strings.Contains(body+told.String(), "sesame") {
		t.Fatal("the answer was told")
	}
}

func TestAppWaitsForItsAgentToComeBack(t *testing.T) {
	w := start(t)
	w.server.SetPatience(patience, patience)
	lab, remote := w.addLab(t)
	w.agent = lab // which the tests of apps set up
	w.upstream(t)
	cookie := w.enter(t)
	w.cutLab(t, remote)
	t.Run("a request waits and is answered", func(t *testing.T) {
		mend := time.AfterFunc(500*time.Millisecond, func() { remote.SetUp(true) })
		defer mend.Stop()
		response := w.visit(t, "GET", "/lab", nil, "Cookie", cookie)
		if body, err := io.ReadAll(response.Body); response.StatusCode != 200 || err != nil {
			t.Fatalf("%d %s %v", response.StatusCode, body, err)
		}
	})
	w.cutLab(t, remote)
	t.Run("a WebSocket waits and is opened", func(t *testing.T) {
		mend := time.AfterFunc(500*time.Millisecond, func() { remote.SetUp(true) })
		defer mend.Stop()
		dialer := websocket.Dialer{NetDial: func(string, string) (net.Conn,
			error) {
			return net.Dial("tcp", "127.0.0.1:"+w.port)
		}}
		conn, _, err := dialer.Dial("ws://"+notebook+":"+w.port+"/ws",
			http.Header{"Cookie": {cookie}, "Origin": {"http://" + notebook + ":" + w.port}})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.WriteMessage(websocket.TextMessage, []byte("hi")); err != nil {
			t.Fatal(err)
		}
		if _, message, err := conn.ReadMessage(); err != nil || string(message) != "hi" {
			t.Fatalf("%q %v", message, err)
		}
	})
}

func TestAppOfAnAgentThatStaysAwayIsExplained(t *testing.T) {
	w := start(t)
	w.server.SetPatience(time.Second, 300*time.Millisecond)
	lab, remote := w.addLab(t)
	w.agent = lab // which the tests of apps set up
	w.upstream(t)
	cookie := w.enter(t)
	w.cutLab(t, remote)
	t.Run("a person is told since when", func(t *testing.T) {
		response := w.visit(t, "GET", "/lab", nil, "Cookie", cookie, "Accept", "text/html", "Sec-Fetch-Mode",
			"navigate", "Sec-Fetch-Dest", "document", "Sec-Fetch-Site", "none")
		body, err := io.ReadAll(response.Body)
		if response.StatusCode != 503 || err != nil || !strings.Contains(string(body), "lab is not reached") ||
			!strings.Contains(string(body), "last responded at") ||
			!strings.Contains(string(body), `http-equiv="refresh"`) {
			t.Fatalf("%d %s %v", response.StatusCode, body, err)
		}
	})
	t.Run("a program is told in the end", func(t *testing.T) {
		response := w.visit(t, "GET", "/lab/api", nil, "Cookie", cookie)
		if response.StatusCode != 503 {
			t.Fatalf("%d", response.StatusCode)
		}
	})
}

// TestARequestUnderWayWaitsForItsAgent has an agent go away between a request and
// its answer. Connections into sessions outlive the way to their agent.
func TestARequestUnderWayWaitsForItsAgent(t *testing.T) {
	w := start(t)
	lab, remote := w.addLab(t)
	w.agent = lab // which the tests of apps set up
	w.upstream(t)
	cookie := w.enter(t)
	apps := make(chan net.Conn, 1)
	lab.Dial = func(context.Context, session.ID, int) (net.Conn, error) {
		near, far := net.Pipe()
		apps <- far
		return near, nil
	}
	asked := func() (app net.Conn, answer <-chan int) {
		status := make(chan int, 1)
		go func() { status <- w.visit(t, "GET", "/lab/api", nil, "Cookie", cookie).StatusCode }()
		app = <-apps
		if _, err := http.ReadRequest(bufio.NewReader(app)); err != nil {
			t.Fatal(err)
		}
		w.cutLab(t, remote)
		return app, status
	}
	t.Run("and is answered when it is back", func(t *testing.T) {
		w.server.SetPatience(patience, patience)
		app, answer := asked()
		remote.SetUp(true)
		if _, err := io.WriteString(app, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if status := <-answer; status != http.StatusNoContent {
			t.Fatalf("the answer is %d", status)
		}
	})
	t.Run("but not for ever", func(t *testing.T) {
		w.server.SetPatience(300*time.Millisecond, 300*time.Millisecond)
		app, answer := asked()
		if status := <-answer; status != http.StatusServiceUnavailable {
			t.Fatalf("the answer is %d", status)
		}
		if _, err := app.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Fatalf("the app's connection ended as %v", err)
		}
	})
}

// cutting is a stream that reads as lost where the other end is closed.
type cutting struct{ net.Conn }

func (c cutting) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// TestATerminalIsJoinedAgainWhereItWas loses the streams of a terminal, as when
// its agent is started again, and joins it again as viewers do. That cuts do not
// end them is for package resume.
func TestATerminalIsJoinedAgainWhereItWas(t *testing.T) {
	w := start(t)
	lab, remote := w.addLab(t)
	const output = 4 << 20
	text := bytes.Repeat([]byte("0123456789abcdef"), output/16)
	spool := terminal.NewSpool(terminal.SpoolConfig{Cap: 16 << 20})
	tty := &echoTTY{out: make(chan []byte, 4096)}
	shell := terminal.NewShell(terminal.ShellConfig{TTY: tty, Spool: spool, Cols: 80, Rows: 24})
	go shell.Run()
	var mu sync.Mutex
	var open []net.Conn
	lab.Attach = func(req session.AttachRequest, far net.Conn) {
		mu.Lock()
		open = append(open, far)
		mu.Unlock()
		_ = shell.Serve(context.Background(), far, terminal.Attach{Offset: req.Offset, Client: req.Client})
	}
	lab.Wrap = func(near net.Conn) net.Conn { return cutting{near} }
	const path = "/api/v1/sessions/aaaaaaaaaaaa/terminals/t1/attach?client=me"
	conn := w.dial(t, path)
	go func() {
		for at := 0; at < output; at += 8 << 10 {
			tty.out <- text[at : at+8<<10]
		}
	}()
	go func() { // cuts, again and again
		for range 6 {
			time.Sleep(30 * time.Millisecond)
			remote.SetUp(false)
			mu.Lock()
			for _, far := range open {
				_ = far.Close()
			}
			open = nil
			mu.Unlock()
			time.Sleep(50 * time.Millisecond)
			remote.SetUp(true)
		}
	}()
	var got []byte
	acked := 0
	input := append(append([]byte{'I'}, make([]byte, 8)...), "typed"...)
	conn.WriteMessage(websocket.BinaryMessage, input) //nolint:errcheck // what is read shows it
	for len(got) < output {
		_, message, err := conn.ReadMessage()
		if err != nil {
			conn = w.dial(t, fmt.Sprintf("%s&offset=%d", path, len(got)))
			conn.WriteMessage(websocket.BinaryMessage, input) //nolint:errcheck // see above
			acked = len(got)
			continue
		}
		if message[0] != 'D' {
			continue
		}
		if at := binary.BigEndian.Uint64(message[1:]); at != uint64(len(got)) {
			t.Fatalf("data at %d, %d comes next", at, len(got))
		}
		got = append(got, message[9:]...)
		if len(got)-acked > 100<<10 {
			acked = len(got)
			conn.WriteMessage(websocket.BinaryMessage, //nolint:errcheck // see above
				binary.BigEndian.AppendUint64([]byte{'A'}, uint64(acked)))
		}
	}
	if !bytes.Equal(got, text) {
		t.Fatalf("%d bytes of %d are another's", len(got), output)
	}
	w.until(t, "the input has arrived", func() bool { return tty.typed() == "typed" })
}

// echoTTY prints what it is given to print and keeps what is typed.
type echoTTY struct {
	out  chan []byte
	left []byte
	mu   sync.Mutex // guards in
	in   bytes.Buffer
}

func (e *echoTTY) Read(p []byte) (int, error) {
	if len(e.left) == 0 {
		e.left = <-e.out
	}
	n := copy(p, e.left)
	e.left = e.left[n:]
	return n, nil
}

func (e *echoTTY) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.in.Write(p)
}

func (e *echoTTY) typed() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.in.String()
}

func (e *echoTTY) Resize(int, int) error { return nil }
func (e *echoTTY) Wait() int             { select {} }
func (e *echoTTY) Close() error          { return nil }
