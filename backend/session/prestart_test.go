package session_test

import (
	"strings"
	"testing"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

func TestActionsBeforeAStartAreChecked(t *testing.T) {
	for _, good := range []session.StartAction{
		{Action: "write_file", Path: "a", Body: "x", Mode: "0755", Append: true},
		{Action: "write_file", Path: "/tmp/empty"},
		{Action: "write_tempfile", Body: "x"}, {Action: "mkdir", Path: "a/b"},
		{Action: "run_command", Command: []string{"true", ""}}, {Action: "log", Message: "x"},
	} {
		if wrong := good.Check(); wrong != nil {
			t.Errorf("%+v: %+v", good, wrong)
		}
	}
	for _, bad := range []session.StartAction{
		{}, {Action: "set_environ"}, {Action: "write_file", Body: "x"}, {Action: "mkdir", Path: "a\x00b"},
		{Action: "mkdir"}, {Action: "mkdir", Path: "a", Mode: "755"}, {Action: "write_file", Path: "a", Mode: "1755"},
		{Action: "write_tempfile", Path: "a"}, {Action: "write_file", Path: "a", Mode: "rwx"},
		{Action: "run_command"}, {Action: "run_command", Command: []string{""}},
		{Action: "run_command", Command: []string{"a\x00"}}, {Action: "log"}, {Action: "log", Message: "a", Path: "b"},
		{Action: "write_file", Path: "a", Body: strings.Repeat("x", 128<<10)},
	} {
		if wrong := bad.Check(); wrong == nil || wrong.Message == "" || wrong.Hint == "" {
			t.Errorf("%.100v: %+v", bad, wrong)
		}
	}
}

func TestAServerAsksForAShareOnlyWithADevice(t *testing.T) {
	spec := session.Spec{Type: session.Inference, Image: "vllm", Access: session.Access{Serving: &session.Serving{
		Port: 8000, Command: []string{"vllm", "--gpu-memory-utilization", session.GPUMemoryShare},
		PreStart: []session.StartAction{{Action: "log", Message: "x"}, {Action: "mkdir"}}}}}
	fields := func() (fields string) {
		for _, wrong := range spec.Validate(time.Now(), session.Limits{}) {
			fields += wrong.Field + " "
		}
		return fields
	}
	if got := fields(); got != "serving.preStart[1] serving.command " {
		t.Errorf("without a device, %q is wrong", got)
	}
	spec.Accelerator = gpu.Request{Memory: 8 * gpu.GiB}
	if got := fields(); got != "serving.preStart[1] " {
		t.Errorf("with a device, %q is wrong", got)
	}
}
