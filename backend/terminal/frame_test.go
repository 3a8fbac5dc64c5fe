package terminal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
)

// buffered is a stream whose both ends are one buffer.
type buffered struct{ bytes.Buffer }

func (*buffered) Close() error { return nil }

func TestFramesSurviveTheStream(t *testing.T) {
	conn := NewConn(&buffered{})
	sent := []Frame{
		Hello{Start: 1, End: 9, Next: 5, Accepted: 3, Cols: 80, Rows: 24}.frame(),
		dataFrame(FrameData, 1<<40, bytes.Repeat([]byte("x"), MaxData)),
		offsetFrame(FrameGap, 3, 4), {FrameModes, []byte("\x1b[?25l")}, offsetFrame(FrameTaken, 7),
		sizeFrame(FrameSize, 100, 40), dataFrame(FrameInput, 0, []byte("ls\n")), offsetFrame(FrameAck, 5),
		sizeFrame(FrameResize, 1, 1), {FrameStderr, []byte("no")}, {FrameClose, nil}, {FrameSignal, []byte{15}},
		exitFrame(-1),
	}
	for _, frame := range sent {
		if err := conn.WriteFrame(frame); err != nil {
			t.Fatalf("write %q: %v", byte(frame.Type), err)
		}
	}
	for _, want := range sent {
		got, err := conn.ReadFrame()
		if err != nil || got.Type != want.Type || !bytes.Equal(got.Payload, want.Payload) {
			t.Fatalf("read %q: %v", byte(want.Type), err)
		}
		message, err := ParseMessage(want.Message())
		if err != nil || message.Type != want.Type || !bytes.Equal(message.Payload, want.Payload) {
			t.Errorf("message %q: %v", byte(want.Type), err)
		}
	}
	if _, err := conn.ReadFrame(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
	if code := exitFrame(-1).ExitCode(); code != -1 {
		t.Errorf("exit code became %d", code)
	}
}

func TestBrokenFramesAreRefused(t *testing.T) {
	frame := func(kind byte, length uint32, payload int) []byte {
		return append(binary.BigEndian.AppendUint32([]byte{kind}, length), make([]byte, payload)...)
	}
	for name, raw := range map[string][]byte{
		"unknown type":       frame('?', 0, 0),
		"endless data":       frame('D', 1<<31, 0),
		"data above limit":   frame('D', maxPayload+1, maxPayload+1),
		"short ack":          frame('A', 7, 7),
		"long signal":        frame('S', 2, 2),
		"close with payload": frame('C', 1, 1),
	} {
		_, err := NewConn(&buffered{*bytes.NewBuffer(raw)}).ReadFrame()
		var protocol *ProtocolError
		if !errors.As(err, &protocol) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := NewConn(&buffered{*bytes.NewBuffer(frame('D', 100, 50))}).ReadFrame(); !errors.Is(err,
		io.ErrUnexpectedEOF) {
		t.Errorf("cut short: %v", err)
	}
	if _, err := ParseMessage(nil); err == nil {
		t.Error("an empty message passed")
	}
}

// FuzzFrames reads any bytes as frames and as messages: nothing panics, no
// frame breaks its limits, and what is written again is what was read.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("A\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x05"))
	f.Add([]byte("D\x00\x00\x00\x09\x00\x00\x00\x00\x00\x00\x00\x05x"))
	f.Add([]byte("G\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x01"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		in, out := NewConn(&buffered{*bytes.NewBuffer(bytes.Clone(raw))}), &buffered{}
		for {
			frame, err := in.ReadFrame()
			if err != nil {
				break
			}
			readAll(frame)
			if err := NewConn(out).WriteFrame(frame); err != nil {
				t.Fatalf("a frame that was read cannot be written: %v", err)
			}
		}
		if !bytes.HasPrefix(raw, out.Bytes()) {
			t.Fatal("frames changed on their way")
		}
		if frame, err := ParseMessage(raw); err == nil {
			readAll(frame)
		}
	})
}

// readAll reads a checked frame by every means that fits its type.
func readAll(frame Frame) {
	switch frame.Type {
	case FrameHello:
		_, _ = frame.Hello()
	case FrameData, FrameInput:
		_, _, _ = frame.Data()
	case FrameGap:
		_, _, _ = frame.Gap()
	case FrameTaken, FrameAck:
		frame.Offset()
	case FrameSize, FrameResize:
		frame.Size()
	case FrameExit:
		frame.ExitCode()
	}
}

// FuzzServe lets any bytes come from a viewer: the shell survives and serves
// the next one.
func FuzzServe(f *testing.F) {
	f.Add([]byte("I\x00\x00\x00\x0b\x00\x00\x00\x00\x00\x00\x00\x00ls\nR\x00\x00\x00\x04\x00\x50\x00\x18"))
	f.Add([]byte("A\x00\x00\x00\x08\xff\x00\x00\x00\x00\x00\x00\x05"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		tty := newFakeTTY()
		shell := NewShell(ShellConfig{TTY: tty, Spool: NewSpool(SpoolConfig{Cap: 1 << 16}), Cols: 80, Rows: 24})
		go shell.Run()
		ours, theirs := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, theirs) }()
		served := make(chan struct{})
		go func() {
			_ = shell.Serve(t.Context(), ours, Attach{Client: "fuzz"})
			close(served)
		}()
		_, _ = theirs.Write(raw)
		_ = theirs.Close()
		<-served
		tty.print([]byte("still here"))
		tty.exit(3)
		near, far := net.Pipe()
		go func() { _ = shell.Serve(t.Context(), near, Attach{Client: "next"}) }()
		var out bytes.Buffer
		if code, err := NewViewer(ViewerConfig{Client: "next", Output: &out}).Run(t.Context(),
			NewConn(far)); err != nil || code != 3 {
			t.Fatalf("the next viewer got %d, %v", code, err)
		}
		if out.String() != "still here" {
			t.Fatalf("the next viewer saw %q", out.String())
		}
	})
}
