package keeper

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"
)

// shelf is a keeper of many kernels that keeps little.
type shelf struct {
	*Keeper
	now time.Time
}

func newShelf(kernels int, most int64) *shelf {
	s := &shelf{New("tcp", "", func(string) string { return "" }), time.Now()}
	s.most = most
	for i := range kernels {
		s.begin(fmt.Sprint(i), "")
	}
	return s
}

// take has a kernel publish a message.
func (s *shelf) take(kernel int, request, kind, content string) {
	s.now = s.now.Add(time.Second)
	s.kernels[fmt.Sprint(kernel)].take(say(request, kind, content), s.now)
}

// print has a kernel run a cell that prints so many letters.
func (s *shelf) print(kernel int, request, letter string, count int) *run {
	s.take(kernel, request, "execute_input", `{"code":"`+request+`"}`)
	s.take(kernel, request, "stream", `{"name":"stdout","text":"`+strings.Repeat(letter, count)+`"}`)
	return s.of(kernel, request)
}

func (s *shelf) of(kernel int, request string) *run {
	for _, r := range s.kernels[fmt.Sprint(kernel)].runs {
		if r.code == request {
			return r
		}
	}
	return nil
}

func textOf(r *run) string {
	var all []string
	for _, o := range r.notebook() {
		text, _ := o.(fields)["text"].(string)
		all = append(all, text)
	}
	return strings.Join(all, "|")
}

func TestAllKernelsTogetherAreBounded(t *testing.T) {
	const letters, most = 10_000, 100_000
	s := newShelf(5, most)
	random := rand.New(rand.NewPCG(1, 1))
	newest := map[int]string{}
	for i := range 200 {
		kernel, request := random.IntN(5), fmt.Sprint("r", i)
		s.print(kernel, request, "x", 1+random.IntN(letters))
		newest[kernel] = request
		sum := 0
		for _, one := range s.all() {
			sum += one.runs.bytes()
		}
		if int64(sum) != s.size.Load() || sum > most {
			t.Fatalf("%d bytes are kept and %d counted", sum, s.size.Load())
		}
		for kernel, request := range newest {
			if r := s.of(kernel, request); r == nil || r.dropped {
				t.Fatalf("the newest run of kernel %d is not kept", kernel)
			}
		}
	}
	for _, one := range s.all() {
		one.gone = true
	}
	if s.forget(); s.size.Load() != 0 {
		t.Errorf("%d bytes are counted of no kernels", s.size.Load())
	}
}

func TestWhatTheFilesHaveGoesFirst(t *testing.T) {
	s := newShelf(3, 35_000)
	s.print(0, "missed", "x", 10_000).missed = true
	s.print(0, "shown", "x", 10_000)
	s.print(1, "settled", "x", 10_000).settled = true
	for kernel := range 3 {
		s.print(kernel, "newest", "x", 1)
	}
	for _, want := range []string{"settled", "settled shown", "settled shown missed"} {
		s.take(2, "newest", "stream", `{"name":"stdout","text":"`+strings.Repeat("x", 10_000)+`"}`)
		var dropped []string
		for i, code := range []string{"settled", "shown", "missed"} {
			if s.of([]int{1, 0, 0}[i], code).dropped {
				dropped = append(dropped, code)
			}
		}
		if got := strings.Join(dropped, " "); got != want {
			t.Errorf("%s have gone, want %s", got, want)
		}
	}
}

func TestARunThatIsLeftOutSaysSo(t *testing.T) {
	s := newShelf(2, 25_000)
	old := s.print(0, "old", "x", 10_000)
	s.print(0, "new", "y", 10_000)
	s.print(1, "other", "z", 10_000)
	dropped := s.of(0, "old")
	if got := textOf(dropped); got != "[Slipway left out 10000 bytes here.]\n" || dropped == old {
		t.Errorf("it has %.100q", got)
	}
	s.take(0, "old", "stream", `{"name":"stdout","text":"late"}`)
	if got := textOf(dropped); strings.Contains(got, "late") {
		t.Errorf("more is added to it: %q", got)
	}
	for name, c := range map[string]struct{ count, want string }{
		"the beginning is there":       {"7", `7 "begin" "[Slipway left out 10000 bytes here.]\n"`},
		"the beginning, as it ran":     {"", `7 "begin" "[Slipway left out 10000 bytes here.]\n"`},
		"the output of an earlier run": {"3", `7 "[Slipway left out 10000 bytes here.]\n"`},
	} {
		placing := *dropped
		placing.count = "7"
		sheet := sheetOf([3]string{"old", c.count, `{"output_type":"stream","name":"stdout","text":"begin"}`})
		placed, _ := place(sheet, runs{&placing}, s.now.Add(-time.Hour))
		if got := contentOf(sheet); got != c.want || len(placed) != 1 {
			t.Errorf("%s: the cell is %s, want %s", name, got, c.want)
		}
	}
}

func TestTheNewestRunsAreCutWhereNothingElseCanGo(t *testing.T) {
	s := newShelf(2, 15_000)
	s.print(0, "a", "x", 10_000)
	b := s.print(1, "b", "y", 10_000) // the last that is whole
	s.take(1, "b", "stream", `{"name":"stdout","text":"more"}`)
	s.take(1, "b", "display_data", `{"data":{},"metadata":{}}`)
	s.take(1, "b", "error", `{"ename":"E","evalue":"v","traceback":["t"]}`)
	all, _ := json.Marshal(b.notebook()[1:])
	if want := `[{"name":"stderr","output_type":"stream","text":"[Slipway left out 56 bytes here.]\n"},` +
		`{"ename":"E","evalue":"v","output_type":"error","traceback":["t"]}]`; string(all) != want {
		t.Errorf("after its beginning it has %s, want %s", all, want)
	}
	s.kernels["0"].release()
	s.take(1, "b", "stream", `{"name":"stdout","text":"again"}`)
	if got := textOf(b); !strings.HasSuffix(got, "|again") {
		t.Errorf("with room again it ends with %q", got[len(got)-20:])
	}
}

func TestARunThatSwitchesBetweenStreamsIsBounded(t *testing.T) {
	var list runs
	list.take(say("1", "execute_input", `{"code":"x"}`), time.Now(), false)
	part := say("1", "stream", `{"name":"stdout","text":"`+strings.Repeat("x", 1<<20)+`\n"}`)
	for i := range 100 {
		part.content["name"] = []string{"stdout", "stderr"}[i%2]
		list.take(part, time.Now(), false)
	}
	if size := list.bytes(); size > maxKept+2<<20 {
		t.Errorf("%d bytes are kept", size)
	}
	if got := textOf(list[0]); !strings.HasSuffix(got, "bytes here.]\n") {
		t.Errorf("it ends with %q", got[len(got)-20:])
	}
}

func TestADisplayThatGrowsIsBounded(t *testing.T) {
	var list runs
	list.take(say("1", "execute_input", `{"code":"x"}`), time.Now(), false)
	display := func(kind string, size int) {
		m := say("1", kind, `{"data":{"text/plain":"x"},"metadata":{},"transient":{"display_id":"d"}}`)
		m.size = size // as if it were as long
		list.take(m, time.Now(), false)
	}
	display(displayData, 10)
	display("update_"+displayData, 1<<20)
	if size := list.bytes(); size < 1<<20 {
		t.Errorf("%d bytes are counted", size)
	}
	display("update_"+displayData, 1<<10)
	display("update_"+displayData, maxRun+1)
	if size := list.bytes(); size > 2<<10 {
		t.Errorf("%d bytes are kept", size)
	}
	if last := list[0].notebook()[1].(fields)["text"]; !strings.Contains(fmt.Sprint(last), "left out") {
		t.Errorf("nothing says that an output is old: %v", last)
	}
}

func TestASocketThatEncryptsIsRefused(t *testing.T) {
	for mechanism, want := range map[string]error{"NULL": nil, "CURVE": errZMTP} {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close() //nolint:errcheck // only for the test
			greeting := make([]byte, greetingLen)
			io.ReadFull(theirs, greeting) //nolint:errcheck // the other end is that of the test
			copy(greeting[12:32], make([]byte, 20))
			copy(greeting[12:], mechanism)
			theirs.Write(greeting)      //nolint:errcheck // as above
			io.Copy(io.Discard, theirs) //nolint:errcheck // as above
		}()
		if err := (&subscription{conn: ours, from: newReader(ours)}).greet(); !errors.Is(err, want) {
			t.Errorf("%s: %v", mechanism, err)
		}
		ours.Close() //nolint:errcheck // only for the test
	}
}

func TestManyRunsBesideANotebookGoToAFurtherOne(t *testing.T) {
	k := New("tcp", "", func(string) string { return "" })
	var first *recovery
	for i := range maxRecovered {
		first = k.asideOf("a.ipynb", runs{{code: fmt.Sprint(i)}})
	}
	if len(first.runs) != maxRecovered {
		t.Errorf("it has %d", len(first.runs))
	}
	if next := k.asideOf("a.ipynb", runs{{code: "next"}}); next == first || len(next.runs) != 1 {
		t.Errorf("a further one has %d", len(next.runs))
	}
	k.asideOf("b.ipynb", runs{{printed: maxKept + 1}})
	if next := k.asideOf("c.ipynb", runs{{code: "x"}}); len(k.aside) != 1 || len(next.runs) != 1 {
		t.Errorf("%d are in memory", len(k.aside))
	}
}
