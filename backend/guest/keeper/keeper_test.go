package keeper

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// lab is a Jupyter server with one kernel and one notebook, as far as a keeper sees them.
type lab struct {
	t      *testing.T
	keeper *Keeper
	kernel net.Conn // the keeper's subscription

	mu     sync.Mutex // guards everything below
	files  map[string]fields
	saved  map[string]time.Time
	pages  int
	opened int // pages until now
	gone   bool
	more   []any // notebooks whose kernels are k2, k3 …
	writes int
	now    time.Time
	// between is called once, after a notebook was read and before it is written.
	between func()
}

const labKey = "a key"

func openLab(t *testing.T, cells ...[3]string) *lab {
	l := &lab{t: t, files: map[string]fields{"a b.ipynb": sheetOf(cells...)}, saved: map[string]time.Time{},
		now: time.Now().Add(-time.Hour)}
	l.saved["a b.ipynb"] = l.now
	server := httptest.NewServer(l)
	t.Cleanup(server.Close)
	publisher, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { publisher.Close() }) //nolint:errcheck // only for the test
	home := t.TempDir()
	runtime := filepath.Join(home, ".local/share/jupyter/runtime")
	if err := os.MkdirAll(runtime, 0o700); err != nil {
		t.Fatal(err)
	}
	file := fmt.Sprintf(`{"transport":"tcp","ip":"127.0.0.1","iopub_port":%d,"key":%q,`+
		`"signature_scheme":"hmac-sha256"}`, publisher.Addr().(*net.TCPAddr).Port, labKey)
	if err := os.WriteFile(filepath.Join(runtime, "kernel-k1.json"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"HOME": home}
	l.keeper = New("tcp", strings.TrimPrefix(server.URL, "http://"), func(name string) string { return env[name] })
	ctx, stop := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() { l.keeper.Run(ctx) })
	t.Cleanup(func() { stop(); work.Wait() })
	if l.kernel, err = publisher.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.kernel.Close() }) //nolint:errcheck // only for the test
	greeting := make([]byte, greetingLen)
	greeting[0], greeting[9], greeting[10] = 0xff, 0x7f, 3
	copy(greeting[12:], "NULL")
	if _, err := l.kernel.Write(greeting); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(l.kernel, make([]byte, greetingLen+30)); err != nil { // READY and the subscription
		t.Fatal(err)
	}
	return l
}

func (l *lab) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	path, isFile := strings.CutPrefix(r.URL.Path, "/api/contents/")
	if r.URL.Query().Get("no_track_activity") != "1" {
		l.t.Errorf("%s counts as use of the server", r.URL)
	}
	var answer any
	switch {
	case r.URL.Path == "/api/sessions":
		list := []fields{}
		if !l.gone {
			list = append(list, fields{"path": "a b.ipynb", "type": "notebook",
				"kernel": fields{"id": "k1", "connections": l.pages}})
		}
		for i := range l.more {
			kernel := fields{"id": fmt.Sprint("k", i+2)}
			list = append(list, fields{"path": l.more[i], "type": "notebook", "kernel": kernel})
		}
		answer = list
	case isFile && l.files[path] == nil && r.Method == http.MethodGet:
		w.WriteHeader(http.StatusNotFound)
		return
	case isFile && r.Method == http.MethodGet:
		if l.between != nil && r.URL.Query().Get("content") == "0" {
			l.between()
			l.between = nil
		}
		file := fields{"last_modified": l.saved[path]}
		if r.URL.Query().Get("content") == "1" {
			file["content"] = l.files[path]
		}
		answer = file
	case isFile && r.Method == http.MethodPut:
		var file document
		body, _ := io.ReadAll(r.Body)
		if err := unmarshal(body, &file); err != nil || r.Header.Get("X-XSRFToken") == "" {
			l.t.Errorf("it writes %s: %v", body, err)
		}
		l.files[path], l.saved[path], l.writes = file.Content, time.Now(), l.writes+1
		answer = fields{}
	default:
		l.t.Errorf("it asks for %s %s", r.Method, r.URL)
	}
	data, err := json.Marshal(answer)
	if err != nil {
		l.t.Error(err)
	}
	w.Write(data) //nolint:errcheck // it is gone
}

// publish sends a message of the kernel.
func (l *lab) publish(request, kind, content string) {
	l.t.Helper()
	l.send(frames(request, kind, content, labKey))
}

func frames(request, kind, content, key string) []byte {
	parts := []string{fmt.Sprintf(`{"msg_id":"x","msg_type":%q}`, kind), fmt.Sprintf(`{"msg_id":%q}`, request), "{}",
		content}
	mac := hmac.New(sha256.New, []byte(key))
	for _, part := range parts {
		mac.Write([]byte(part))
	}
	var all []byte
	message := append([]string{"topic", "<IDS|MSG>", hex.EncodeToString(mac.Sum(nil))}, parts...)
	for i, part := range message {
		flags := byte(frameMore)
		if i == len(message)-1 {
			flags = 0
		}
		if len(part) < 256 {
			all = append(all, flags, byte(len(part)))
		} else {
			all = binary.BigEndian.AppendUint64(append(all, flags|frameLong), uint64(len(part)))
		}
		all = append(all, part...)
	}
	return all
}

func (l *lab) send(data []byte) {
	l.t.Helper()
	if _, err := l.kernel.Write(data); err != nil {
		l.t.Fatal(err)
	}
}

// taken waits until the keeper has so many runs and the newest has a text.
func (l *lab) taken(runs int, text string) {
	l.t.Helper()
	one := l.keeper.all()[0]
	for range 12_000 { // a minute, where all processors are taken
		one.mu.Lock()
		found := len(one.runs) == runs
		if found {
			all, _ := json.Marshal(one.runs[runs-1].notebook())
			found = strings.Contains(string(all), text)
		}
		one.mu.Unlock()
		if found {
			return
		}
		time.Sleep(5 * time.Millisecond) // until it has come over the connection
	}
	l.t.Fatalf("the keeper has not received %q", text)
}

// look is what the keeper does every second while a cell runs.
func (l *lab) look() {
	l.t.Helper()
	if err := l.keeper.look(l.t.Context()); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

func (l *lab) content(path string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.files[path] == nil {
		return ""
	}
	return contentOf(l.files[path])
}

func (l *lab) write(ending bool) {
	l.t.Helper()
	if err := l.keeper.Write(l.t.Context(), "a b.ipynb", ending); err != nil {
		l.t.Fatal(err)
	}
}

func TestOutputWithoutAPageIsWritten(t *testing.T) {
	l := openLab(t, [3]string{"long"}, [3]string{"next"})
	l.publish("1", "execute_input", `{"code":"long","execution_count":1}`)
	l.publish("1", "stream", `{"name":"stdout","text":"one\n"}`)
	l.send(frames("1", "stream", `{"name":"stdout","text":"forged\n"}`, "another key"))
	l.send(frames("1", "stream", `{"name":"stdout","text":"`+strings.Repeat("y", maxFrame)+`"}`, labKey))
	l.publish("1", "stream", fmt.Sprintf(`{"name":"stdout","text":"%s\n"}`, strings.Repeat("x", 300)))
	l.taken(1, "xxx")
	l.write(false)
	half := `null "one\n` + strings.Repeat("x", 300) + `\n" null`
	if got := l.content("a b.ipynb"); got != half {
		t.Fatalf("while it runs it has %s", got)
	}
	l.publish("1", "stream", `{"name":"stdout","text":"two\n"}`)
	l.publish("1", "status", `{"execution_state":"idle"}`)
	l.publish("2", "execute_input", `{"code":"next","execution_count":2}`)
	l.publish("2", "stream", `{"name":"stdout","text":"three\n"}`)
	l.publish("2", "status", `{"execution_state":"idle"}`)
	l.taken(2, "three")
	l.look()
	// The page is back and saves what it knows, which is less; then it is closed.
	l.set(func() {
		l.pages = 1
		l.saved["a b.ipynb"] = time.Now()
	})
	l.write(false)
	if got := l.content("a b.ipynb"); got != half {
		t.Errorf("with a page that is open it has %s", got)
	}
	l.set(func() { l.pages = 0 })
	l.write(false)
	want := strings.TrimSuffix(strings.Replace(half, "null", "1", 1), `" null`) + `two\n" 2 "three\n"`
	if got := l.content("a b.ipynb"); got != want {
		t.Errorf("it has %s, want %s", got, want)
	}
	l.set(func() { l.writes = 0 })
	l.write(false)
	l.set(func() {
		if l.writes > 0 {
			t.Error("what it has is written again")
		}
	})
}

func TestOutputIsWrittenTenMinutesAfterTheLastPage(t *testing.T) {
	l := openLab(t, [3]string{"long"})
	l.publish("1", "execute_input", `{"code":"long","execution_count":1}`)
	l.publish("1", "stream", `{"name":"stdout","text":"one\n"}`)
	l.taken(1, "one")
	began, alone := time.Now(), solitude{}
	for _, step := range []struct {
		after time.Duration
		pages int
		late  bool
	}{
		{0, 0, false}, {lateAfter, 0, false}, {lateAfter + time.Second, 0, true},
		{lateAfter + 2*time.Second, 0, false}, {2*lateAfter + 2*time.Second, 0, true},
		// While a page is open nothing is late, and the time begins again when it is closed.
		{4 * lateAfter, 1, false}, {5 * lateAfter, 0, false}, {6 * lateAfter, 0, false},
		{6*lateAfter + time.Second, 0, true},
	} {
		l.set(func() { l.pages = step.pages })
		l.look()
		late := alone.late(l.keeper.all(), began.Add(step.after))
		if step.late != slices.Equal(late, []string{"a b.ipynb"}) || !step.late && len(late) > 0 {
			t.Errorf("after %s with %d pages these are late: %q", step.after, step.pages, late)
		}
	}
	l.publish("1", "status", `{"execution_state":"idle"}`)
	for l.keeper.all()[0].prints(time.Now().Add(seldom)) {
		time.Sleep(5 * time.Millisecond) // until it has come over the connection
	}
	l.write(false)
	if late := alone.late(l.keeper.all(), began.Add(20*lateAfter)); len(late) > 0 {
		t.Errorf("what lacks nothing is late: %q", late)
	}
}

func TestWhatWasSavedMeanwhileIsNotWrittenOver(t *testing.T) {
	l := openLab(t, [3]string{"first"})
	l.publish("1", "execute_input", `{"code":"first","execution_count":1}`)
	l.publish("1", "stream", `{"name":"stdout","text":"one\n"}`)
	l.publish("1", "status", `{"execution_state":"idle"}`)
	l.taken(1, "one")
	l.look()
	l.set(func() {
		l.between = func() {
			l.files["a b.ipynb"], l.saved["a b.ipynb"] = sheetOf([3]string{"first"}, [3]string{"added"}), time.Now()
		}
	})
	if err := l.keeper.Write(t.Context(), "a b.ipynb", false); err == nil || !l.keeper.all()[0].unsettled() {
		t.Errorf("it was written over: %v", err)
	}
	if got := l.content("a b.ipynb"); got != `null null` {
		t.Errorf("after another client has saved it has %s", got)
	}
	l.write(false)
	if got := l.content("a b.ipynb"); got != `1 "one\n" null` {
		t.Errorf("then it has %s", got)
	}
}

func TestAKernelThatIsGoneIsNotForgottenBeforeItIsWritten(t *testing.T) {
	l := openLab(t, [3]string{"long"})
	l.publish("1", "execute_input", `{"code":"long","execution_count":1}`)
	l.publish("1", "stream", `{"name":"stdout","text":"one\n"}`)
	l.taken(1, "one")
	l.look()
	l.set(func() { l.gone = true })
	if err := errors.Join(l.kernel.Close(), os.Remove(l.keeper.all()[0].file)); err != nil {
		t.Fatal(err)
	}
	for !l.keeper.all()[0].hasLeft() {
		time.Sleep(5 * time.Millisecond) // until it has noticed
	}
	l.write(false)
	if got := l.content("a b.ipynb"); got != `1 "one\n"` {
		t.Errorf("it has %s", got)
	}
	l.keeper.forget()
	if left := l.keeper.all(); len(left) > 0 {
		t.Error("it is not forgotten")
	}
}

func TestAKernelWhoseNotebookWasDeletedIsForgotten(t *testing.T) {
	l := openLab(t, [3]string{"long"})
	l.publish("1", "execute_input", `{"code":"long","execution_count":1}`)
	l.taken(1, "")
	l.look()
	l.set(func() { l.files = map[string]fields{} })
	one := l.keeper.all()[0]
	if err := l.keeper.Write(t.Context(), "", false); !errors.Is(err, errMissing) || !one.unsettled() {
		t.Errorf("while the kernel runs: %v", err)
	}
	if err := errors.Join(l.kernel.Close(), os.Remove(one.file)); err != nil {
		t.Fatal(err)
	}
	for !one.hasLeft() {
		time.Sleep(5 * time.Millisecond) // until it has noticed
	}
	if err := l.keeper.Write(t.Context(), "", false); !errors.Is(err, errMissing) || !one.over() {
		t.Errorf("after the kernel has gone: %v", err)
	}
}

func TestOutputWithoutACellGoesBeside(t *testing.T) {
	l := openLab(t, [3]string{"other"})
	l.set(func() { l.files["a b-recovered.ipynb"] = sheetOf([3]string{"mine"}) })
	for _, id := range []string{"1", "2"} {
		l.publish(id, "execute_input", `{"code":"gone","execution_count":`+id+`}`)
		l.publish(id, "stream", `{"name":"stdout","text":"`+id+`"}`)
		l.publish(id, "status", `{"execution_state":"idle"}`)
	}
	l.taken(2, `"2"`)
	l.write(false)
	l.write(false)
	if got := l.content("a b.ipynb"); got != "null" {
		t.Errorf("another cell has %s", got)
	}
	if got := l.content("a b-recovered.ipynb"); got != "null" {
		t.Errorf("a notebook of the person has %s", got)
	}
	if got := l.content("a b-recovered-2.ipynb"); got != `1 "1" 2 "2"` {
		t.Errorf("beside it has %s", got)
	}
}

func TestTheEndWritesUnderAnOpenPage(t *testing.T) {
	l := openLab(t, [3]string{"long"})
	l.set(func() { l.pages = 1 })
	l.publish("1", "execute_input", `{"code":"long","execution_count":1}`)
	l.publish("1", "stream", `{"name":"stdout","text":"one\n"}`)
	l.taken(1, "one")
	listener := l.serve()
	for _, c := range []struct{ asks, answers, has string }{
		{"/", answerDone, "null"},
		{"/write?path=a+b.ipynb", answerDone, "null"},
		{"/write?path=unknown.ipynb", answerDone, "null"},
		{"/write?ending=1", answerDone, `null "one\n"`},
	} {
		if answer := ask(t, listener, c.asks); answer != c.answers {
			t.Errorf("%s is answered with %q", c.asks, answer)
		}
		if got := l.content("a b.ipynb"); got != c.has {
			t.Errorf("after %s it has %s", c.asks, got)
		}
	}
}

func (l *lab) serve() net.Listener {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		l.t.Fatal(err)
	}
	go l.keeper.Serve(l.t.Context(), listener)
	return listener
}

func ask(t *testing.T, of net.Listener, target string) string {
	t.Helper()
	conn, err := net.Dial("tcp", of.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // only for the test
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", target)
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

func TestWhatIsNotKeptIsSaid(t *testing.T) {
	l := openLab(t)
	listener := l.serve()
	if got := ask(t, listener, "/unkept"); got != answerJSON+"[]" {
		t.Errorf("with one kernel it answers %q", got)
	}
	unused, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	unused.Close() //nolint:errcheck // only its port is wanted
	silent := fmt.Sprintf(`{"ip":"127.0.0.1","iopub_port":%d`, unused.Addr().(*net.TCPAddr).Port)
	for id, file := range map[string]string{"k2": silent + `,"curve_publickey":"x"}`, "k3": silent +
		`,"key":"x","signature_scheme":"hmac-md5"}`, "k4": silent + "}", "k5": silent + "}"} {
		if err := os.WriteFile(filepath.Join(l.keeper.dirs[0], "kernel-"+id+".json"), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	kernel := func(id string) *kernel {
		for {
			for _, one := range l.keeper.all() {
				if one.id == id {
					return one
				}
			}
			time.Sleep(5 * time.Millisecond) // until it has noticed
		}
	}
	for _, id := range []string{"k2", "k3"} {
		for kernel(id).unheard(time.Now()) == "" {
			time.Sleep(5 * time.Millisecond) // until it has noticed
		}
	}
	k4 := kernel("k4")
	k4.mu.Lock()
	k4.deaf = time.Now().Add(-2 * startLimit)
	k4.mu.Unlock()
	kernel("k5") // it may only be starting
	l.set(func() { l.more = []any{"curve.ipynb", "md5.ipynb", "silent.ipynb", "starts.ipynb", "remote.ipynb"} })
	want := answerJSON + `[{"notebook":"curve.ipynb","why":"encrypted"},{"notebook":"md5.ipynb","why":"unreadable"},` +
		`{"notebook":"silent.ipynb","why":"unreachable"},{"notebook":"remote.ipynb","why":"unreadable"}]`
	if got := ask(t, listener, "/unkept"); got != want {
		t.Errorf("it answers %s, want %s", got, want)
	}
	if err := errors.Join(l.kernel.Close(), os.Remove(kernel("k1").file)); err != nil {
		t.Fatal(err)
	}
	for kernel("k1").unheard(time.Now()) == "" {
		time.Sleep(5 * time.Millisecond) // until it has noticed
	}
	l.set(func() { l.gone, l.more = true, nil })
	if got := ask(t, listener, "/unkept"); got != answerJSON+"[]" {
		t.Errorf("of kernels that have ended it says %s", got)
	}
}

// sheetPage is the page of a notebook: it shows what comes for cells that it ran itself, and saves what it shows.
type sheetPage struct {
	lab   *lab
	sheet fields
	own   runs
	id    string         // of its connections
	of    map[string]int // cells by the requests that ran them
}

// openPage asks for the notebook as the gateway does, and connects.
func (l *lab) openPage() *sheetPage {
	l.write(false)
	l.mu.Lock()
	defer l.mu.Unlock()
	var copied fields
	data, err := json.Marshal(l.files["a b.ipynb"])
	if err = errors.Join(err, unmarshal(data, &copied)); err != nil {
		l.t.Fatal(err)
	}
	l.pages, l.opened = 1, l.opened+1
	hello := message{kind: "status", client: fmt.Sprint("page ", l.opened), connect: true}
	l.keeper.all()[0].take(hello, time.Now())
	return &sheetPage{lab: l, sheet: copied, id: hello.client, of: map[string]int{}}
}

func (p *sheetPage) receive(m message) {
	cell, ran := p.of[m.parent]
	if !ran {
		return
	}
	p.own.take(m, time.Now(), false)
	if r := p.own.of(m.parent); r != nil {
		shown := p.sheet["cells"].([]any)[cell+1].(fields)
		shown["outputs"] = r.notebook()
		if r.done {
			shown["execution_count"] = r.count
		}
	}
}

func (p *sheetPage) save() {
	data, _ := json.Marshal(p.sheet) // it was read as JSON
	p.lab.set(func() {
		var copied fields
		if err := unmarshal(data, &copied); err != nil {
			p.lab.t.Error(err)
		}
		p.lab.files["a b.ipynb"], p.lab.saved["a b.ipynb"] = copied, time.Now()
	})
}

// A page runs cells, saves, is closed and opened again, at any moment. In the end every output is in its cell, once and
// in order.
func TestEveryOutputIsThereOnceAndInOrder(t *testing.T) {
	for seed := range uint64(50) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			l := openLab(t, [3]string{"a"}, [3]string{"b"}, [3]string{"c"})
			page, wanted := l.openPage(), map[int]string{}
			var queue []message
			count := 0
			run := func() {
				cell, id := random.IntN(3), fmt.Sprintf("r%d", count)
				count++
				page.of[id] = cell
				page.sheet["cells"].([]any)[cell+1].(fields)["outputs"] = []any{}
				add := func(kind, content string) {
					m := say(id, kind, content)
					m.client = page.id
					queue = append(queue, m)
				}
				add("execute_input", fmt.Sprintf(`{"code":%q,"execution_count":%d}`, string(rune('a'+cell)), count))
				all := ""
				for i := range random.IntN(6) {
					all += fmt.Sprintf("%s.%d ", id, i)
					add("stream", fmt.Sprintf(`{"name":"stdout","text":"%s.%d "}`, id, i))
				}
				add("status", `{"execution_state":"idle"}`)
				wanted[cell] = fmt.Sprintf("%d %q", count, all)
				if all == "" {
					wanted[cell] = fmt.Sprint(count)
				}
			}
			step := func() {
				m := queue[0]
				queue = queue[1:]
				l.keeper.all()[0].take(m, time.Now())
				if page != nil {
					page.receive(m)
				}
			}
			leave := func() {
				l.set(func() { l.pages = 0 })
				page = nil
			}
			for range 60 {
				switch what := random.IntN(10); {
				case what < 2 && page != nil && count < 6:
					run()
				case what < 6 && len(queue) > 0:
					step()
				case what == 6 && page != nil:
					page.save()
				case what == 7 && page != nil:
					leave()
				case what == 8 && page == nil:
					page = l.openPage()
				case what == 9:
					l.look()
				}
			}
			for len(queue) > 0 {
				step()
			}
			if page != nil {
				leave()
			}
			l.write(false)
			var want []string
			for cell := range 3 {
				want = append(want, cmp.Or(wanted[cell], "null"))
			}
			if got := l.content("a b.ipynb"); got != strings.Join(want, " ") {
				t.Errorf("it has\n%s, want\n%s", got, strings.Join(want, " "))
			}
			if l.content("a b-recovered.ipynb") != "" {
				t.Error("something has no cell")
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(frames("1", "stream", `{"name":"stdout","text":"x"}`, labKey))
	f.Add([]byte{2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		ours, theirs := net.Pipe()
		go func() {
			theirs.Write(data) //nolint:errcheck // the reader may have had enough
			theirs.Close()     //nolint:errcheck // as above
		}()
		s := &subscription{conn: ours, from: newReader(ours)}
		defer ours.Close() //nolint:errcheck // only for the test
		var list runs
		for {
			parts, err := s.next()
			if err != nil {
				return
			}
			if m, err := decode(parts, ""); err == nil {
				list.take(m, time.Now(), false)
				var b bytes.Buffer
				if err := json.NewEncoder(&b).Encode(recovered("x", list)); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
