package keeper

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

const (
	maxRun  = 32 << 20 // bytes of the outputs of one run, besides streams
	maxKept = 64 << 20 // bytes of the outputs of all runs of a kernel; the oldest go first
	maxRuns = 1000     // of a kernel
)

const displayData = "display_data" // the kind of a message and of an output

// fields is an object of JSON. Numbers are [json.Number].
type fields = map[string]any

// run is one execution of a cell.
type run struct {
	request  string // id of the message that asked for it
	code     string
	count    json.Number
	outputs  []*output
	size     int  // bytes of outputs that are no streams
	printed  int  // bytes of streams
	clearing bool // the next output replaces the ones before it
	done     bool
	last     time.Time // when the newest output came
	missed   bool      // some of it came while no page was connected
	settled  bool      // the file has it, or a later save of a page decided about it
}

// output is one output of a cell as a notebook has it. Exactly one of stream and fields is used.
type output struct {
	stream  string // its name: stdout, stderr
	text    text
	fields  fields
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
	return list
}

// bytes is about how much memory a run takes.
func (r *run) bytes() int { return len(r.code) + r.size + r.printed }

func (r *run) begin() {
	if r.clearing {
		r.outputs, r.size, r.printed, r.clearing = nil, 0, 0, false
	}
}

func (r *run) print(stream, printed string) {
	r.begin()
	if n := len(r.outputs); n == 0 || r.outputs[n-1].stream != stream {
		r.outputs = append(r.outputs, &output{stream: stream})
	}
	o := r.outputs[len(r.outputs)-1]
	before := o.text.size()
	o.text.add(printed)
	r.printed += o.text.size() - before
}

// show adds an output that is not a stream, of so many bytes.
func (r *run) show(kind string, size int, content fields, names ...string) {
	r.begin()
	if r.size+size > maxRun {
		r.print("stderr", fmt.Sprintf("[Slipway left out an output of %d bytes here.]\n", size))
		return
	}
	r.size += size
	o := &output{fields: fields{"output_type": kind}, display: displayOf(content)}
	for _, name := range names {
		o.fields[name] = content[name]
	}
	if o.fields["metadata"] == nil && kind != "error" {
		o.fields["metadata"] = fields{}
	}
	r.outputs = append(r.outputs, o)
}

func displayOf(content fields) string {
	transient, _ := content["transient"].(fields)
	id, _ := transient["display_id"].(string)
	return id
}

// runs are the runs of a kernel, the oldest first.
type runs []*run

func (list runs) of(request string) *run {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].request == request {
			return list[i]
		}
	}
	return nil
}

// take adds a message of a kernel's IOPub channel. See the messaging specification of Jupyter. left says that the page
// that requested it has been away since then: another one that is connected now does not show it.
func (list *runs) take(m message, now time.Time, left bool) {
	text := func(name string) string { value, _ := m.content[name].(string); return value }
	if m.kind == "execute_input" {
		count, _ := m.content["execution_count"].(json.Number)
		*list = append(*list, &run{request: m.parent, code: text("code"), count: count, last: now, missed: left})
		list.bound()
		return
	}
	if m.kind == "update_"+displayData {
		list.update(m.content, now)
		return
	}
	r := list.of(m.parent)
	if r == nil {
		return
	}
	switch m.kind {
	case "stream":
		r.print(text("name"), text("text"))
	case displayData:
		r.show(m.kind, m.size, m.content, "data", "metadata")
	case "execute_result":
		r.show(m.kind, m.size, m.content, "data", "metadata", "execution_count")
	case "error":
		r.show(m.kind, m.size, m.content, "ename", "evalue", "traceback")
	case "clear_output":
		r.clearing = true
		if wait, _ := m.content["wait"].(bool); !wait {
			r.begin()
		}
	case "status":
		r.done = r.done || text("execution_state") == "idle"
	default:
		return
	}
	r.last, r.settled = now, false
	list.bound()
}

// update changes the outputs of all runs that have the display of content.
func (list runs) update(content fields, now time.Time) {
	id := displayOf(content)
	for _, r := range list {
		for _, o := range r.outputs {
			if id != "" && o.display == id {
				o.fields["data"], o.fields["metadata"] = content["data"], content["metadata"]
				r.last, r.settled = now, false
			}
		}
	}
}

// bound forgets the oldest runs if there are too many, but never the newest.
func (list *runs) bound() {
	sum := 0
	for i := len(*list) - 1; i >= 0; i-- {
		sum += (*list)[i].bytes()
		if i < len(*list)-1 && (sum > maxKept || len(*list)-i > maxRuns) {
			*list = append(runs{}, (*list)[i+1:]...)
			return
		}
	}
}

// miss notes that no page is connected, as was so at some time since the last look.
func (list runs) miss(last time.Time) {
	for _, r := range list {
		r.missed = r.missed || !r.done || r.last.After(last)
	}
}

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
