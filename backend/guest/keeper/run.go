package keeper

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// What is kept in memory. Where output is left out, a note in its place says how much.
const (
	maxRun     = 32 << 20  // bytes of the outputs of one run, besides streams
	maxKept    = 64 << 20  // bytes of all runs of a kernel
	maxSession = 256 << 20 // bytes of all runs of all kernels
	maxRuns    = 1000      // of a kernel
	outputCost = 256       // about the bytes that an output takes besides what it shows
)

const displayData = "display_data" // the kind of a message and of an output

// shown are the fields of outputs that are not streams, by their kind.
var shown = map[string][]string{
	displayData:      {"data", "metadata"},
	"execute_result": {"data", "metadata", "execution_count"},
	"error":          {"ename", "evalue", "traceback"},
}

// fields is an object of JSON. Numbers are [json.Number].
type fields = map[string]any

// run is one execution of a cell.
type run struct {
	request  string // id of the message that asked for it
	client   string // who asked for it
	code     string
	count    json.Number
	outputs  []*output
	size     int  // bytes of outputs that are no streams
	printed  int  // bytes of streams
	left     int  // bytes that were left out after the last output
	clearing bool // the next output replaces the ones before it
	done     bool
	dropped  bool      // all that it printed was left out, as is what it still prints
	last     time.Time // when the newest output came
	missed   bool      // some of it came while no page was connected
	doubtful bool      // some of it came after a page had left, while others were connected
	settled  bool      // the file has it, or a later save of a page decided about it
}

// output is one output of a cell as a notebook has it. Exactly one of stream and fields is used.
type output struct {
	stream  string // its name: stdout, stderr
	text    text
	fields  fields
	size    int    // bytes of fields
	display string // id by which it can be updated
}

// notebook returns the output as a notebook file has it.
func (o *output) notebook() fields {
	if o.stream != "" {
		return fields{"output_type": "stream", "name": o.stream, "text": o.text.String()}
	}
	return maps.Clone(o.fields)
}

func (r *run) notebook() []any {
	list := []any{}
	for _, o := range r.outputs {
		list = append(list, o.notebook())
	}
	if r.left > 0 {
		list = append(list, fields{"output_type": "stream", "name": noteStream, "text": leftOut(r.left)})
	}
	return list
}

// bytes is about how much memory a run takes.
func (r *run) bytes() int { return len(r.code) + r.size + r.printed + len(r.outputs)*outputCost }

// add adds an output, or leaves it out if there is no room for it. The error that ends a cell is small, and is kept.
func (r *run) add(m message) {
	if r.clearing {
		r.clear()
	}
	if (m.full || r.bytes() > maxKept) && m.kind != "error" || m.kind != "stream" && r.size+m.size > maxRun {
		r.left += m.size
		return
	}
	if left := r.left; left > 0 {
		r.left = 0
		r.print(noteStream, leftOut(left))
	}
	if m.kind == "stream" {
		r.print(m.text("name"), m.text("text"))
	} else {
		r.show(m)
	}
}

func (r *run) clear() { r.outputs, r.size, r.printed, r.left, r.clearing = nil, 0, 0, 0, false }

func (r *run) print(stream, printed string) {
	if n := len(r.outputs); n == 0 || r.outputs[n-1].stream != stream {
		r.outputs = append(r.outputs, &output{stream: stream})
	}
	o := r.outputs[len(r.outputs)-1]
	before := o.text.size()
	o.text.add(printed)
	r.printed += o.text.size() - before
}

// show adds an output that is not a stream.
func (r *run) show(m message) {
	r.size += m.size
	o := &output{fields: fields{"output_type": m.kind}, size: m.size, display: displayOf(m.content)}
	for _, name := range shown[m.kind] {
		o.fields[name] = m.content[name]
	}
	if o.fields["metadata"] == nil && m.kind != "error" {
		o.fields["metadata"] = fields{}
	}
	r.outputs = append(r.outputs, o)
}

func displayOf(content fields) string {
	transient, _ := content["transient"].(fields)
	id, _ := transient["display_id"].(string)
	return id
}

// before reports whether a run is dropped before another. First go those that a file has, then those that a page
// showed, then the others, and at last those of which only the source is left; of each the oldest.
func (r *run) before(other *run) bool {
	worth := func(r *run) int {
		switch {
		case r.dropped:
			return 3
		case r.settled:
			return 0
		case !r.missed:
			return 1
		}
		return 2
	}
	return cmp.Or(cmp.Compare(worth(r), worth(other)), r.last.Compare(other.last)) < 0
}

// runs are the runs of a kernel, the oldest first.
type runs []*run

// of returns the run of a request, if it takes output.
func (list runs) of(request string) *run {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].request == request && !list[i].dropped {
			return list[i]
		}
	}
	return nil
}

// take adds a message of a kernel's IOPub channel. See the messaging specification of Jupyter. left says that the page
// that requested it has been away since then: another one that is connected now does not show it.
func (list *runs) take(m message, now time.Time, left bool) {
	if m.kind == "execute_input" {
		count, _ := m.content["execution_count"].(json.Number)
		*list = append(*list, &run{request: m.parent, client: m.client, code: m.text("code"), count: count, last: now,
			missed: left})
		list.bound()
		return
	}
	if m.kind == "update_"+displayData {
		list.update(m, now)
		return
	}
	r := list.of(m.parent)
	if r == nil {
		return
	}
	switch m.kind {
	case "stream", displayData, "execute_result", "error":
		r.add(m)
	case "clear_output":
		r.clearing = true
		if wait, _ := m.content["wait"].(bool); !wait {
			r.clear()
		}
	case "status":
		r.done = r.done || m.text("execution_state") == "idle"
	default:
		return
	}
	r.last, r.settled = now, false
	list.bound()
}

// update changes the outputs of all runs that have the display of a message.
func (list *runs) update(m message, now time.Time) {
	id := displayOf(m.content)
	for _, r := range *list {
		for _, o := range r.outputs {
			if id == "" || o.display != id {
				continue
			}
			if more := m.size - o.size; more > 0 && (m.full || r.size+more > maxRun) {
				r.left += m.size
			} else {
				o.fields["data"], o.fields["metadata"], o.size = m.content["data"], m.content["metadata"], m.size
				r.size += more
			}
			r.last, r.settled = now, false
		}
	}
	list.bound()
}

func (list runs) bytes() (sum int) {
	for _, r := range list {
		sum += r.bytes()
	}
	return sum
}

// bound drops runs while there are too many.
func (list *runs) bound() {
	if over := len(*list) - maxRuns; over > 0 {
		*list = slices.Delete(*list, 0, over)
	}
	for list.bytes() > maxKept && list.first() != nil {
		list.drop()
	}
}

// first returns the run that is dropped first. It is never the newest; nil: there is no other.
func (list runs) first() (first *run) {
	for _, r := range list[:max(0, len(list)-1)] {
		if first == nil || r.before(first) {
			first = r
		}
	}
	return first
}

// drop leaves out what the first run printed. Of one whose source is all that is left, it forgets that, too.
func (list *runs) drop() {
	r := list.first()
	at := slices.Index(*list, r)
	if r.dropped {
		*list = slices.Delete(*list, at, at+1)
		return
	}
	// It is replaced, because a notebook that is being written may have it.
	(*list)[at] = &run{code: r.code, count: r.count, left: r.left + r.size + r.printed, done: true, dropped: true,
		last: r.last, missed: r.missed, settled: r.settled}
}

// miss notes that no page is connected, as was so at some time since the last look.
func (list runs) miss(last time.Time) {
	for _, r := range list {
		r.missed = r.missed || r.goesOnSince(last)
	}
}

// doubt notes that a page has left since the last look, and others have not.
func (list runs) doubt(last time.Time) {
	for _, r := range list {
		r.doubtful = r.doubtful || r.goesOnSince(last)
	}
}

func (r *run) goesOnSince(last time.Time) bool { return !r.done || r.last.After(last) }

// unsettled reports whether a file may lack something.
func (list runs) unsettled() bool {
	return slices.ContainsFunc(list, func(r *run) bool { return !r.settled })
}

// stopped notes that the kernel has ended or was restarted, so no run goes on.
func (list runs) stopped() {
	for _, r := range list {
		r.done = true
	}
}
