package agentrpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"slipway/backend/session"
	"slipway/tunnel"
	"slipway/tunnel/frame"
)

// hostile is an agent that answers every method with bytes that a test chose.
type hostile struct {
	mu      sync.Mutex
	answers map[string][]byte // frames, by method
	asked   map[string]int
}

func (h *hostile) Open(_ context.Context, class tunnel.Class) (tunnel.Stream, error) {
	return &stage{hostile: h, class: class, ready: make(chan struct{}), closed: make(chan struct{})}, nil
}

// stage is one stream: it reads a request and says what was prepared.
type stage struct {
	net.Conn
	hostile *hostile
	class   tunnel.Class
	request []byte
	say     *bytes.Reader
	ready   chan struct{} // closed when the request has come
	closed  chan struct{}
	once    sync.Once
}

func (s *stage) Write(p []byte) (int, error) {
	if s.say != nil {
		return len(p), nil
	}
	s.request = append(s.request, p...)
	if len(s.request) < frame.HeadSize || len(s.request) < frame.HeadSize+int(binary.BigEndian.Uint32(s.request[1:])) {
		return len(p), nil
	}
	var asked request
	if err := json.Unmarshal(s.request[frame.HeadSize:], &asked); err != nil {
		return 0, err
	}
	s.hostile.mu.Lock()
	defer s.hostile.mu.Unlock()
	s.hostile.asked[asked.Method]++
	s.say = bytes.NewReader(s.hostile.answers[asked.Method])
	close(s.ready)
	return len(p), nil
}

func (s *stage) Read(p []byte) (int, error) {
	select {
	case <-s.ready:
		return s.say.Read(p)
	case <-s.closed:
		return 0, net.ErrClosed
	}
}

func (s *stage) Close() error                     { s.once.Do(func() { close(s.closed) }); return nil }
func (s *stage) CloseWrite() error                { return nil }
func (s *stage) Class() tunnel.Class              { return s.class }
func (s *stage) SetReadDeadline(time.Time) error  { return nil }
func (s *stage) SetWriteDeadline(time.Time) error { return nil }

// rawFrame is a frame as anybody can write one.
func rawFrame(k kind, body []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{byte(k)}, uint32(len(body))), body...)
}

// frames says a tree as the reply to a method.
func (r reply) frames(tree any) []byte {
	body, err := json.Marshal(tree)
	if err != nil {
		panic(err)
	}
	return r.raw(body)
}

func (r reply) raw(body []byte) []byte {
	switch {
	case r.event:
		return append(rawFrame(kindAnswer, []byte("{}")), rawFrame(kindEvent, body)...)
	case r.stream:
		return append(append(rawFrame(kindAnswer, body), rawFrame(kindData, []byte("data"))...),
			rawFrame(kindEnd, nil)...)
	}
	return rawFrame(kindAnswer, body)
}

// ask calls every method of a client that asks an agent, and returns what came
// of each, by the name of the method on the wire.
type outcome struct {
	values []any
	err    error
}

// calls are the client's methods, each with arguments that fit a good reply.
func calls(t testing.TB) map[string]func(*Client) outcome {
	t.Helper()
	h := &hostile{answers: map[string][]byte{}, asked: map[string]int{}}
	probe := NewClient(ClientConfig{Opener: h})
	known := map[string]func(*Client) outcome{}
	of := reflect.TypeFor[*Client]()
	for i := range of.NumMethod() {
		m := of.Method(i)
		if m.Name == "Agent" {
			continue // it asks nothing
		}
		variants := []bool{false}
		if m.Name == "DialSSH" {
			variants = []bool{false, true} // it has a method for each class
		}
		for _, bulk := range variants {
			call := func(c *Client) outcome { return invoke(c, m, bulk) }
			clear(h.asked)
			call(probe)
			if len(h.asked) != 1 {
				t.Fatalf("%s asked %v", m.Name, h.asked)
			}
			for method := range h.asked {
				known[method] = call
			}
		}
	}
	return known
}

// invoke calls a method with arguments of its types.
func invoke(c *Client, m reflect.Method, bulk bool) outcome {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var o outcome
	args := []reflect.Value{reflect.ValueOf(c), reflect.ValueOf(ctx)}
	for i := 2; i < m.Type.NumIn(); i++ {
		t := m.Type.In(i)
		arg := reflect.New(t).Elem()
		switch {
		case t == reflect.TypeFor[io.Reader]():
			arg.Set(reflect.ValueOf(strings.NewReader("x")))
		case t.Kind() == reflect.Func:
			arg.Set(reflect.ValueOf(func(e session.Event) error { o.values = append(o.values, e); return nil }))
		case t == reflect.TypeFor[session.ID](), t == reflect.TypeFor[session.FolderID]():
			arg.SetString("aaaaaaaaaaaa")
		case t == reflect.TypeFor[session.SSHRequest]():
			arg.Set(reflect.ValueOf(session.SSHRequest{Bulk: bulk}))
		case t == reflect.TypeFor[session.AuditQuery]():
			arg.Set(reflect.ValueOf(session.AuditQuery{Limit: 10}))
		case t == reflect.TypeFor[session.AppRequest]():
			arg.Set(reflect.ValueOf(session.AppRequest{App: "x"}))
		case t == reflect.TypeFor[session.ImageParts]():
			digest := "sha256:" + strings.Repeat("0a", 32)
			arg.Set(reflect.ValueOf(session.ImageParts{ID: digest, Layers: []session.ImageLayer{{Digest: digest}}}))
		case t.Kind() == reflect.String:
			arg.SetString("x")
		}
		args = append(args, arg)
	}
	for _, result := range m.Func.Call(args) {
		switch value := result.Interface().(type) {
		case nil:
		case error:
			o.err = value
		case io.ReadCloser:
			if _, err := io.Copy(io.Discard, value); err != nil {
				o.err = err
			}
			value.Close()
		default:
			o.values = append(o.values, value)
		}
	}
	return o
}

// nasty are the values that take the place of good ones, whatever their kind.
var nasty = []string{
	`"aaaaaaaaaaaa\nMatch exec \"touch /tmp/owned\"\n#"`, `"train\u001b]0;owned\u0007"`, `"a\u0000b"`,
	`"../../../../etc/passwd"`, `"/etc/../../x\r\ny"`, `"\u202egnp.exe"`,
	`"-oProxyCommand=touch"`, `"` + strings.Repeat("x", 200<<10) + `"`, `""`, `"NaN"`, `-1`, `1e400`,
	`9223372036854775807`, `18446744073709551615`, `1.5`, `null`, `true`, `[]`, `{}`,
	`"9999-12-31T23:59:59Z"`, `"0001-01-02T00:00:00Z"`, `{"bytes":"Li4vLi4vAA=="}`, strings.Repeat("[", 11_000),
	strings.Repeat(`{"with":[`, 9000),
}

// always is the last of nasty that is tried in every place of every answer; of
// the others a seed chooses.
const always = 1

// spots are the paths of all nodes of a tree.
func spots(tree any, at string) []string {
	list := []string{at}
	switch node := tree.(type) {
	case map[string]any:
		names := make([]string, 0, len(node))
		for name := range node {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			list = append(list, spots(node[name], strings.TrimPrefix(at+"."+name, "."))...)
		}
	case []any:
		for i := range node {
			list = append(list, spots(node[i], fmt.Sprintf("%s[%d]", at, i))...)
		}
	}
	return list
}

// TestHostileAgent has an agent answer every method with bad values in every
// place of a good answer. Each is refused with the one code, or harmless.
func TestHostileAgent(t *testing.T) {
	callsOf := calls(t)
	for _, r := range repliesOf(t) {
		t.Run(r.method, func(t *testing.T) {
			t.Parallel()
			call := callsOf[r.method]
			if call == nil {
				t.Fatal("no method of the client asks for it")
			}
			h := &hostile{answers: map[string][]byte{}, asked: map[string]int{}}
			told := 0
			client := NewClient(ClientConfig{Name: func() string { return "lab" }, Opener: h,
				Distrust: func(error) { told++ }})
			say := func(frames []byte) outcome {
				h.answers[r.method] = frames
				return call(client)
			}
			tree := good(t, r.of)
			if o := say(r.frames(tree)); session.CodeOf(o.err) == session.CodeAgentReply {
				t.Fatalf("a good answer: %v", o.err)
			}
			if told != 0 {
				t.Fatal("a good answer was distrusted")
			}
			attacks, refusals := 0, 0
			all := spots(tree, "")
			dice := rand.New(rand.NewPCG(13, uint64(len(all))))
			for _, spot := range all {
				for i, value := range nasty {
					if i > always && dice.IntN(len(all)*len(nasty)) > 400 {
						continue // one answer holds many places of one type
					}
					marker := "\x00here"
					raw, err := json.Marshal(set(parse(t, mustJSON(t, tree)), spot, marker))
					if err != nil {
						t.Fatal(err)
					}
					body := bytes.Replace(raw, mustJSON(t, marker), []byte(value), 1)
					o := say(r.raw(body))
					attacks++
					judge := func(err error) {
						if told > 0 != (session.CodeOf(err) == session.CodeAgentReply) {
							t.Errorf("%s = %.60s: distrusted %d times, and it ended as %v", spot, value, told, err)
						}
						told = 0
					}
					judge(o.err)
					if session.CodeOf(o.err) == session.CodeAgentReply {
						refusals++
						continue
					}
					for _, result := range o.values {
						if bad := nastiness(reflect.ValueOf(result), ""); bad != "" {
							t.Errorf("%s = %.60s came through at %s", spot, value, bad)
						}
					}
				}
			}
			if refusals == 0 && attacks > 100 {
				t.Errorf("none of %d attacks was refused", attacks)
			}
		})
	}
}

func mustJSON(t testing.TB, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// lines are the fields whose texts may have several lines: sentences for people.
// bytesOf are those that are handed on as they are: a command, a value of a
// variable, the content of a file.
var (
	lines = []string{"Sbatch", "Message", "Hint", "Text", "Why", "Remedy", "Problem", "Certificate", "Log",
		"Dockerfile"}
	bytesOf = []string{"Command", "Setup", "Value", "Body"}
)

// nastiness says where in a value something dangerous is. It knows nothing of
// the rules.
func nastiness(v reflect.Value, field string) string {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return nastiness(v.Elem(), field)
		}
	case reflect.Struct:
		if at, ok := v.Interface().(time.Time); ok {
			if !at.IsZero() && (at.Year() < 1970 || at.Year() > 2200) {
				return field
			}
			return ""
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				if bad := nastiness(v.Field(i), v.Type().Field(i).Name); bad != "" {
					return v.Type().Name() + "." + bad
				}
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if bad := nastiness(v.Index(i), field); bad != "" {
				return bad
			}
		}
	case reflect.Map:
		for at := v.MapRange(); at.Next(); {
			if nastiness(at.Key(), field) != "" || nastiness(at.Value(), "Text") != "" {
				return field
			}
		}
	case reflect.String:
		if dangerous(v, field) {
			return fmt.Sprintf("%s: %.60q", field, v.String())
		}
	case reflect.Int, reflect.Int64, reflect.Int32:
		if v.Int() > 1<<62 || v.Int() < -1<<31 {
			return field
		}
	}
	return ""
}

func dangerous(v reflect.Value, field string) bool {
	text := v.String()
	path := v.Type() == reflect.TypeFor[session.FilePath]()
	if path || slices.Contains(bytesOf, field) {
		upward := path && field != "Target" && strings.Contains(text, "../") // a link may lead anywhere
		return strings.ContainsRune(text, 0) || upward
	}
	allowed := ""
	if slices.Contains(lines, field) {
		allowed = "\n\t"
	}
	return len(text) > 130<<10 || strings.ContainsFunc(text, func(r rune) bool {
		return r == 0x202e || unicode.IsControl(r) && !strings.ContainsRune(allowed, r)
	})
}

// FuzzReplies has an agent answer any method with anything.
func FuzzReplies(f *testing.F) {
	callsOf, all := calls(f), repliesOf(f)
	for i, r := range all {
		f.Add(uint8(i), mustJSON(f, good(f, r.of)))
	}
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		r := all[int(which)%len(all)]
		h := &hostile{answers: map[string][]byte{r.method: r.raw(body)}, asked: map[string]int{}}
		began := time.Now()
		o := callsOf[r.method](NewClient(ClientConfig{Name: func() string { return "lab" }, Opener: h}))
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s: %q took %v", r.method, body, took)
		}
		if session.CodeOf(o.err) == session.CodeAgentReply {
			return
		}
		for _, result := range o.values {
			if bad := nastiness(reflect.ValueOf(result), ""); bad != "" {
				t.Errorf("%s: %q came through at %s", r.method, body, bad)
			}
		}
	})
}

// TestHostileFailures has an agent fail with values that are bad.
func TestHostileFailures(t *testing.T) {
	r := reply{method: "machine"}
	tree := good(t, reflect.TypeFor[failure]())
	h := &hostile{answers: map[string][]byte{}, asked: map[string]int{}}
	client := NewClient(ClientConfig{Name: func() string { return "lab" }, Opener: h})
	for _, spot := range spots(tree, "") {
		for _, value := range nasty {
			raw := mustJSON(t, set(parse(t, mustJSON(t, tree)), spot, "\x00here"))
			h.answers[r.method] = rawFrame(kindFailure, bytes.Replace(raw, mustJSON(t, "\x00here"), []byte(value), 1))
			_, err := client.Machine(t.Context())
			e := session.AsError(err, "")
			if e.Code == "" {
				t.Errorf("%s = %.60s: a failure without a code: %v", spot, value, err)
			}
			if bad := nastiness(reflect.ValueOf(session.Cause{Code: e.Code, Message: e.Message, Hint: e.Hint}),
				""); bad != "" {
				t.Errorf("%s = %.60s came through at %s", spot, value, bad)
			}
			if bad := nastiness(reflect.ValueOf(e.Fields), ""); bad != "" {
				t.Errorf("%s = %.60s came through at %s", spot, value, bad)
			}
		}
	}
}

// TestHostileFrames has an agent break the rules of frames.
func TestHostileFrames(t *testing.T) {
	long := binary.BigEndian.AppendUint32([]byte{byte(kindAnswer)}, MaxMessage+1)
	for name, frames := range map[string][]byte{
		"longer than any":     long,
		"of an unknown kind":  []byte("?\x00\x00\x00\x00"),
		"not JSON":            rawFrame(kindAnswer, []byte("machine")),
		"half of JSON":        rawFrame(kindAnswer, []byte(`{"agent":"lab"`)),
		"two values":          rawFrame(kindAnswer, []byte(`{}{}`)),
		"not deflated":        []byte("A\x80\x00\x00\x03\x01\x02\x03"),
		"data":                rawFrame(kindData, []byte("x")),
		"a failure of no use": rawFrame(kindFailure, []byte(`{}`)),
		"an event":            rawFrame(kindEvent, []byte(`{}`)),
	} {
		h := &hostile{answers: map[string][]byte{"machine": frames, "watch": append(rawFrame(kindAnswer, []byte("{}")),
			frames...)}, asked: map[string]int{}}
		client := NewClient(ClientConfig{Name: func() string { return "lab" }, Opener: h})
		if _, err := client.Machine(t.Context()); session.CodeOf(err) != session.CodeAgentReply {
			t.Errorf("an answer that is %s: %v", name, err)
		}
		if err := client.Watch(t.Context(), session.Cursor{},
			func(session.Event) error { return nil }); session.CodeOf(err) != session.CodeAgentReply {
			t.Errorf("an event that is %s: %v", name, err)
		}
	}
}

// TestHostileCountsTakeNoMemory has an agent send lists whose elements are a few
// bytes of JSON and a kilobyte of memory each.
func TestHostileCountsTakeNoMemory(t *testing.T) {
	bomb := []byte("[" + strings.Repeat("{},", MaxMessage/3-10) + "{}]")
	reset := slices.Concat([]byte(`{"epoch":"e","seq":1,"reset":{"machine":{},"sessions":`), bomb[:len(bomb)-200],
		[]byte(`{}]}}`))
	h := &hostile{asked: map[string]int{}, answers: map[string][]byte{
		"list": rawFrame(kindAnswer, bomb), "watch": append(rawFrame(kindAnswer, []byte("{}")), rawFrame(kindEvent,
			reset)...),
	}}
	client := NewClient(ClientConfig{Name: func() string { return "lab" }, Opener: h})
	for name, ask := range map[string]func() error{
		"a list": func() error { _, err := client.List(t.Context(), session.Filter{}); return err },
		"an event": func() error {
			return client.Watch(t.Context(), session.Cursor{}, func(session.Event) error { return nil })
		},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := ask()
		runtime.ReadMemStats(&after)
		// What comes is read into a buffer that doubles.
		took := (after.TotalAlloc - before.TotalAlloc) >> 20
		if session.CodeOf(err) != session.CodeAgentReply || took > 1024 {
			t.Errorf("%s took %d MiB and ended as %v", name, took, err)
		}
	}
}

// TestHostileAnswersAreAboutSomethingElse has an agent answer with what was not
// asked for, or tell events in an order in which a watcher comes to no end.
func TestHostileAnswersAreAboutSomethingElse(t *testing.T) {
	other := told("bbbbbbbbbbbb")
	events := func(list ...session.Event) []byte {
		raw := rawFrame(kindAnswer, []byte("{}"))
		for _, e := range list {
			raw = append(raw, rawFrame(kindEvent, mustJSON(t, e))...)
		}
		return raw
	}
	h := &hostile{asked: map[string]int{}, answers: map[string][]byte{
		"get": rawFrame(kindAnswer, mustJSON(t, other)), "terminate": rawFrame(kindAnswer, mustJSON(t, other)),
		"usage":     rawFrame(kindAnswer, mustJSON(t, []session.Usage{{Session: "bbbbbbbbbbbb"}})),
		"file.list": rawFrame(kindAnswer, mustJSON(t, session.FileListing{Path: "/", More: true})),
		"image.expect": rawFrame(kindAnswer,
			mustJSON(t, session.ImageArrival{ID: "sha256:" + strings.Repeat("0b", 32)})),
	}}
	client := NewClient(ClientConfig{Name: func() string { return "lab" }, Opener: h})
	ctx := t.Context()
	watch := func(after session.Cursor, list ...session.Event) error {
		h.answers["watch"] = events(list...)
		return client.Watch(ctx, after, func(session.Event) error { return nil })
	}
	reset := &session.Reset{Machine: session.Machine{Agent: "lab"}}
	failed := func(_ any, err error) error { return err }
	for name, err := range map[string]error{
		"a session":               failed(client.Get(ctx, "aaaaaaaaaaaa")),
		"an ended session":        failed(client.Terminate(ctx, "aaaaaaaaaaaa", true)),
		"samples":                 failed(client.Usage(ctx, "aaaaaaaaaaaa", time.Time{})),
		"a directory without end": failed(client.ListFiles(ctx, session.Place{}, session.ListRequest{Path: "/"})),
		"an image": failed(client.ExpectImage(ctx, session.ImageParts{ID: "sha256:" +
			strings.Repeat("0a", 32)})),
		"an event again": watch(session.Cursor{}, session.Event{Epoch: "e", Seq: 5, Reset: reset},
			session.Event{Epoch: "e", Seq: 5}),
		"an event before":         watch(session.Cursor{Epoch: "e", Seq: 7}, session.Event{Epoch: "e", Seq: 6}),
		"another epoch, no reset": watch(session.Cursor{Epoch: "e", Seq: 7}, session.Event{Epoch: "f", Seq: 1}),
		"a reset from before that": watch(session.Cursor{Epoch: "e", Seq: 7}, session.Event{Epoch: "e", Seq: 6,
			Reset: reset}),
	} {
		if session.CodeOf(err) != session.CodeAgentReply {
			t.Errorf("%s: %v", name, err)
		}
	}
}
