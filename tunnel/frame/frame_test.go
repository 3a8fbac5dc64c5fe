package frame

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"testing"
	"testing/iotest"
)

var errRefused = errors.New("refused")

func most(length uint32) func(byte, uint32) error {
	return func(_ byte, n uint32) error {
		if n > length {
			return errRefused
		}
		return nil
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	var raw []byte
	payloads := [][]byte{nil, []byte("a"), bytes.Repeat([]byte("b"), 3*grow), []byte("c")}
	for i, payload := range payloads {
		raw = Append(raw, byte(i), payload)
	}
	for name, from := range map[string]io.Reader{"whole": bytes.NewReader(raw),
		"byte by byte": iotest.OneByteReader(bytes.NewReader(raw))} {
		var buffer []byte
		for i, want := range payloads {
			kind, payload, err := Read(from, buffer, most(3*grow))
			if kind != byte(i) || !bytes.Equal(payload, want) || err != nil {
				t.Fatalf("%s: frame %d is of kind %d, with %d bytes of %d: %v", name, i, kind, len(payload),
					len(want), err)
			}
			buffer = payload
		}
		if _, _, err := Read(from, buffer, most(0)); err != io.EOF { //nolint:errorlint // as it is
			t.Errorf("%s: the end is %v", name, err)
		}
	}
}

func TestAnEndInsideIsUnexpected(t *testing.T) {
	raw := Append(nil, 'x', []byte("payload"))
	for n := 1; n < len(raw); n++ {
		if _, _, err := Read(bytes.NewReader(raw[:n]), nil, most(100)); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
}

func TestALengthTakesNoMemory(t *testing.T) {
	raw := AppendHead(nil, 'x', 1<<31)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := Read(bytes.NewReader(raw), nil, most(1<<31))
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%d bytes were taken: %v", took, err)
	}
}

func TestAMessageHasNoKind(t *testing.T) {
	raw := append(make([]byte, LengthSize), "hello"...)
	PutLength(raw)
	from := bytes.NewReader(raw)
	length, err := ReadLength(from)
	if err != nil || length != 5 {
		t.Fatal(length, err)
	}
	if got, err := ReadPayload(from, nil, length); string(got) != "hello" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// FuzzRead has a stranger say anything: what is read is what a writer would
// write of it, and never more than is allowed.
func FuzzRead(f *testing.F) {
	f.Add([]byte("D\x00\x00\x00\x01xE\x00\x00\x00\x00"))
	f.Add([]byte("D\xff\xff\xff\xff"))
	f.Add([]byte("D\x00\x00\x00\x09short"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		const limit = 1 << 10
		var again, buffer []byte
		for from := bytes.NewReader(raw); ; {
			kind, payload, err := Read(from, buffer, most(limit))
			if err != nil {
				if !errors.Is(err, errRefused) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Fatal(err)
				}
				break
			}
			if len(payload) > limit {
				t.Fatalf("%d bytes were read", len(payload))
			}
			buffer, again = payload, Append(again, kind, payload)
		}
		if !bytes.HasPrefix(raw, again) {
			t.Errorf("%q was read of %q", again, raw)
		}
	})
}
