package session

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"slipway/gpu"
)

// Limits is the most that a machine can give to one session. A zero field is
// not known and limits nothing.
type Limits struct {
	CPUs   int
	Memory gpu.Bytes
}

// Bounds of the fields of a [Spec].
const (
	MaxThreads = 1000
	MaxPorts   = 10
	MinPort    = 1024
	MaxPort    = 65535
	MaxEnv     = 1000
	MaxMounts  = 100
	// maxText bounds the startup command, maxValue one variable's value. The
	// kernel takes 128 KiB for one argument or variable.
	maxText  = 128<<10 - 1
	maxValue = 100 << 10
)

// The ports from firstOwnPort to lastOwnPort inside a session belong to the
// services that Slipway starts there.
const (
	firstOwnPort = 7420
	lastOwnPort  = 7439
)

var (
	envRule   = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	agentRule = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?$`)
)

// findings collects what is wrong.
type findings []FieldError

func (f *findings) add(field string, kind Kind, message, hint string) {
	*f = append(*f, FieldError{Field: field, Kind: kind, Message: message, Hint: hint})
}

// refuse is add where something is wrong.
func (f *findings) refuse(wrong bool, field string, kind Kind, message, hint string) {
	if wrong {
		f.add(field, kind, message, hint)
	}
}

func (f *findings) say(field string, kind Kind, said Phrase) {
	*f = append(*f, Fault(field, kind, said))
}

// append adds a finding, if it is one.
func (f *findings) append(e *FieldError) {
	if e != nil {
		*f = append(*f, *e)
	}
}

// Invalid is the failure of a request in which fields are wrong. It says what is
// wrong with the first, and how many there are.
func Invalid(wrong []FieldError) error {
	message := wrong[0].Message
	if len(wrong) > 1 {
		message = fmt.Sprintf("%d fields are wrong. %s", len(wrong), message)
	}
	e := &Error{Code: CodeInvalid, Message: message, Hint: wrong[0].Hint, Fields: wrong}
	if len(wrong) == 1 {
		e.Said = wrong[0].Said
	}
	return e
}

// Validate returns everything that is wrong with s at the time now on a machine
// with the given limits, in the order of the launcher's fields; nil means that
// it can be launched. Zero fields count as their defaults. Whether a name is
// taken, an image exists or a source is a directory is not its business: only
// an agent knows.
func (s Spec) Validate(now time.Time, limits Limits) []FieldError {
	var f findings
	f.refuse(s.Type != "" && s.Type != Interactive && s.Type != Batch, "type", KindInvalid,
		fmt.Sprintf("%q is not a type of session.", Clip(string(s.Type))), "Choose interactive or batch.")
	if s.Name != "" {
		f.append(SessionNames.Check(s.Name))
	}
	s.validateBatch(&f, now)
	s.validateImage(&f)
	s.validateEnv(&f)
	s.validateResources(&f, limits)
	s.validateMounts(&f)
	s.validatePorts(&f)
	s.validateQueue(&f)
	f.refuse(s.Agent != "" && (len(s.Agent) > 64 || !agentRule.MatchString(s.Agent)), "agent", KindInvalid,
		fmt.Sprintf("%q is not the name of an agent.", Clip(s.Agent)), "Leave it empty to let Slipway choose.")
	return f
}

func (s Spec) validateBatch(f *findings, now time.Time) {
	if s.Type != Batch {
		const hint = "Choose the type batch, or leave it empty."
		f.refuse(s.Command != "", "command", KindConflict, "Only a batch session has a startup command.", hint)
		f.refuse(s.NotBefore != nil, "notBefore", KindConflict, "Only a batch session has a start time.", hint)
		f.refuse(s.Timeout != 0, "timeout", KindConflict, "Only a batch session has a timeout.", hint)
		return
	}
	switch {
	case strings.TrimSpace(s.Command) == "":
		f.say("command", KindRequired, Say("commandRequired"))
	case len(s.Command) > maxText:
		f.add("command", KindInvalid, fmt.Sprintf("The startup command is %s long; 128 KiB is the most.",
			gpu.Bytes(len(s.Command))), "Put it into a script in a mounted folder.")
	case strings.ContainsRune(s.Command, 0):
		f.add("command", KindInvalid, "The startup command contains a NUL character.", "Remove it.")
	}
	switch {
	case s.NotBefore == nil:
	case !s.NotBefore.After(now):
		f.say("notBefore", KindInvalid, Say("startPast"))
	case s.NotBefore.After(now.Add(maxDuration)):
		f.add("notBefore", KindInvalid, "The start time is more than 520 weeks away.", "Choose an earlier time.")
	}
	f.refuse(s.Timeout != 0 && !plausible(s.Timeout, Duration(time.Second)), "timeout", KindInvalid,
		"The timeout is not between 1 s and 520 w.",
		"Write a whole number with s, m, h, d or w, for example 30m, or leave it empty.")
}

func (s Spec) validateEnv(f *findings) {
	if len(s.Env) > MaxEnv {
		f.add("env", KindInvalid, fmt.Sprintf("There are %d variables; %d is the most.", len(s.Env), MaxEnv),
			"Put them into a file in a mounted folder.")
		return
	}
	seen := make(map[string]bool, len(s.Env))
	for i, v := range s.Env {
		field := fmt.Sprintf("env[%d]", i)
		switch {
		case !envRule.MatchString(v.Name):
			f.say(field+".name", KindInvalid, Say("envName"))
		case strings.HasPrefix(strings.ToUpper(v.Name), "SLIPWAY_"):
			f.say(field+".name", KindReserved, Say("envReserved"))
		case seen[v.Name]:
			f.say(field+".name", KindDuplicate, Say("envDuplicate", Fill("name", Clip(v.Name))))
		}
		seen[v.Name] = true
		switch {
		case len(v.Value) > maxValue:
			f.add(field+".value", KindInvalid, fmt.Sprintf("The value of %s is %s long; 100 KiB is the most.",
				Clip(v.Name), gpu.Bytes(len(v.Value))), "Put it into a file in a mounted folder.")
		case strings.ContainsRune(v.Value, 0):
			f.add(field+".value", KindInvalid, fmt.Sprintf("The value of %s contains a NUL character.",
				Clip(v.Name)), "Remove it.")
		}
	}
}

func (s Spec) validateResources(f *findings, limits Limits) {
	r := s.WithDefaults().Resources
	switch {
	case r.CPU < 1:
		f.add("resources.cpu", KindRange, fmt.Sprintf("%d is not a number of CPUs.", r.CPU),
			"Ask for 1 CPU or more.")
	case limits.CPUs > 0 && r.CPU > limits.CPUs:
		f.say("resources.cpu", KindRange, Phrase{Say: "cpuMax", Count: limits.CPUs})
	}
	switch {
	case r.Memory < MinMemory:
		f.say("resources.memory", KindRange, Say("memoryMin", Fill("amount", MinMemory.String())))
	case limits.Memory > 0 && r.Memory > limits.Memory:
		f.say("resources.memory", KindRange, Say("memoryMax", Fill("amount", limits.Memory.String())))
	}
	switch {
	case r.Shm < 0:
		f.add("resources.shm", KindRange, "Shared memory cannot be negative.",
			"Leave it empty for an automatic amount.")
	case s.Resources.Shm > 0 && r.Shm >= r.Memory:
		f.say("resources.shm", KindRange, Say("shmMax", Fill("amount", r.Memory.String())))
	}
	f.refuse(s.Threads < 0 || s.Threads > MaxThreads, "threads", KindRange,
		fmt.Sprintf("%d is not between 1 and %d threads.", s.Threads, MaxThreads),
		"Leave it at 0 for as many threads as CPUs.")
}

func (s Spec) validatePorts(f *findings) {
	if len(s.Ports) > MaxPorts {
		f.say("ports", KindTooMany, Phrase{Say: "portCount", Count: MaxPorts})
		return
	}
	seen := make(map[int]bool, len(s.Ports))
	for i, port := range s.Ports {
		field := fmt.Sprintf("ports[%d]", i)
		switch {
		case port < MinPort || port > MaxPort:
			f.say(field, KindRange, Say("portRange", number("port", port), number("from", MinPort),
				number("to", MaxPort)))
		case ReservedPort(port):
			f.say(field, KindReserved, Say("portReserved", number("port", port), number("from", firstOwnPort),
				number("to", lastOwnPort)))
		case seen[port]:
			f.say(field, KindDuplicate, Say("portDuplicate", number("port", port)))
		}
		seen[port] = true
	}
}

// ReservedPort reports whether a port inside sessions belongs to the services
// that Slipway starts there.
func ReservedPort(port int) bool { return port >= firstOwnPort && port <= lastOwnPort }

func number(hole string, n int) Phrase { return Fill(hole, strconv.Itoa(n)) }

// Clip shortens text that a message repeats.
func Clip(text string) string {
	const most = 80
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most]) + "…"
}
