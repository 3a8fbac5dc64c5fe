package server_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"slipway/backend/api"
	"slipway/backend/hub"
	"slipway/backend/server"
	"slipway/backend/session"
	"slipway/backend/terminal"
)

func nextEvent(t *testing.T, conn *websocket.Conn) api.Event {
	t.Helper()
	var e api.Event
	if err := conn.ReadJSON(&e); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestEventsBeginWithASnapshotAndResume(t *testing.T) {
	w := start(t)
	s := w.running("aaaaaaaaaaaa")
	conn := w.dial(t, "/api/v1/events")
	first := nextEvent(t, conn)
	for first.Snapshot == nil || len(first.Snapshot.Sessions) == 0 {
		first = nextEvent(t, conn)
		if first.Session != nil {
			break
		}
	}
	w.agent.Put(s)
	second := nextEvent(t, conn)
	if second.Session == nil || second.Session.ID != "aaaaaaaaaaaa" || second.Seq != first.Seq+1 {
		t.Fatalf("event %+v", second)
	}
	w.agent.Put(s)
	third := nextEvent(t, conn)
	again := w.dial(t, fmt.Sprintf("/api/v1/events?epoch=%s&after=%d", second.Epoch, second.Seq))
	if e := nextEvent(t, again); e.Seq != third.Seq || e.Session == nil {
		t.Fatalf("resumed with %+v, want seq %d", e, third.Seq)
	}
	fresh := w.dial(t, "/api/v1/events?epoch=other&after=1")
	if e := nextEvent(t, fresh); e.Snapshot == nil {
		t.Fatalf("began with %+v, want a snapshot", e)
	}
	if status := w.call(t, "GET", "/api/v1/events?after=x", "", nil); status != 400 {
		t.Errorf("after=x answers %d", status)
	}
}

func TestStalledEventsClientHoldsUpNobody(t *testing.T) {
	w := start(t)
	s := w.running("aaaaaaaaaaaa")
	s.Spec.Env = []session.EnvVar{{Name: "A", Value: strings.Repeat("x", 20<<10)}}
	w.dial(t, "/api/v1/events") // never read
	quick := w.dial(t, "/api/v1/events")
	nextEvent(t, quick)
	for range 800 { // 16 MB, more than any buffer between
		s = w.agent.Put(s)
	}
	for {
		e := nextEvent(t, quick)
		if e.Session != nil && e.Session.Revision == s.Revision || e.Snapshot != nil &&
			e.Snapshot.Sessions[0].Revision == s.Revision {
			return
		}
	}
}

func TestWindowsAreForTheShell(t *testing.T) {
	w := start(t)
	var shown api.Shown
	if w.call(t, "POST", "/api/v1/window", "", &shown); shown.Shown {
		t.Fatal("a window was shown without a shell")
	}
	shell := w.dial(t, "/api/v1/events?shell=1")
	nextEvent(t, shell)
	if w.call(t, "POST", "/api/v1/window", "", &shown); !shown.Shown {
		t.Fatal("the shell was not asked")
	}
	for {
		if e := nextEvent(t, shell); e.Window != nil {
			return
		}
	}
}

func TestTerminalBytesPassWhole(t *testing.T) {
	w := start(t)
	w.running("aaaaaaaaaaaa")
	const total = 10 << 20
	output := bytes.Repeat([]byte("0123456789abcdef"), total/16)
	inputs := make(chan []byte, 16)
	w.agent.Attach = func(req session.AttachRequest, far net.Conn) {
		conn := terminal.NewConn(far)
		defer conn.Close()
		if req.Terminal != "t1" || req.Offset != 5 || req.Client != "me" {
			t.Errorf("attached with %+v", req)
		}
		go func() {
			for {
				frame, err := conn.ReadFrame()
				if err != nil {
					return
				}
				inputs <- bytes.Clone(frame.Payload)
			}
		}()
		for at := 0; at < total; at += terminal.MaxData {
			payload := binary.BigEndian.AppendUint64(nil, uint64(at))
			if err := conn.WriteFrame(terminal.Frame{Type: terminal.FrameData,
				Payload: append(payload, output[at:at+terminal.MaxData]...)}); err != nil {
				t.Error(err)
				return
			}
		}
		<-inputs
		if err := conn.WriteFrame(terminal.Frame{Type: terminal.FrameExit, Payload: []byte{0, 0, 0, 7}}); err != nil {
			t.Error(err)
		}
	}
	conn := w.dial(t, "/api/v1/sessions/aaaaaaaaaaaa/terminals/t1/attach?offset=5&client=me")
	input := append(make([]byte, 8), "ls\n"...)
	if err := conn.WriteMessage(websocket.BinaryMessage, append([]byte{'I'}, input...)); err != nil {
		t.Fatal(err)
	}
	var got []byte
	for {
		kind, message, err := conn.ReadMessage()
		if err != nil {
			t.Fatalf("after %d bytes: %v", len(got), err)
		}
		if kind != websocket.BinaryMessage {
			t.Fatalf("message %s", message)
		}
		if message[0] == 'X' {
			break
		}
		got = append(got, message[9:]...)
	}
	if !bytes.Equal(got, output) {
		t.Fatalf("%d bytes arrived, not the %d that were sent", len(got), total)
	}
	if _, _, err := conn.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		t.Fatalf("ended with %v, want a close in good order", err)
	}
}

// problemOf reads the one text message that tells a failure, and its close code.
func problemOf(t *testing.T, conn *websocket.Conn) (session.Error, int) {
	t.Helper()
	var p session.Error
	kind, message, err := conn.ReadMessage()
	if err != nil || kind != websocket.TextMessage || json.Unmarshal(message, &p) != nil {
		t.Fatalf("message %s, %v; want a Problem", message, err)
	}
	_, _, err = conn.ReadMessage()
	var closed *websocket.CloseError
	if !errors.As(err, &closed) {
		t.Fatalf("ended with %v, want a close code", err)
	}
	return p, closed.Code
}

func TestStreamsTellWhyTheyFail(t *testing.T) {
	w := start(t)
	w.running("aaaaaaaaaaaa")
	w.agent.Put(session.Session{ID: "bbbbbbbbbbbb", Name: "done", Status: session.Terminated})
	attach := "/api/v1/sessions/%s/terminals/t1/attach"
	for name, c := range map[string]struct {
		path, first, code string
		close             int
	}{
		"no such session":        {fmt.Sprintf(attach, "none"), "", "session_read_not-found", 4404},
		"no such terminal":       {fmt.Sprintf(attach, "aaaaaaaaaaaa"), "", "session_use_not-found", 4404},
		"a session that is over": {fmt.Sprintf(attach, "bbbbbbbbbbbb"), "", "session_update_conflict", 4409},
		"a command without words": {"/api/v1/sessions/aaaaaaaaaaaa/exec", `{"command":[]}`, "session_update_invalid",
			4422},
		"a wrong field": {"/api/v1/sessions/aaaaaaaaaaaa/exec", `{"cmd":[]}`, "request_decode_invalid",
			4400},
		"no JSON": {"/api/v1/sessions/aaaaaaaaaaaa/exec", `{`, "request_decode_invalid", 4400},
	} {
		t.Run(name, func(t *testing.T) {
			conn := w.dial(t, c.path)
			if c.first != "" {
				if err := conn.WriteMessage(websocket.TextMessage, []byte(c.first)); err != nil {
					t.Fatal(err)
				}
			}
			p, code := problemOf(t, conn)
			if string(p.Code) != c.code || code != c.close || p.Hint == "" {
				t.Errorf("%+v closed with %d, want %s and %d", p, code, c.code, c.close)
			}
		})
	}
}

func TestMessageAgainstTheProtocolEndsTheStream(t *testing.T) {
	w := start(t)
	w.running("aaaaaaaaaaaa")
	ended := make(chan struct{})
	w.agent.Attach = func(_ session.AttachRequest, far net.Conn) {
		defer close(ended)
		io.Copy(io.Discard, far) //nolint:errcheck // its end is what is waited for
	}
	conn := w.dial(t, "/api/v1/sessions/aaaaaaaaaaaa/terminals/t1/attach")
	if err := conn.WriteMessage(websocket.BinaryMessage, []byte("?nonsense")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := conn.ReadMessage(); !websocket.IsCloseError(err, 4400) {
		t.Errorf("ended with %v, want 4400", err)
	}
	<-ended
}

func TestExecPassesBothWaysAndEndsInOrder(t *testing.T) {
	w := start(t)
	w.running("aaaaaaaaaaaa")
	w.agent.Run = func(req session.ExecRequest, far net.Conn) {
		conn := terminal.NewConn(far)
		defer conn.Close()
		if strings.Join(req.Command, " ") != "cat -" || !req.Stdin || req.Env[0].Value != "1" {
			t.Errorf("request %+v", req)
		}
		for {
			frame, err := conn.ReadFrame()
			if err != nil || frame.Type == terminal.FrameClose {
				break
			}
			if err := conn.WriteFrame(terminal.Frame{Type: terminal.FrameData, Payload: frame.Payload}); err != nil {
				t.Error(err)
			}
		}
		if err := conn.WriteFrame(terminal.Frame{Type: terminal.FrameExit, Payload: []byte{0, 0, 0, 3}}); err != nil {
			t.Error(err)
		}
	}
	conn := w.dial(t, "/api/v1/sessions/aaaaaaaaaaaa/exec")
	for _, message := range []string{`{"command":["cat","-"],"stdin":true,"env":[{"name":"A","value":"1"}]}`} {
		if err := conn.WriteMessage(websocket.TextMessage, []byte(message)); err != nil {
			t.Fatal(err)
		}
	}
	for _, message := range []string{"Iecho", "C"} {
		if err := conn.WriteMessage(websocket.BinaryMessage, []byte(message)); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"Decho", "X\x00\x00\x00\x03"} {
		if _, message, err := conn.ReadMessage(); err != nil || string(message) != want {
			t.Fatalf("message %q, %v; want %q", message, err, want)
		}
	}
	if _, _, err := conn.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		t.Fatalf("ended with %v", err)
	}
}

func TestCommandWaitsForACallerThatPausesAndEndsWithOneThatLeaves(t *testing.T) {
	w := start(t)
	w.running("aaaaaaaaaaaa")
	written := make(chan int, 1<<16)
	ended := make(chan struct{})
	w.agent.Run = func(_ session.ExecRequest, far net.Conn) {
		defer close(ended)
		conn := terminal.NewConn(far)
		block := make([]byte, terminal.MaxData)
		for i := 0; ; i++ {
			if conn.WriteFrame(terminal.Frame{Type: terminal.FrameData, Payload: block}) != nil {
				return
			}
			written <- i
		}
	}
	conn := w.dial(t, "/api/v1/sessions/aaaaaaaaaaaa/exec")
	if err := conn.WriteMessage(websocket.TextMessage, []byte(`{"command":["yes"]}`)); err != nil {
		t.Fatal(err)
	}
	last := -1
	for quiet := false; !quiet; { // nothing is read: the command must come to a stop
		select {
		case last = <-written:
		case <-time.After(500 * time.Millisecond):
			quiet = true
		}
	}
	if last > 1024 {
		t.Fatalf("%d KiB are held for a caller that does not read", last*32)
	}
	for range 10 { // it goes on when the caller does
		if _, _, err := conn.ReadMessage(); err != nil {
			t.Fatal(err)
		}
	}
	conn.Close()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("the command goes on though its caller has left")
	}
}

func TestStalledViewerDoesNotHoldUpAnother(t *testing.T) {
	w := start(t)
	w.running("aaaaaaaaaaaa")
	w.agent.Attach = func(req session.AttachRequest, far net.Conn) {
		conn := terminal.NewConn(far)
		defer conn.Close()
		payload := make([]byte, 8+terminal.MaxData)
		for range 512 {
			if conn.WriteFrame(terminal.Frame{Type: terminal.FrameData, Payload: payload}) != nil {
				return
			}
		}
		_ = conn.WriteFrame(terminal.Frame{Type: terminal.FrameExit, Payload: make([]byte, 4)})
	}
	path := "/api/v1/sessions/aaaaaaaaaaaa/terminals/t1/attach"
	for range 3 {
		w.dial(t, path) // never read
	}
	conn := w.dial(t, path)
	for {
		_, message, err := conn.ReadMessage()
		if err != nil {
			t.Fatal(err)
		}
		if message[0] == 'X' {
			return
		}
	}
}

func TestLogs(t *testing.T) {
	w := start(t)
	w.running("aaaaaaaaaaaa")
	t.Run("are copied as they are", func(t *testing.T) {
		response, body := do(t, http.DefaultClient, w.request(t, "GET", "/api/v1/sessions/aaaaaaaaaaaa/logs", ""))
		if body != "one\ntwo\n" || !strings.HasPrefix(response.Header.Get("Content-Type"), "text/plain") {
			t.Errorf("%s %v", body, response.Header)
		}
	})
	t.Run("are followed line by line until the reader leaves", func(t *testing.T) {
		near, far := io.Pipe()
		gone := make(chan struct{})
		w.agent.Log = func(ctx context.Context, opts session.LogOptions) (io.ReadCloser, error) {
			if !opts.Follow || opts.Tail != 10 || !opts.Timestamps || opts.Kernel != "main1" {
				t.Errorf("options %+v", opts)
			}
			context.AfterFunc(ctx, func() { near.Close(); close(gone) })
			return near, nil
		}
		ctx, leave := context.WithCancel(t.Context())
		r := w.request(t, "GET", "/api/v1/sessions/aaaaaaaaaaaa/logs?follow=1&tail=10&timestamps=1&kernel=main1", "").
			WithContext(ctx)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		for i := range 3 {
			line := fmt.Sprintf("line %d\n", i)
			go io.WriteString(far, line) //nolint:errcheck // the reader tells
			buffer := make([]byte, len(line))
			if _, err := io.ReadFull(response.Body, buffer); err != nil || string(buffer) != line {
				t.Fatalf("read %q, %v", buffer, err)
			}
		}
		leave()
		select {
		case <-gone:
		case <-time.After(patience):
			t.Fatal("the log is still followed")
		}
	})
	t.Run("bad options are named", func(t *testing.T) {
		for _, query := range []string{"?follow=x", "?tail=-1", "?timestamps=maybe"} {
			if status := w.call(t, "GET", "/api/v1/sessions/aaaaaaaaaaaa/logs"+query, "", nil); status != 400 {
				t.Errorf("%s answers %d", query, status)
			}
		}
	})
}

func FuzzLaunchDecoding(f *testing.F) {
	for _, seed := range []string{`{}`, `{"key":"k","spec":{"image":"a","resources":{"memory":"512m","cpu":1}}}`,
		`{"spec":{"env":[{"name":"A","value":"B"}],"ports":[1,2]}}`,
		`{"spec":{"resources":{"shm":-1}}}`, `[]`, `{"spec":null}`,
		`{"spec":{"timeout":"5m","notBefore":"2031-01-01T00:00:00Z","type":"batch"}}`, `{"spec":{"threads":1e3}}`,
		`{"a":{"b":[[[{}]]]}}`,
		`{"spec":{"accelerator":"0.5","mps":true,"uncooperative":true,"cluster":2,"priority":0,"after":["abcd"],` +
			`"pendingTimeout":"2h","label":"x"}}`,
		`{"spec":{"accelerator":"mig:1g.10gb:2","idle":{"lifetime":"1d","network":"1h","use":{"window":"30m",` +
			`"grace":"5m","any":true,"cpu":0.5,"gpu":1e-3}}}}`,
		`{"spec":{"accelerator":"vram:1e3g"}}`, `{"spec":{"idle":{"use":{"cpu":1e999}}}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var req hub.LaunchRequest
		wrong, err := server.Decode(data, &req)
		if err != nil {
			if code := session.CodeOf(err); !strings.HasPrefix(string(code), "request_decode_") {
				t.Fatalf("%v has code %q", err, code)
			}
			return
		}
		for _, field := range wrong {
			if field.Field == "" || field.Kind == "" || field.Message == "" || field.Hint == "" {
				t.Fatalf("a fault is not whole: %+v", field)
			}
		}
		req.Spec.Validate(time.Now(), session.Limits{CPUs: 8, Memory: 1 << 34})
	})
}
