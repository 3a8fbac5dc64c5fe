package runtimes_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"slipway/backend/runtimes"
	"slipway/backend/session"
)

const whole = `# how the model is served
models:
  - name: tiny-chat
    model_path: /models/tiny
    service:
      pre_start_actions:
        - action: mkdir
          args: {path: /tmp/cache}
        - action: write_file
          args:
            filename: /tmp/cache/config
            body: ["model={model_path}", "end"]
            mode: 0600
            append: true
        - action: write_tempfile
          args: {body: "print(1)"}
        - action: run_command
          args: {command: [pip, install, --quiet, tiktoken, 8], echo: true}
        - action: log
          args: {message: "loading {model_path}", debug: False}
      start_command: >-
        vllm serve "{model_path}" --served-model-name 'tiny chat'
        --port 8000 --opts a\ b
      port: 8000
      health_check:
        enable: true
        path: /up
        interval: 5.0
        max_retries: 3
        max_wait_time: 20
        expected_status_code: 204
        initial_delay: 1800
    metadata:
      title: Tiny
      framework: [vllm]
      min_resource: {cpu: 1}
`

func TestAWholeDefinition(t *testing.T) {
	d, wrong := runtimes.ParseDefinition("chat/model-definition.yaml", []byte(whole))
	if len(wrong) > 0 {
		t.Fatalf("%+v", wrong)
	}
	want := runtimes.Definition{File: "chat/model-definition.yaml", ModelPath: "/models/tiny",
		Serving: session.Serving{
			Command: []string{"vllm", "serve", "/models/tiny", "--served-model-name", "tiny chat", "--port", "8000",
				"--opts", "a b"},
			PreStart: []session.StartAction{
				{Action: "mkdir", Path: "/tmp/cache"},
				{Action: "write_file", Path: "/tmp/cache/config", Body: "model=/models/tiny\nend\n", Mode: "0600",
					Append: true},
				{Action: "write_tempfile", Body: "print(1)"},
				{Action: "run_command", Command: []string{"pip", "install", "--quiet", "tiktoken", "8"}},
				{Action: "log", Message: "loading /models/tiny"},
			},
			Port: 8000, Models: []string{"tiny-chat"},
			Health: session.Health{Path: "/up", Interval: session.Duration(5 * time.Second), MaxRetries: 3,
				MaxWaitTime: session.Duration(20 * time.Second), ExpectedStatusCode: 204,
				InitialDelay: session.Duration(30 * time.Minute)},
		}}
	if !reflect.DeepEqual(d, want) {
		t.Errorf("got  %+v\nwant %+v", d, want)
	}
}

// short is a small definition, in which a test replaces or adds lines.
const short = `models:
  - name: tiny
    model_path: /models
    service:
      start_command: [serve, "{model_path}"]
      port: 8080
`

func TestCommands(t *testing.T) {
	for text, want := range map[string][]string{
		`start_command: [serve, --port, 8080]`:                    {"serve", "--port", "8080"},
		`start_command: serve --x '$HOME' "a\"b" c\$d e#f`:        {"serve", "--x", "$HOME", `a"b`, "c$d", "e#f"},
		"start_command: |\n        serve \\\n          --all":     {"serve", "--all"},
		"start_command: serve $X | tee log\n      shell: /bin/sh": {"/bin/sh", "-c", "serve $X | tee log"},
		"start_command: [serve]\n      shell: /bin/sh":            {"serve"},
		"start_command: ''''":                                     nil,
	} {
		d, wrong := runtimes.ParseDefinition("m.yaml", []byte(strings.Replace(short,
			`start_command: [serve, "{model_path}"]`, text, 1)))
		if want == nil && len(wrong) == 1 {
			continue
		}
		if len(wrong) > 0 || !reflect.DeepEqual(d.Serving.Command, want) {
			t.Errorf("%s: %q %+v", text, d.Serving.Command, wrong)
		}
	}
	without := strings.Replace(short, "      start_command: [serve, \"{model_path}\"]\n", "", 1)
	d, wrong := runtimes.ParseDefinition("m.yaml", []byte(without))
	if len(wrong) > 0 || d.Serving.Command != nil {
		t.Errorf("without a command: %+v %+v", d, wrong)
	}
}

// before is a line of short with the beginning of the first action after it.
const before = "port: 8080\n      pre_start_actions:\n        - action: "

func TestEveryFaultHasItsLine(t *testing.T) {
	for name, c := range map[string]struct {
		from, to string // of short
		want     string
	}{
		"an unknown field": {"port: 8080", "port: 8080\n      prot: 1",
			`7 unknown "prot" is not a field here. Did you mean port?`},
		"no port":          {"      port: 8080\n", "", "5 required port is missing."},
		"an empty port":    {"port: 8080", "port:", "5 required port is missing."},
		"a port in quotes": {"port: 8080", `port: "8080"`, "6 invalid port is not a whole number from 1."},
		"a reserved port":  {"port: 8080", "port: 7421", "6 out-of-range A server cannot listen on port 7421."},
		"twice":            {"port: 8080", "port: 8080\n      port: 8081", "7 duplicate port is there twice."},
		"a relative path": {"/models", "models",
			"3 invalid model_path is \"models\", which does not begin with a slash."},
		"a bad name": {"name: tiny", "name: tiny model",
			`2 invalid "tiny model" is not the name of a model, or is there twice.`},
		"a pipe": {`start_command: [serve, "{model_path}"]`, "start_command: serve | tee log",
			"5 invalid start_command is started without a shell: it has |, which only a shell understands."},
		"a variable": {`start_command: [serve, "{model_path}"]`, `start_command: serve "$HOME"`,
			"5 invalid start_command is started without a shell: it has $, which only a shell understands."},
		"an assignment": {`start_command: [serve, "{model_path}"]`, "start_command: A=1 serve",
			"5 invalid start_command is started without a shell: it sets a variable before the program"},
		"lines": {`start_command: [serve, "{model_path}"]`, "start_command: |\n        cd /x\n        serve",
			"5 invalid start_command is started without a shell: it has several lines"},
		"an open quote": {`start_command: [serve, "{model_path}"]`, "start_command: serve 'x",
			"5 invalid start_command is started without a shell: it has a quote that is not closed."},
		"an action that Backend.AI lacks": {"port: 8080", before + "set_environ\n          args: {A: b}",
			`8 invalid "set_environ" is not an action. The actions are write_file, write_tempfile, mkdir, `},
		"an action without arguments": {"port: 8080", before + "mkdir",
			"8 required args is missing."},
		"an unknown argument": {"port: 8080", before + "mkdir\n          args: {path: a, mode: 7}",
			`9 unknown "mode" is not a field here.`},
		"bad permissions": {"port: 8080", before + "write_file\n          args: {filename: a, body: b, mode: rwx}",
			`9 invalid "rwx" are not the permissions of a file.`},
		"a command that is a text": {"port: 8080",
			before + "run_command\n          args:\n            command: pip install x",
			"10 invalid command is not a list."},
		"half a second": {"port: 8080", "port: 8080\n      health_check:\n        interval: 0.5",
			"8 invalid interval is not a whole number from 1."},
		"a bad status": {"port: 8080", "port: 8080\n      health_check:\n        expected_status_code: 99",
			"8 out-of-range 99 is not an HTTP status."},
		"no check": {"port: 8080", "port: 8080\n      health_check:\n        enable: false",
			"8 invalid A server without a health check gets no requests."},
		"two models": {"models:", "models:\n  - name: other",
			"3 too-many A service serves one model, and the file has more."},
		"an alias": {"port: 8080", "port: &p 8080", "6 invalid port uses an anchor or an alias."},
		"no YAML":  {"port: 8080", "port: [", "6 invalid This is invalid YAML: "},
		"a second document": {"port: 8080", "port: 8080\n---\na: b",
			" invalid The file cannot be read: it holds more than one document."},
		"unknown metadata": {"    service:", "    metadata: {titel: x}\n    service:",
			`4 unknown "titel" is not a field here. Did you mean title?`},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(short, c.from, c.to, 1)
			_, wrong := runtimes.ParseDefinition("model-definition.yaml", []byte(text))
			if len(wrong) != 1 {
				t.Fatalf("%d faults of\n%s\n%+v", len(wrong), text, wrong)
			}
			_, line, _ := strings.Cut(wrong[0].Field, ":")
			got := fmt.Sprintf("%s %s %s %s", line, wrong[0].Kind, wrong[0].Message, wrong[0].Hint)
			if !strings.HasPrefix(got, c.want) || wrong[0].Hint == "" ||
				!strings.HasPrefix(wrong[0].Field, "model-definition.yaml") {
				t.Errorf("got  %s: %s\nwant %s", wrong[0].Field, got, c.want)
			}
		})
	}
}

func TestFaultsAreToldInTheOrderOfTheirLines(t *testing.T) {
	_, wrong := runtimes.ParseDefinition("model-definition.yml", []byte("models:\n  - name: [a]\n    service:\n"+
		"      start_command: a | b\n      port: x\n      helth_check: {}\nother: 1\n"))
	var lines []string
	for _, w := range wrong {
		lines = append(lines, strings.TrimPrefix(w.Field, "model-definition.yml:"))
	}
	if got := strings.Join(lines, " "); got != "2 2 4 5 6 7" {
		t.Errorf("the lines are %s: %+v", got, wrong)
	}
	many := "models:\n" + strings.Repeat("x: 1\n", 1000)
	if _, wrong := runtimes.ParseDefinition("m.yaml", []byte(many)); len(wrong) != 50 {
		t.Errorf("%d faults", len(wrong))
	}
	large := strings.Repeat("#", runtimes.MaxDefinition+1)
	if _, wrong := runtimes.ParseDefinition("m.yaml", []byte(large)); len(wrong) != 1 || wrong[0].Field != "m.yaml" {
		t.Errorf("%+v", wrong)
	}
}

func FuzzDefinition(f *testing.F) {
	for _, seed := range []string{whole, short, "", "models:", "models: [a]", "- a", "a: *b", "models: &a [*a]",
		"models: [{service: {start_command: \"a\\\\\"}}]", "? [a]\n: b", "models: [{<<: {name: a}}]"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, wrong := runtimes.ParseDefinition("model-definition.yaml", data)
		for _, w := range wrong {
			if w.Message == "" || w.Hint == "" || !strings.HasPrefix(w.Field, "model-definition.yaml") {
				t.Errorf("%+v", w)
			}
		}
		if len(wrong) > 0 {
			return
		}
		spec := session.Spec{Type: session.Inference, Image: "any", Access: session.Access{Serving: &d.Serving}}
		spec.Accelerator.Devices = 1
		if wrong := spec.Validate(time.Time{}, session.Limits{}); len(wrong) > 0 {
			t.Errorf("%+v is read, and is wrong: %+v", d, wrong)
		}
	})
}
