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

// The codes of a [FieldError]. The error that carries them is
// session_create_invalid.
const (
	CodeInvalid = Code("session_create_invalid")

	CodeInvalidType    = Code("session_create_invalid-type")       // type is neither interactive nor batch
	CodeInvalidName    = Code("session_create_invalid-name")       // name breaks the rule for names
	CodeNameTaken      = Code("session_create_already-exists")     // a live session of the owner has that name
	CodeMissingCommand = Code("session_create_missing-command")    // batch without a startup command
	CodeInvalidCommand = Code("session_create_invalid-command")    // startup command too long or with a NUL
	CodeBatchOnly      = Code("session_create_batch-only")         // field that only a batch session has
	CodeInvalidStart   = Code("session_create_invalid-start-time") // start time not in the future
	// timeout below one second or beyond ten years
	CodeInvalidTimeout  = Code("session_create_invalid-timeout")
	CodeMissingImage    = Code("session_create_missing-image")       // no image
	CodeInvalidImage    = Code("session_create_invalid-image")       // not an image reference
	CodeInvalidEnvName  = Code("session_create_invalid-env-name")    // not a name of a variable
	CodeReservedEnv     = Code("session_create_reserved-env")        // SLIPWAY_*
	CodeDuplicateEnv    = Code("session_create_duplicate-env")       // the same variable twice
	CodeInvalidEnvValue = Code("session_create_invalid-env-value")   // value too long or with a NUL
	CodeInvalidCPU      = Code("session_create_invalid-cpu")         // CPUs below one
	CodeTooManyCPUs     = Code("session_create_cpu-over-machine")    // more CPUs than the machine has
	CodeInvalidMemory   = Code("session_create_invalid-memory")      // memory below the minimum
	CodeTooMuchMemory   = Code("session_create_memory-over-machine") // more memory than the machine has
	CodeInvalidShm      = Code("session_create_invalid-shm")         // shared memory negative or not below memory
	CodeInvalidThreads  = Code("session_create_invalid-threads")     // threads outside 0..1000
	// named by the id of an image that is not there; found by an agent
	CodeNoImage         = Code("session_create_no-image")
	CodeForbiddenSource = Code("session_create_forbidden-source")     // a directory that may not be mounted
	CodeInvalidSource   = Code("session_create_invalid-mount-source") // source not an absolute path of a directory
	// no folder of that name, or it is in the trash
	CodeNoFolder          = Code("session_create_no-folder")
	CodeInvalidTarget     = Code("session_create_invalid-mount-target")   // target not usable as a path
	CodeReservedTarget    = Code("session_create_reserved-mount-target")  // target belongs to the system or to Slipway
	CodeDuplicateTarget   = Code("session_create_duplicate-mount-target") // two mounts on one target
	CodeOverlappingTarget = Code("session_create_nested-mount-target")    // a mount inside another
	CodeInvalidPort       = Code("session_create_invalid-port")           // port outside 1024..65535
	CodeReservedPort      = Code("session_create_reserved-port")          // port that Slipway uses
	CodeDuplicatePort     = Code("session_create_duplicate-port")         // the same port twice
	CodeTooManyPorts      = Code("session_create_too-many-ports")         // more than ten ports
	CodeInvalidAgent      = Code("session_create_invalid-agent")          // not a name of an agent
)

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

func (f *findings) add(field string, code Code, message, hint string) {
	*f = append(*f, FieldError{Field: field, Code: code, Message: message, Hint: hint})
}

func (f *findings) say(field string, code Code, said Phrase) {
	*f = append(*f, Fault(field, code, said))
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
	switch s.Type {
	case "", Interactive, Batch:
	default:
		f.add("type", CodeInvalidType, fmt.Sprintf("%q is not a type of session.", clip(string(s.Type))),
			"Choose interactive or batch.")
	}
	if s.Name != "" {
		if e := ValidateName(s.Name); e != nil {
			f = append(f, *e)
		}
	}
	s.validateBatch(&f, now)
	s.validateImage(&f)
	s.validateEnv(&f)
	s.validateResources(&f, limits)
	s.validateMounts(&f)
	s.validatePorts(&f)
	s.validateQueue(&f)
	if s.Agent != "" && (len(s.Agent) > 64 || !agentRule.MatchString(s.Agent)) {
		f.add("agent", CodeInvalidAgent, fmt.Sprintf("%q is not the name of an agent.", clip(s.Agent)),
			"Leave it empty to let Slipway choose.")
	}
	return f
}

func (s Spec) validateBatch(f *findings, now time.Time) {
	if s.Type != Batch {
		const hint = "Choose the type batch, or leave it empty."
		if s.Command != "" {
			f.add("command", CodeBatchOnly, "Only a batch session has a startup command.", hint)
		}
		if s.NotBefore != nil {
			f.add("notBefore", CodeBatchOnly, "Only a batch session has a start time.", hint)
		}
		if s.Timeout != 0 {
			f.add("timeout", CodeBatchOnly, "Only a batch session has a timeout.", hint)
		}
		return
	}
	switch {
	case strings.TrimSpace(s.Command) == "":
		f.say("command", CodeMissingCommand, Say("commandRequired"))
	case len(s.Command) > maxText:
		f.add("command", CodeInvalidCommand, fmt.Sprintf("The startup command is %s long; 128 KiB is the most.",
			gpu.Bytes(len(s.Command))), "Put it into a script in a mounted folder.")
	case strings.ContainsRune(s.Command, 0):
		f.add("command", CodeInvalidCommand, "The startup command contains a NUL character.", "Remove it.")
	}
	switch {
	case s.NotBefore == nil:
	case !s.NotBefore.After(now):
		f.say("notBefore", CodeInvalidStart, Say("startPast"))
	case s.NotBefore.After(now.Add(maxDuration)):
		f.add("notBefore", CodeInvalidStart, "The start time is more than 520 weeks away.", "Choose an earlier time.")
	}
	if s.Timeout < 0 || (s.Timeout > 0 && time.Duration(s.Timeout) < time.Second) ||
		time.Duration(s.Timeout) > maxDuration {
		f.add("timeout", CodeInvalidTimeout, "The timeout is not between 1 s and 520 w.",
			"Write a whole number with s, m, h, d or w, for example 30m, or leave it empty.")
	}
}

func (s Spec) validateEnv(f *findings) {
	if len(s.Env) > MaxEnv {
		f.add("env", CodeInvalidEnvName, fmt.Sprintf("There are %d variables; %d is the most.", len(s.Env), MaxEnv),
			"Put them into a file in a mounted folder.")
		return
	}
	seen := make(map[string]bool, len(s.Env))
	for i, v := range s.Env {
		field := fmt.Sprintf("env[%d]", i)
		switch {
		case !envRule.MatchString(v.Name):
			f.say(field+".name", CodeInvalidEnvName, Say("envName"))
		case strings.HasPrefix(strings.ToUpper(v.Name), "SLIPWAY_"):
			f.say(field+".name", CodeReservedEnv, Say("envReserved"))
		case seen[v.Name]:
			f.say(field+".name", CodeDuplicateEnv, Say("envDuplicate", Fill("name", clip(v.Name))))
		}
		seen[v.Name] = true
		switch {
		case len(v.Value) > maxValue:
			f.add(field+".value", CodeInvalidEnvValue, fmt.Sprintf("The value of %s is %s long; 100 KiB is the most.",
				clip(v.Name), gpu.Bytes(len(v.Value))), "Put it into a file in a mounted folder.")
		case strings.ContainsRune(v.Value, 0):
			f.add(field+".value", CodeInvalidEnvValue, fmt.Sprintf("The value of %s contains a NUL character.",
				clip(v.Name)), "Remove it.")
		}
	}
}

func (s Spec) validateResources(f *findings, limits Limits) {
	r := s.WithDefaults().Resources
	switch {
	case r.CPU < 1:
		f.add("resources.cpu", CodeInvalidCPU, fmt.Sprintf("%d is not a number of CPUs.", r.CPU),
			"Ask for 1 CPU or more.")
	case limits.CPUs > 0 && r.CPU > limits.CPUs:
		f.say("resources.cpu", CodeTooManyCPUs, Phrase{Say: "cpuMax", Count: limits.CPUs})
	}
	switch {
	case r.Memory < MinMemory:
		f.say("resources.memory", CodeInvalidMemory, Say("memoryMin", Fill("amount", MinMemory.String())))
	case limits.Memory > 0 && r.Memory > limits.Memory:
		f.say("resources.memory", CodeTooMuchMemory, Say("memoryMax", Fill("amount", limits.Memory.String())))
	}
	switch {
	case r.Shm < 0:
		f.add("resources.shm", CodeInvalidShm, "Shared memory cannot be negative.",
			"Leave it empty for an automatic amount.")
	case s.Resources.Shm > 0 && r.Shm >= r.Memory:
		f.say("resources.shm", CodeInvalidShm, Say("shmMax", Fill("amount", r.Memory.String())))
	}
	if s.Threads < 0 || s.Threads > MaxThreads {
		f.add("threads", CodeInvalidThreads, fmt.Sprintf("%d is not between 1 and %d threads.", s.Threads, MaxThreads),
			"Leave it at 0 for as many threads as CPUs.")
	}
}

func (s Spec) validatePorts(f *findings) {
	if len(s.Ports) > MaxPorts {
		f.say("ports", CodeTooManyPorts, Phrase{Say: "portCount", Count: MaxPorts})
		return
	}
	seen := make(map[int]bool, len(s.Ports))
	for i, port := range s.Ports {
		field := fmt.Sprintf("ports[%d]", i)
		switch {
		case port < MinPort || port > MaxPort:
			f.say(field, CodeInvalidPort, Say("portRange", number("port", port), number("from", MinPort),
				number("to", MaxPort)))
		case ReservedPort(port):
			f.say(field, CodeReservedPort, Say("portReserved", number("port", port), number("from", firstOwnPort),
				number("to", lastOwnPort)))
		case seen[port]:
			f.say(field, CodeDuplicatePort, Say("portDuplicate", number("port", port)))
		}
		seen[port] = true
	}
}

// ReservedPort reports whether a port inside sessions belongs to the services
// that Slipway starts there.
func ReservedPort(port int) bool { return port >= firstOwnPort && port <= lastOwnPort }

func number(hole string, n int) Phrase { return Fill(hole, strconv.Itoa(n)) }

// clip shortens text that a message repeats.
func clip(text string) string {
	const most = 80
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most]) + "…"
}
