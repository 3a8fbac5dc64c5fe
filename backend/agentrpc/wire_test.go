package agentrpc

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/backend/session"
	"slipway/tunnel"
	"slipway/tunnel/resume"
)

var update = flag.Bool("update", false, "write testdata/wire.txt from the methods as they are")

// TestWire compares what crosses the wire for every method with what agents in
// use understand: its name, class, effect, limit, the codes of its failures and
// the names of its arguments. A line may be added, and none changed.
func TestWire(t *testing.T) {
	var lines []string
	methods := methodsByName()
	of := reflect.TypeFor[*Client]()
	for i := range of.NumMethod() {
		for _, bulk := range []bool{false, true} {
			m := of.Method(i)
			if m.Name == "Agent" || bulk && m.Name != "DialSSH" { // that asks nothing; this has one for each class
				continue
			}
			full, zero := sent(t, m, bulk, true), sent(t, m, bulk, false)
			s := methods[full.request.Method]
			const format = "%s: %s class=%d asked=%d code=%s effect=%d limit=%s asked=%s resumes=%t\n" +
				"\t%s\n\t%s\n"
			lines = append(lines, fmt.Sprintf(format, m.Name, full.request.Method, s.class, full.class,
				full.code, s.effect, s.limit, full.request.Limit.Round(time.Second),
				full.resumes, sorted(t, full.request.Args), sorted(t, zero.request.Args)))
		}
	}
	slices.Sort(lines)
	got := []byte(strings.Join(lines, ""))
	if *update {
		if err := os.WriteFile("testdata/wire.txt", got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/wire.txt")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the wire changed; agents in use would not understand it. Now it is\n%s", got)
	}
}

func methodsByName() map[string]spec {
	all := map[string]spec{methodHello.name: methodHello.spec}
	for _, m := range methods {
		all[m.about().name] = m.about()
	}
	return all
}

// call is what one call of a client sent, and the code of its failure.
type call struct {
	class   tunnel.Class
	request request
	resumes bool // its stream survives a cut
	code    session.Code
}

// sent calls a method of a client whose streams are lost after the request.
func sent(t *testing.T, m reflect.Method, bulk, full bool) call {
	t.Helper()
	r := &recorder{t: t, got: make(chan request, 1)}
	c := NewClient(ClientConfig{Opener: r, Patience: time.Second})
	args := []reflect.Value{reflect.ValueOf(c), reflect.ValueOf(t.Context())}
	for i := 2; i < m.Type.NumIn(); i++ {
		arg := reflect.New(m.Type.In(i)).Elem()
		switch {
		case m.Type.In(i) == reflect.TypeFor[io.Reader]():
			arg.Set(reflect.ValueOf(strings.NewReader("x")))
		case arg.Kind() == reflect.Func:
			arg.Set(reflect.ValueOf(func(session.Event) error { return nil }))
		case full:
			fill(arg, 3)
		}
		if ask, ok := arg.Addr().Interface().(*session.LaunchRequest); ok {
			ask.Key = "x" // else it is drawn
		}
		if ask, ok := arg.Addr().Interface().(*session.SSHRequest); ok {
			ask.Bulk = bulk
		}
		if b := arg; full && b.Kind() == reflect.Bool {
			b.SetBool(true)
		}
		args = append(args, arg)
	}
	results := m.Func.Call(args)
	err, _ := results[len(results)-1].Interface().(error)
	if err == nil {
		t.Fatalf("%s did not fail", m.Name)
	}
	request := <-r.got
	return call{class: r.class, request: request, resumes: r.resumes, code: session.CodeOf(err)}
}

// recorder is an [Opener] that reads the request of each stream and loses it,
// and a [resume.Line] that never comes up.
type recorder struct {
	t     *testing.T
	class tunnel.Class
	got   chan request

	resumes bool // is there once got has the request
}

func (r *recorder) WaitUp(context.Context) error { return net.ErrClosed }

func (r *recorder) Open(_ context.Context, class tunnel.Class) (tunnel.Stream, error) {
	r.class = class
	near, far := net.Pipe()
	go func() {
		defer far.Close()
		taken := make(chan tunnel.Stream, 1)
		go resume.NewHost().Take(tunnel.Peer{}, muxStream{far, class}, func(s tunnel.Stream) { taken <- s })
		stream := <-taken
		_, r.resumes = stream.(*resume.Stream)
		w := newWire(stream, &codec{})
		head, err := w.head()
		if err != nil {
			r.t.Error(err)
			return
		}
		body, err := w.body(head)
		if err != nil {
			r.t.Error(err)
			return
		}
		var asked request
		if err := json.Unmarshal(body, &asked); err != nil {
			r.t.Error(err)
		}
		r.got <- asked
	}()
	return muxStream{near, class}, nil
}

// sorted is JSON with the names of each object in order.
func sorted(t *testing.T, raw []byte) string {
	t.Helper()
	text, err := json.Marshal(parse(t, raw))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
