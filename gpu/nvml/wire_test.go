package nvml

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
)

func TestMessagesComeBackAsTheyWere(t *testing.T) {
	var pipe bytes.Buffer
	sent := []request{{ID: 1, Op: opInventory}, {ID: 2, Op: opSample, Last: map[string]uint64{"A": 1 << 63},
		Omit: []omission{{Device: "A", Call: "x"}}}}
	for _, r := range sent {
		if err := json.NewEncoder(&pipe).Encode(r); err != nil {
			t.Fatal(err)
		}
	}
	next := messages(&pipe)
	for _, want := range sent {
		var got request
		if err := next(&got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
	}
	if err := next(&request{}); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

func TestDamagedMessagesAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"text": "hello, who is there?", "no JSON": "{]}", "cut": `{"id":`,
		"too long": `{"fault":{"text":"` + strings.Repeat("x", maxMessage) + `"}}`,
	} {
		if err := messages(strings.NewReader(text))(&answer{}); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzMessages(f *testing.F) {
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var a answer
		if err := messages(bytes.NewReader(data))(&a); err == nil && len(data) < 2 {
			t.Errorf("%q was taken for a message", data)
		}
	})
}
