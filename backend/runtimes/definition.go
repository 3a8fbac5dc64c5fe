package runtimes

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"slipway/backend/recipe"
	"slipway/backend/session"
)

// DefinitionNames are the names of the file in a folder that says how its model is served, as Backend.AI has them.
var DefinitionNames = []string{"model-definition.yaml", "model-definition.yml"}

// MaxDefinition is the size of the largest such file, in bytes.
const MaxDefinition = 256 << 10

// Definition is what a model-definition.yaml says.
type Definition struct {
	File      string          `json:"file"`      // its path in the folder
	ModelPath string          `json:"modelPath"` // of the model in the container
	Serving   session.Serving `json:"serving"`
}

// ParseDefinition reads a model-definition.yaml. Each fault has the name of the file and the line as its field, such as
// "model-definition.yaml:12". Values have the rules of [session.Serving].
func ParseDefinition(file string, data []byte) (Definition, []session.FieldError) {
	r := &reader{at: map[string]*yaml.Node{}}
	d := Definition{File: file}
	r.read(data, &d)
	slices.SortStableFunc(r.faults, func(a, b lineFault) int { return a.line - b.line })
	var wrong []session.FieldError
	for _, f := range r.faults {
		if f.Field = path.Base(file); f.line > 0 {
			f.Field += ":" + strconv.Itoa(f.line)
		}
		wrong = append(wrong, f.FieldError)
	}
	return d, wrong
}

func (r *reader) read(data []byte, d *Definition) {
	if len(data) > MaxDefinition {
		r.fault(&yaml.Node{}, session.KindTooMany, "The file has more than 256 KiB.", "Is it the right one?")
		return
	}
	document, err := recipe.Document(data, "Write at least models: with one model.")
	if fault, ok := errors.AsType[*recipe.Fault](err); ok {
		said := "This is " + fault.Message
		if fault.Line == 0 {
			said = "The file cannot be read: " + fault.Message
		}
		r.fault(&yaml.Node{Line: fault.Line}, session.KindInvalid, said, fault.Hint)
		return
	}
	r.fields(document, "The file", map[string]func(*yaml.Node){
		"models": func(n *yaml.Node) {
			if r.list(n, "models") && len(n.Content) > 1 {
				r.fault(n.Content[1], session.KindTooMany, "A service serves one model, and the file has more.",
					"Keep one of them, or make a folder for each.")
			} else if len(n.Content) == 1 {
				r.model(n.Content[0], d)
			}
			r.require(n.Kind == yaml.SequenceNode && len(n.Content) == 0, n, "models")
		},
	}, "models")
	d.replace()
	if len(r.faults) == 0 {
		r.judge(d.Serving)
	}
}

// mostFaults is how many faults of one file are told.
const mostFaults = 50

// reader reads the nodes of a file and collects what is wrong.
type reader struct {
	faults []lineFault
	at     map[string]*yaml.Node // where the fields of the spec come from
}

// lineFault is what is wrong in a line; 0: in the whole file.
type lineFault struct {
	line int
	session.FieldError
}

func (r *reader) fault(at *yaml.Node, kind session.Kind, message, hint string) {
	if len(r.faults) < mostFaults {
		r.faults = append(r.faults, lineFault{at.Line, session.FieldError{Kind: kind, Message: message, Hint: hint}})
	}
}

func (r *reader) require(missing bool, at *yaml.Node, name string) {
	if missing {
		r.fault(at, session.KindRequired, name+" is missing.", "Add it here.")
	}
}

// fields reads a group of fields, each with its function. A field without a value is like one that is not there.
func (r *reader) fields(n *yaml.Node, what string, read map[string]func(*yaml.Node), required ...string) {
	if n.Kind != yaml.MappingNode || n.Anchor != "" {
		r.fault(n, session.KindInvalid, what+" is not a group of fields.", "Write fields as name: value.")
		return
	}
	names := make([]string, 0, len(read))
	for name := range read {
		names = append(names, name)
	}
	slices.Sort(names)
	given := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		into, known := read[key.Value]
		switch {
		case !known || key.Kind != yaml.ScalarNode:
			r.fault(key, session.KindUnknown, fmt.Sprintf("%q is not a field here.", session.Clip(key.Value)),
				recipe.Nearest(key.Value, names))
		case given[key.Value]:
			r.fault(key, session.KindDuplicate, key.Value+" is there twice.", "Keep one of them.")
		case value.Kind == yaml.AliasNode || value.Anchor != "":
			given[key.Value] = true
			r.fault(key, session.KindInvalid, key.Value+" uses an anchor or an alias.", "Write the value out.")
		case value.Tag != "!!null":
			given[key.Value] = true
			into(value)
		}
	}
	for _, name := range required {
		r.require(!given[name], n, name)
	}
}

func (r *reader) list(n *yaml.Node, what string) bool {
	if n.Kind != yaml.SequenceNode {
		r.fault(n, session.KindInvalid, what+" is not a list.",
			"Write each entry on its own line, beginning with a dash.")
	}
	return n.Kind == yaml.SequenceNode
}

// text reads a single value into to.
func (r *reader) text(what string, to *string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind != yaml.ScalarNode {
			r.fault(n, session.KindInvalid, what+" is not a single value.",
				"Write "+what+": and the value on one line.")
			return
		}
		*to = n.Value
	}
}

// flag reads true or false into to.
func (r *reader) flag(what string, to *bool) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
			r.fault(n, session.KindInvalid, what+" is neither true nor false.", "Write true or false.")
			return
		}
		*to = strings.EqualFold(n.Value, "true")
	}
}

// number reads a whole number from 1, which sets the field of a spec.
func (r *reader) number(what, field string, to *int) func(*yaml.Node) {
	return func(n *yaml.Node) {
		value, err := strconv.ParseFloat(n.Value, 64)
		whole := err == nil && n.Kind == yaml.ScalarNode && (n.Tag == "!!int" || n.Tag == "!!float") &&
			value == math.Trunc(value)
		if !whole || value < 1 || value > math.MaxInt32 {
			r.fault(n, session.KindInvalid, what+" is not a whole number from 1.", "Write digits without quotes.")
			return
		}
		*to, r.at[field] = int(value), n
	}
}

// seconds reads a whole number of seconds.
func (r *reader) seconds(what, field string, to *session.Duration) func(*yaml.Node) {
	return func(n *yaml.Node) {
		var value int
		if r.number(what, field, &value)(n); value > 0 {
			*to = session.Duration(value) * session.Duration(time.Second)
		}
	}
}

// words reads a list of single values.
func (r *reader) words(what string, to *[]string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if !r.list(n, what) {
			return
		}
		for _, item := range n.Content {
			if item.Kind != yaml.ScalarNode || item.Tag == "!!null" {
				r.fault(item, session.KindInvalid, what+" has an entry that is not a single value.",
					"Put it in quotes.")
				return
			}
			*to = append(*to, item.Value)
		}
	}
}

func (r *reader) model(n *yaml.Node, d *Definition) {
	r.fields(n, "A model", map[string]func(*yaml.Node){
		"name": func(n *yaml.Node) {
			name := ""
			r.text("name", &name)(n)
			d.Serving.Models, r.at["serving.models[0]"] = []string{name}, n
		},
		"model_path": func(n *yaml.Node) {
			if r.text("model_path", &d.ModelPath)(n); n.Kind == yaml.ScalarNode && !path.IsAbs(d.ModelPath) {
				r.fault(n, session.KindInvalid, fmt.Sprintf("model_path is %q, which does not begin with a slash.",
					session.Clip(d.ModelPath)), "The folder is mounted at "+ModelTarget+".")
			}
		},
		"service":  func(n *yaml.Node) { r.service(n, &d.Serving) },
		"metadata": r.metadata,
	}, "name", "model_path", "service")
}

func (r *reader) metadata(n *yaml.Node) {
	read := map[string]func(*yaml.Node){}
	for _, name := range strings.Fields("author title version created last_modified description task category " +
		"architecture framework label license min_resource") {
		read[name] = func(*yaml.Node) {} // it describes the model, and changes nothing
	}
	r.fields(n, "metadata", read)
}

func (r *reader) service(n *yaml.Node, s *session.Serving) {
	shell, command := "", (*yaml.Node)(nil)
	r.at["serving"] = n
	r.fields(n, "service", map[string]func(*yaml.Node){
		"pre_start_actions": func(n *yaml.Node) {
			if r.at["serving.preStart"] = n; r.list(n, "pre_start_actions") {
				for _, item := range n.Content {
					r.action(item, s)
				}
			}
		},
		"start_command": func(n *yaml.Node) { command = n },
		"shell":         r.text("shell", &shell),
		"port":          r.number("port", "serving.port", &s.Port),
		"health_check":  func(n *yaml.Node) { r.health(n, &s.Health) },
	}, "port")
	if command != nil {
		r.at["serving.command"] = command
		r.command(command, shell, s)
	}
}

// command reads start_command: a list, or a text that is split, or given to the shell that the file names.
func (r *reader) command(n *yaml.Node, shell string, s *session.Serving) {
	if n.Kind != yaml.ScalarNode {
		r.words("start_command", &s.Command)(n)
		return
	}
	if shell != "" {
		s.Command = []string{shell, "-c", n.Value}
		return
	}
	argv, err := split(n.Value)
	if err != nil {
		r.fault(n, session.KindInvalid, fmt.Sprintf("start_command is started without a shell: %v.", err),
			"Quote it, write a list of arguments, or add shell: /bin/sh beside it.")
		return
	}
	r.require(len(argv) == 0, n, "The program in start_command")
	s.Command = argv
}

func (r *reader) health(n *yaml.Node, h *session.Health) {
	const field = "serving.health."
	enable := true
	r.fields(n, "health_check", map[string]func(*yaml.Node){
		"enable": func(n *yaml.Node) {
			if r.flag("enable", &enable)(n); !enable {
				r.fault(n, session.KindInvalid, "A server without a health check gets no requests.",
					"Remove the line, and write a path that answers.")
			}
		},
		"path": func(n *yaml.Node) {
			r.at[field+"path"] = n
			r.text("path", &h.Path)(n)
		},
		"interval":             r.seconds("interval", field+"interval", &h.Interval),
		"max_retries":          r.number("max_retries", field+"maxRetries", &h.MaxRetries),
		"max_wait_time":        r.seconds("max_wait_time", field+"maxWaitTime", &h.MaxWaitTime),
		"expected_status_code": r.number("expected_status_code", field+"expectedStatusCode", &h.ExpectedStatusCode),
		"initial_delay":        r.seconds("initial_delay", field+"initialDelay", &h.InitialDelay),
	})
}

// action reads one of pre_start_actions.
func (r *reader) action(n *yaml.Node, s *session.Serving) {
	var action session.StartAction
	var args, name *yaml.Node
	r.fields(n, "An action", map[string]func(*yaml.Node){
		"action": func(n *yaml.Node) {
			name = n
			r.text("action", &action.Action)(n)
		},
		"args": func(n *yaml.Node) { args = n },
	}, "action", "args")
	read, required := r.arguments(&action)
	switch {
	case name == nil:
		return
	case read == nil:
		r.fault(name, session.KindInvalid, action.Check().Message, action.Check().Hint)
		return
	case args != nil:
		r.fields(args, "args", read, required...)
	}
	r.at[fmt.Sprintf("serving.preStart[%d]", len(s.PreStart))] = cmp.Or(args, name)
	s.PreStart = append(s.PreStart, action)
}

// arguments returns how the arguments of an action are read, nil if there is no such action, and which it needs.
func (r *reader) arguments(a *session.StartAction) (read map[string]func(*yaml.Node), required []string) {
	ignored := false
	body, mode := r.body(&a.Body), r.text("mode", &a.Mode)
	switch a.Action {
	case session.ActionWrite:
		return map[string]func(*yaml.Node){"filename": r.text("filename", &a.Path), "body": body, "mode": mode,
			"append": r.flag("append", &a.Append)}, []string{"filename", "body"}
	case session.ActionTempFile:
		return map[string]func(*yaml.Node){"body": body, "mode": mode}, []string{"body"}
	case session.ActionMkdir:
		return map[string]func(*yaml.Node){"path": r.text("path", &a.Path)}, []string{"path"}
	case session.ActionRun: // its output is in the log, with echo or without
		return map[string]func(*yaml.Node){"command": r.words("command", &a.Command),
			"echo": r.flag("echo", &ignored)}, []string{"command"}
	case session.ActionLog:
		return map[string]func(*yaml.Node){"message": r.text("message", &a.Message),
			"debug": r.flag("debug", &ignored)}, []string{"message"}
	}
	return nil, nil
}

// body reads the content of a file: a text, or a list of lines.
func (r *reader) body(to *string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind == yaml.ScalarNode {
			*to = n.Value
			return
		}
		var lines []string
		r.words("body", &lines)(n)
		for _, line := range lines {
			*to += strings.TrimSuffix(line, "\n") + "\n"
		}
	}
}

// replace fills in {model_path}.
func (d *Definition) replace() {
	fill := func(texts ...*string) {
		for _, text := range texts {
			*text = strings.ReplaceAll(*text, "{model_path}", d.ModelPath)
		}
	}
	for i := range d.Serving.Command {
		fill(&d.Serving.Command[i])
	}
	for i := range d.Serving.PreStart {
		action := &d.Serving.PreStart[i]
		fill(&action.Path, &action.Body, &action.Message)
		for j := range action.Command {
			fill(&action.Command[j])
		}
	}
}

// judge tells what breaks a rule of a spec, at the line that it comes from.
func (r *reader) judge(s session.Serving) {
	// Whether a device is requested is not known here.
	spec := session.Spec{Type: session.Inference, Image: "any", Access: session.Access{Serving: &s}}
	spec.Accelerator.Devices = 1
	for _, wrong := range spec.Validate(time.Time{}, session.Limits{}) {
		field := wrong.Field
		for r.at[field] == nil && strings.Contains(field, ".") {
			field = field[:strings.LastIndex(field, ".")]
		}
		if at := r.at[field]; at != nil {
			r.fault(at, wrong.Kind, wrong.Message, wrong.Hint)
		}
	}
}
