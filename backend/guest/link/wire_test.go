package link_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"slipway/backend/guest/link"
	"slipway/backend/session"
	"slipway/tunnel"
)

func TestMessages(t *testing.T) {
	var wire bytes.Buffer
	sent := link.Request{Op: link.OpExec, Exec: &session.ExecRequest{Command: []string{"ls", "-l"}, Stdin: true}}
	if err := link.WriteMessage(&wire, sent); err != nil {
		t.Fatal(err)
	}
	cut := bytes.Clone(wire.Bytes()[:wire.Len()-1])
	var got link.Request
	if err := link.ReadMessage(&wire, &got); err != nil || got.Op != sent.Op || got.Exec.Command[1] != "-l" ||
		!got.Exec.Stdin {
		t.Errorf("got %+v, %v", got, err)
	}
	if err := link.ReadMessage(&wire, &got); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
	if err := link.ReadMessage(bytes.NewReader(cut), &got); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut short: %v", err)
	}
	if err := link.WriteMessage(io.Discard, strings.Repeat("x", link.MaxMessage)); err == nil {
		t.Error("a message without end was written")
	}
	if err := link.ReadMessage(bytes.NewReader(binary.BigEndian.AppendUint32(nil, link.MaxMessage+1)),
		&got); err == nil {
		t.Error("a message without end was read")
	}
}

func FuzzReadMessage(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x0e{\"op\":\"hello\"}"))
	f.Add([]byte("\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var req link.Request
		if link.ReadMessage(bytes.NewReader(raw), &req) == nil {
			if err := link.WriteMessage(io.Discard, req); err != nil {
				t.Fatalf("what was read cannot be written: %v", err)
			}
		}
	})
}

// answer plays a guest that answers every request with reply.
func answer(t *testing.T, reply func(io.Writer)) net.Conn {
	ours, theirs := net.Pipe()
	mux, err := tunnel.NewMux(theirs, tunnel.Accepter)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mux.Close() })
	go func() {
		for {
			stream, err := mux.Accept()
			if err != nil {
				return
			}
			var req link.Request
			if link.ReadMessage(stream, &req) == nil {
				reply(stream)
			}
		}
	}()
	return ours
}

func TestConnectRefusesGuestsOfOtherVersions(t *testing.T) {
	conn := answer(t, func(w io.Writer) { _ = link.ReplyOK(w, link.Hello{Version: link.Version + 1}) })
	if _, err := link.Connect(t.Context(), conn); session.CodeOf(err) != "guest_connect_version" {
		t.Errorf("got %v", err)
	}
	conn = answer(t, func(w io.Writer) {
		_ = link.ReplyError(w, &session.Error{Code: "guest_connect_version", Message: "no"})
	})
	if _, err := link.Connect(t.Context(), conn); session.CodeOf(err) != "guest_connect_version" {
		t.Errorf("got %v", err)
	}
}

func TestConnectToSomethingElse(t *testing.T) {
	ours, theirs := net.Pipe()
	go func() {
		_, _ = theirs.Write([]byte("SSH-2.0-nonsense\r\n"))
		_ = theirs.Close()
	}()
	if _, err := link.Connect(t.Context(), ours); session.CodeOf(err) != "session_use_unavailable" {
		t.Errorf("got %v", err)
	}
}

func FuzzPieces(f *testing.F) {
	f.Add([]byte{0, 0, 0, 3, 'a', 'b', 'c', 0, 0, 0, 0, 'r'}, 2)
	f.Add([]byte{255, 255, 255, 255}, 1)
	f.Add([]byte{0, 0, 0, 9, 'a'}, 100)
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		r := link.NewPieceReader(bytes.NewReader(data))
		buffer := make([]byte, 1+min(max(size, 0), 1000))
		var content []byte
		for {
			n, err := r.Read(buffer)
			content = append(content, buffer[:n]...)
			if err == nil {
				continue
			}
			if err != io.EOF { //nolint:errorlint // only the plain one says that all has come
				return
			}
			break
		}
		var again bytes.Buffer
		w := link.NewPieceWriter(&again)
		if _, err := w.ReadFrom(bytes.NewReader(content)); err != nil {
			t.Fatal(err)
		}
		if err := w.End(); err != nil {
			t.Fatal(err)
		}
		if back, err := io.ReadAll(link.NewPieceReader(&again)); err != nil || !bytes.Equal(back, content) {
			t.Errorf("%q came back as %q, %v", content, back, err)
		}
	})
}
