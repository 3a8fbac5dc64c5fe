package nvml

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
)

func TestFramesComeBackAsTheyWere(t *testing.T) {
	var pipe bytes.Buffer
	sent := []request{{ID: 1, Op: opInventory}, {ID: 2, Op: opSample, Last: map[string]uint64{"A": 1 << 63},
		Omit: []omission{{Device: "A", Call: "x"}}}}
	for _, r := range sent {
		if err := writeFrame(&pipe, r); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range sent {
		var got request
		if err := readFrame(&pipe, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
	}
	if err := readFrame(&pipe, &request{}); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

func TestDamagedFramesAreRefused(t *testing.T) {
	frame := func(size uint32, body string) string {
		return string(binary.BigEndian.AppendUint32(nil, size)) + body
	}
	for name, text := range map[string]string{
		"nothing announced": frame(0, ""), "too much announced": frame(maxFrame+1, "{}"),
		"text": "hello, who is there?", "no JSON": frame(3, "{]}"),
	} {
		if err := readFrame(strings.NewReader(text), &answer{}); !errors.Is(err, errFrame) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := readFrame(strings.NewReader(frame(10, "{}")), &answer{}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut: %v", err)
	}
}

func FuzzReadFrame(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x02{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var a answer
		if err := readFrame(bytes.NewReader(data), &a); err == nil && len(data) < 6 {
			t.Errorf("%q was taken for a message", data)
		}
	})
}
