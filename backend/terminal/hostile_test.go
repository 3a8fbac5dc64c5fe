package terminal

import (
	"bytes"
	"errors"
	"io"
	"math"
	"testing"
)

// spoken is a connection over which everything was said before.
type spoken struct {
	in *bytes.Reader
}

func (s *spoken) Read(p []byte) (int, error)  { return s.in.Read(p) }
func (s *spoken) Write(p []byte) (int, error) { return len(p), nil }
func (s *spoken) Close() error                { return nil }

func bytesOf(frames ...Frame) []byte {
	var raw bytes.Buffer
	conn := NewConn(struct {
		io.Reader
		io.Writer
		io.Closer
	}{nil, &raw, nil})
	for _, f := range frames {
		_ = conn.WriteFrame(f) // into memory
	}
	return raw.Bytes()
}

// listen joins a shell whose agent says raw, and reads to the end.
func listen(raw []byte) error {
	conn := Checked(NewConn(&spoken{bytes.NewReader(raw)}), 0)
	defer conn.Close()
	for {
		if _, err := conn.ReadFrame(); err != nil {
			return err
		}
	}
}

// TestHostileAgentGreetsOnce has an agent greet without end.
func TestHostileAgentGreetsOnce(t *testing.T) {
	hello := Hello{Cols: 80, Rows: 24}.frame()
	frames := make([]Frame, 1000)
	for i := range frames {
		frames[i] = hello
	}
	err := listen(bytesOf(frames...))
	var against *ProtocolError
	if !errors.As(err, &against) {
		t.Errorf("it ended as %v", err)
	}
}

// TestHostileOffsetsAreRefused has an agent name places that no stream reaches.
func TestHostileOffsetsAreRefused(t *testing.T) {
	hello := Hello{Cols: 80, Rows: 24}.frame()
	for name, frames := range map[string][]Frame{
		"a hello from beyond":    {Hello{Accepted: math.MaxUint64}.frame()},
		"data from beyond":       {hello, dataFrame(FrameData, math.MaxUint64-1, []byte("abc"))},
		"a gap to beyond":        {hello, offsetFrame(FrameGap, 0, math.MaxUint64)},
		"data that was left out": {hello, dataFrame(FrameData, 1, []byte("abc"))},
		"data that came before":  {hello, dataFrame(FrameData, 0, []byte("a")), dataFrame(FrameData, 0, []byte("b"))},
		"data before the hello":  {dataFrame(FrameData, 0, []byte("abc"))},
	} {
		var against *ProtocolError
		if err := listen(bytesOf(frames...)); !errors.As(err, &against) {
			t.Errorf("%s: it ended as %v", name, err)
		}
	}
}

// FuzzChecked has the agent of a shell say anything to its viewer.
func FuzzChecked(f *testing.F) {
	hello := Hello{End: 3, Accepted: 2, Cols: 80, Rows: 24}.frame()
	f.Add(bytesOf(hello, dataFrame(FrameData, 0, []byte("abc")), offsetFrame(FrameTaken, 5), exitFrame(1)))
	f.Add(bytesOf(hello, hello))
	f.Add(bytesOf(offsetFrame(FrameGap, 0, 1<<63), sizeFrame(FrameSize, 1, 1)))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if err := listen(raw); err == nil {
			t.Error("it ended without saying how")
		}
	})
}

// FuzzRunExec has the agent of a command say anything to its caller.
func FuzzRunExec(f *testing.F) {
	f.Add(bytesOf(Frame{FrameData, []byte("out")}, Frame{FrameStderr, []byte("err")}, offsetFrame(FrameTaken, 5),
		exitFrame(1)))
	f.Add(bytesOf(offsetFrame(FrameTaken, math.MaxUint64)))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var out bytes.Buffer
		conn := NewConn(&spoken{bytes.NewReader(raw)})
		_, err := RunExec(t.Context(), conn, ExecIO{Stdin: bytes.NewReader(make([]byte, 10)), Stdout: &out,
			Stderr: &out})
		if out.Len() > len(raw) {
			t.Errorf("%d bytes came of %d, %v", out.Len(), len(raw), err)
		}
	})
}
