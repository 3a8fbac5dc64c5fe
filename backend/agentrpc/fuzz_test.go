package agentrpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway/backend/session"
	"slipway/tunnel"
	"slipway/tunnel/frame"
)

// said is a stream of which everything was said before, and whose end comes
// when it is closed.
type said struct {
	net.Conn
	in   *bytes.Reader
	once sync.Once
	done chan struct{}
}

func newSaid(raw []byte) *said { return &said{in: bytes.NewReader(raw), done: make(chan struct{})} }

func (s *said) Read(p []byte) (int, error)       { return s.in.Read(p) }
func (s *said) Write(p []byte) (int, error)      { return len(p), nil }
func (s *said) Close() error                     { s.once.Do(func() { close(s.done) }); return nil }
func (s *said) CloseWrite() error                { return nil }
func (s *said) Class() tunnel.Class              { return tunnel.Control }
func (s *said) SetReadDeadline(time.Time) error  { return nil }
func (s *said) SetWriteDeadline(time.Time) error { return nil }

// frames writes frames as they are on the wire.
func frames(t testing.TB, values ...any) []byte {
	t.Helper()
	var raw []byte
	var c codec
	for i := 0; i < len(values); i += 2 {
		frame, err := c.encode(values[i].(kind), values[i+1])
		if err != nil {
			t.Fatal(err)
		}
		raw = append(raw, frame...)
	}
	return raw
}

func FuzzHandler(f *testing.F) {
	for _, method := range []string{"hello", "machine", "launch", "terminal.open", "watch", "logs", "port.dial"} {
		f.Add(append(frames(f, kindRequest, request{Version: Version, Method: method,
			Args: []byte(`{"id":"a"}`)}), "C\x00\x00\x00\x00D\x00\x00\x00\x01xE\x00\x00\x00\x00"...))
	}
	f.Add([]byte("Q\xff\xff\xff\xff"))
	f.Add(frames(f, kindRequest, request{Version: Version, Method: strings.Repeat("m", 5000)}))
	agent := &scripted{
		machine: machineOf("lab"),
		open: func(context.Context, session.ID, session.TerminalRequest) (session.Terminal, error) {
			return session.Terminal{}, nil
		},
		launch: func(context.Context, session.LaunchRequest) (session.Session, error) { return session.Session{}, nil },
		watch: func(_ context.Context, _ session.Cursor, fn func(session.Event) error) error {
			return fn(session.Event{})
		},
		logs: func(context.Context, session.ID, session.LogOptions) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader("log\n")), nil
		},
		dial: func(context.Context, session.ID, int) (net.Conn, error) {
			near, far := net.Pipe()
			go func() { _, _ = io.Copy(far, far) }() // ends with the pipe
			return near, nil
		},
	}
	h := handlerFor(agent)
	f.Fuzz(func(t *testing.T, raw []byte) {
		stream := newSaid(raw)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		h.answer(ctx, tunnel.Peer{}, stream)
		if ctx.Err() != nil {
			t.Fatal("the call hung")
		}
		<-stream.done
	})
}

func FuzzClient(f *testing.F) {
	f.Add(frames(f, kindAnswer, session.Machine{Agent: "lab"}))
	f.Add(frames(f, kindAnswer, none{}, kindEvent, session.Event{Epoch: "e", Seq: 1}, kindFailure,
		failure{Code: "a_b_c"}))
	f.Add(append(frames(f, kindAnswer, downloadHead{Offset: 3}), "D\x00\x00\x00\x03abcE\x00\x00\x00\x00"...))
	f.Add(frames(f, kindFailure, failure{}))
	f.Add(frames(f, kindAnswer, session.Machine{Agent: strings.Repeat("lab ", 5000)}))
	f.Add([]byte("A\x80\x00\x00\x03\x01\x02\x03"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		client := NewClient(ClientConfig{Name: func() string { return "lab" },
			Opener: openFunc(func() tunnel.Stream { return newSaid(raw) })})
		_, err := client.Machine(t.Context())
		check := func(err error) {
			t.Helper()
			if err != nil && session.CodeOf(err) == "" && !errors.Is(err, io.ErrUnexpectedEOF) && !isProtocol(err) {
				t.Errorf("a failure without a code: %v", err)
			}
		}
		check(err)
		check(client.Watch(t.Context(), session.Cursor{}, func(session.Event) error { return nil }))
		if log, err := client.Logs(t.Context(), "a", session.LogOptions{}); err == nil {
			_, err = io.Copy(io.Discard, log)
			check(err)
			log.Close()
		}
		if conn, err := client.DialPort(t.Context(), "a", 1); err == nil {
			_, err = io.Copy(io.Discard, conn)
			check(err)
			conn.Close()
		}
	})
}

type openFunc func() tunnel.Stream

func (o openFunc) Open(context.Context, tunnel.Class) (tunnel.Stream, error) { return o(), nil }

func TestFramesAreBounded(t *testing.T) {
	huge := binary.BigEndian.AppendUint32([]byte{'D'}, maxData+1)
	bomb := frames(t, kindAnswer, strings.Repeat("x", MaxMessage-10))
	for name, c := range map[string]struct {
		raw  []byte
		want bool // a frame comes
	}{
		"data beyond its limit":       {huge, false},
		"an answer beyond its limit":  {binary.BigEndian.AppendUint32([]byte{'A'}, MaxMessage+1), false},
		"a frame that nobody knows":   {[]byte("?\x00\x00\x00\x00"), false},
		"data that is deflated":       {[]byte("D\x80\x00\x00\x01x"), false},
		"what does not inflate":       {[]byte("A\x80\x00\x00\x04abcd"), false},
		"half a frame":                {[]byte("A\x00\x00\x00\x04ab"), false},
		"half a header":               {[]byte("A\x00"), false},
		"a long answer that deflates": {bomb, true},
	} {
		_, body, err := newWire(newSaid(c.raw), &codec{}).next()
		if (err == nil) != c.want || err == nil && len(body) != MaxMessage-8 {
			t.Errorf("%s: %d bytes, %v", name, len(body), err)
		}
	}
	t.Run("also by what they inflate to", func(t *testing.T) {
		packed := new(codec).deflate(make([]byte, 2*maxFailure))
		raw := append(frame.AppendHead(nil, byte(kindFailure), uint32(len(packed))|deflated), packed...)
		if _, _, err := newWire(newSaid(raw), &codec{}).next(); !isProtocol(err) {
			t.Errorf("it came as %v", err)
		}
	})
	t.Run("and nothing is sent that the peer would refuse", func(t *testing.T) {
		client, _ := pair(t, &scripted{})
		_, err := client.Launch(t.Context(),
			session.LaunchRequest{Spec: session.Spec{Command: strings.Repeat("x", MaxRequest)}})
		if session.CodeOf(err) != session.CodeTooLarge {
			t.Errorf("it came as %v", err)
		}
	})
}
