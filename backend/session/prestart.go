package session

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// GPUMemoryShare stands, in the command of a server, for the part of a device's memory that the server should
// allocate. The agent replaces it when devices are allocated, by what SLIPWAY_GPU_FRACTION has.
const GPUMemoryShare = "{gpu-memory-share}"

// StartAction is done in the container before its server starts, as the person and without a shell. What it does and
// which of its fields count depends on Action. A path that is relative begins at the home.
type StartAction struct {
	Action  string   `json:"action"`            // write_file, write_tempfile, mkdir, run_command or log
	Path    string   `json:"path,omitempty"`    // of write_file and mkdir
	Body    string   `json:"body,omitempty"`    // of write_file and write_tempfile
	Mode    string   `json:"mode,omitempty"`    // permissions of the file, in octal; empty: 644
	Append  bool     `json:"append,omitempty"`  // write_file adds to a file that exists
	Command []string `json:"command,omitempty"` // of run_command
	Message string   `json:"message,omitempty"` // of log
}

// The actions, by their names in a model-definition.yaml. A file of write_tempfile is in /tmp, under a new name that
// is written to the log.
const (
	ActionWrite    = "write_file"
	ActionTempFile = "write_tempfile"
	ActionMkdir    = "mkdir"
	ActionRun      = "run_command"
	ActionLog      = "log"
)

// StartActions are the names of all actions.
var StartActions = []string{ActionWrite, ActionTempFile, ActionMkdir, ActionRun, ActionLog}

// MaxStartActions is the most actions of a server.
const MaxStartActions = 64

// FileMode returns the permissions of the file that an action writes, and whether they are valid.
func (a StartAction) FileMode() (uint32, bool) {
	mode, err := strconv.ParseUint(cmp.Or(a.Mode, "644"), 8, 32)
	return uint32(mode), err == nil && mode <= 0o777
}

// Check returns what is wrong with an action; nil if nothing is. Where it is has to be added.
func (a StartAction) Check() *FieldError {
	_, mode := a.FileMode()
	size := len(a.Path) + len(a.Body) + len(a.Message)
	for _, argument := range a.Command {
		size += len(argument) + 1
	}
	files := a.Action == ActionWrite || a.Action == ActionTempFile
	paths := a.Action == ActionWrite || a.Action == ActionMkdir
	var f findings
	f.refuse(!slices.Contains(StartActions, a.Action), "", KindInvalid,
		fmt.Sprintf("%q is not an action.", Clip(a.Action)), "The actions are "+strings.Join(StartActions, ", ")+".")
	f.refuse(paths == (a.Path == "") || len(a.Path) > longestPath || !IsPrintable(a.Path), "", KindInvalid,
		"write_file and mkdir need a path of at most 4096 printable characters, and no other action has one.",
		"Write for example /tmp/config.json.")
	f.refuse(!mode || !files && (a.Mode != "" || a.Body != "" || a.Append), "", KindInvalid,
		fmt.Sprintf("%q are not the permissions of a file.", Clip(a.Mode)),
		"Write for example \"755\", or leave it out.")
	f.refuse((a.Action == ActionRun) != (len(a.Command) > 0 && a.Command[0] != "") || len(a.Command) > MaxArguments ||
		strings.ContainsRune(strings.Join(a.Command, ""), 0), "", KindInvalid,
		"run_command needs a command, which is a list of a program and its arguments.",
		`Write for example ["pip", "install", "tiktoken"].`)
	f.refuse((a.Action == ActionLog) != (a.Message != "") || len(a.Message) > longestPath || !IsPrintable(a.Message),
		"", KindInvalid, "log needs a message of one line, of at most 4096 characters, and no other action has one.",
		"Write for example Loading the model.")
	f.refuse(size > maxText, "", KindTooMany, "The action is longer than 128 KiB.",
		"Put what it writes or runs into a file in the mounted folder.")
	if len(f) == 0 {
		return nil
	}
	return &f[0]
}

// validateStart checks the actions of a server and what its command asks for.
func (s Serving) validateStart(f *findings, spec Spec) {
	f.refuse(len(s.PreStart) > MaxStartActions, "serving.preStart", KindTooMany,
		fmt.Sprintf("There are %d actions before the start; the maximum is %d.", len(s.PreStart), MaxStartActions),
		"Put them into a script, and run that.")
	for i, action := range s.PreStart {
		if wrong := action.Check(); wrong != nil {
			wrong.Field = fmt.Sprintf("serving.preStart[%d]", i)
			f.append(wrong)
		}
	}
	f.refuse(spec.Accelerator.IsZero() && slices.ContainsFunc(s.Command, func(word string) bool {
		return strings.Contains(word, GPUMemoryShare)
	}), "serving.command", KindConflict,
		"The command has "+GPUMemoryShare+", but no GPU is requested.", "Request a GPU, or remove it.")
}
