package session

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"slipway/gpu"
)

// Limits is the most that a machine can allocate to one session. A zero field is unknown and limits nothing.
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
	// maxText bounds the startup command and the setup, maxVariable and maxValue one variable. The kernel takes 128 KiB
	// for one argument or variable.
	maxText     = 128<<10 - 1
	maxValue    = 100 << 10
	maxVariable = 256
)

// The ports from firstOwnPort to lastOwnPort inside a session belong to the services that Slipway starts there.
const (
	firstOwnPort = 7420
	lastOwnPort  = 7439
)

var (
	envRule   = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	agentRule = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?$`)
)

type findings []FieldError

func (f *findings) add(field string, kind Kind, message, hint string) {
	*f = append(*f, FieldError{Field: field, Kind: kind, Message: message, Hint: hint})
}

func (f *findings) refuse(wrong bool, field string, kind Kind, message, hint string) {
	if wrong {
		f.add(field, kind, message, hint)
	}
}

func (f *findings) say(field string, kind Kind, said Phrase) {
	*f = append(*f, Fault(field, kind, said))
}

func (f *findings) append(e *FieldError) {
	if e != nil {
		*f = append(*f, *e)
	}
}

// Invalid is the error of a request with wrong fields. It has the message of the first, and how many there are.
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

// Validate returns everything that is wrong with s at the time now on a machine with the given limits, in the order of
// the launcher's fields. Zero fields count as their defaults. Whether a name is free, an image exists or a source is a
// directory is left to the agent.
func (s Spec) Validate(now time.Time, limits Limits) []FieldError {
	var f findings
	f.refuse(s.Type != "" && !slices.Contains([]Type{Interactive, Batch, System, Inference}, s.Type), "type",
		KindInvalid, fmt.Sprintf("%q is not a type of session.", Clip(string(s.Type))),
		"Choose interactive, batch, inference or system.")
	if s.Name != "" {
		f.append(SessionNames.Check(s.Name))
	}
	s.validateBatch(&f, now)
	s.validateSetup(&f)
	s.validateSystem(&f)
	s.validateServing(&f)
	s.validateImage(&f)
	s.validateEnv(&f)
	s.validateResources(&f, limits)
	s.validateMounts(&f)
	s.validateAdmin(&f)
	s.validatePorts(&f)
	s.validateQueue(&f)
	s.validateSlurm(&f)
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
		f.add("command", KindInvalid, fmt.Sprintf("The startup command is %s long; the maximum is 128 KiB.",
			gpu.Bytes(len(s.Command))), "Put it in a script in a mounted folder.")
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

func (s Spec) validateSetup(f *findings) {
	f.refuse(s.Setup != "" && (s.Type == System || s.Type == Inference), "setup", KindConflict,
		"Only an interactive or batch session has a setup.", "Leave it empty.")
	f.refuse(len(s.Setup) > maxText, "setup", KindInvalid,
		fmt.Sprintf("The setup is %s long; the maximum is 128 KiB.", gpu.Bytes(len(s.Setup))),
		"Put it in a script in a mounted folder.")
	f.refuse(strings.ContainsRune(s.Setup, 0), "setup", KindInvalid, "The setup contains a NUL character.",
		"Remove it.")
}

// validateSystem keeps everything from a system session but the folder that it serves.
func (s Spec) validateSystem(f *findings) {
	if s.Type != System {
		return
	}
	const hint = "Leave it empty, or choose the type interactive."
	one := len(s.Mounts) == 1 && s.Mounts[0].Folder != ""
	f.refuse(!one, "mounts", KindInvalid, "A system session serves one folder.", "Mount one folder and nothing else.")
	f.refuse(s.Image != "" && !IsEmptyImage(s.Image), "image", KindConflict, "A system session has no image.", hint)
	f.refuse(!s.Accelerator.IsZero(), "accelerator", KindConflict, "A system session has no devices.", hint)
	f.refuse(s.Cluster > 1, "cluster", KindConflict, "A system session has one kernel.", hint)
	f.refuse(s.Admin, "admin", KindConflict, "A system session has no administrator.", hint)
	f.refuse(s.NoSSH, "noSSH", KindConflict, "A system session is reached by ssh only.", "Leave it out.")
	f.refuse(len(s.Ports) > 0, "ports", KindConflict, "A system session opens no ports.", hint)
	f.refuse(s.CommitOnEnd > 0, "commitOnEnd", KindConflict, "No image is made of a system session.", hint)
}

func (s Spec) validateEnv(f *findings) {
	if all := len(s.Env) + len(s.Secrets); all > MaxEnv {
		f.add("env", KindInvalid, fmt.Sprintf("There are %d variables; the maximum is %d.", all, MaxEnv),
			"Put them in a file in a mounted folder.")
		return
	}
	seen := make(map[string]bool, len(s.Env)+len(s.Secrets))
	check := func(field, name string) {
		wrong := CheckVariable(field, name)
		if wrong == nil && seen[name] {
			wrong = new(Fault(field, KindDuplicate, Say("envDuplicate", Fill("name", Clip(name)))))
		}
		f.append(wrong)
		seen[name] = true
	}
	for i, v := range s.Env {
		field := fmt.Sprintf("env[%d]", i)
		check(field+".name", v.Name)
		f.append(CheckValue(field+".value", v.Name, v.Value))
	}
	for i, name := range s.Secrets {
		check(fmt.Sprintf("secrets[%d]", i), name)
	}
}

func (s Spec) validateResources(f *findings, limits Limits) {
	r := s.WithDefaults().Resources
	switch {
	case r.CPU < 1:
		f.add("resources.cpu", KindRange, fmt.Sprintf("%d is not a number of CPUs.", r.CPU), "Ask for 1 CPU or more.")
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

// validateAdmin keeps root of a container away from everything of the machine.
func (s Spec) validateAdmin(f *findings) {
	switch {
	case !s.Admin:
	case len(s.Mounts) > 0:
		f.say("admin", KindConflict, Say("adminMounts"))
	case s.Cluster > 1:
		f.say("admin", KindConflict, Say("adminCluster"))
	case s.MPS:
		f.say("admin", KindConflict, Say("adminMPS"))
	}
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

// ReservedPort reports whether a port in sessions belongs to the services of Slipway there.
func ReservedPort(port int) bool { return port >= firstOwnPort && port <= lastOwnPort }

// KeeperPort is the port, in sessions, of the program that keeps the output of the notebooks of the server on another.
func KeeperPort(server int) int {
	const before = 10
	return server - before
}

// LivePath is where an app with such a program answers which of a notebook's cells run, to a page that was away. Its
// query has the kernel, the path of the notebook, when it was saved, the client of the page, and as shown, as often as
// needed, the ids of the runs that the page shows from now on.
const LivePath = "/slipway/live"

func number(hole string, n int) Phrase { return Fill(hole, strconv.Itoa(n)) }

// Clip shortens text for a message.
func Clip(text string) string {
	const most = 80
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most]) + "…"
}

// Bounds of the fields that [Spec.Validate] checks here.
const (
	MaxPriority = 100
	MaxAfter    = 32
	MaxLabel    = 64
	// MinLifetime is the shortest limit of an idle policy, so that a warning can come before.
	MinLifetime = Duration(time.Minute)
)

func (s Spec) validateQueue(f *findings) {
	s.validateAccelerator(f)
	f.refuse(s.Cluster < 0 || s.Cluster > MaxCluster, "cluster", KindRange,
		fmt.Sprintf("%d is not between 1 and %d kernels.", s.Cluster, MaxCluster),
		"Leave it empty for a single kernel.")
	if s.Priority != nil {
		f.append(ValidatePriority(*s.Priority))
	}
	s.validateAfter(f)
	f.refuse(s.PendingTimeout != 0 && !plausible(s.PendingTimeout, Duration(time.Second)), "pendingTimeout", KindRange,
		"The longest wait is not between 1 s and 520 w.",
		"Write a whole number with s, m, h, d or w, for example 2h, or leave it empty to wait without limit.")
	f.refuse(s.KeepHome != nil && *s.KeepHome != 0 && !plausible(*s.KeepHome, Duration(time.Second)), "keepHome",
		KindRange, "The time for which the home is kept is not between 1 s and 520 w.",
		"Write a whole number with s, m, h, d or w, for example 30d, or 0 to delete it with the session.")
	f.append(ValidateLabel(s.Label))
	if s.Idle != nil {
		*f = append(*f, s.Idle.Validate("idle")...)
	}
	f.refuse(s.CommitOnEnd < 0 || s.CommitOnEnd > MaxCommitOnEnd, "commitOnEnd", KindRange,
		fmt.Sprintf("%d is not a number of images between 1 and %d.", s.CommitOnEnd, MaxCommitOnEnd),
		"Write how many of the newest images to keep, or leave it empty to make none.")
}

// AcceleratorFaults returns what is wrong with the devices that a spec asks for.
func (s Spec) AcceleratorFaults() []FieldError {
	var f findings
	s.validateAccelerator(&f)
	return f
}

func (s Spec) validateAccelerator(f *findings) {
	if err := s.Accelerator.Validate(); err != nil {
		f.add("accelerator", KindInvalid, err.Error(),
			"Write for example 0.5, 2, mig:1g.10gb or vram:12g, or leave it empty.")
		return
	}
	f.refuse(s.MPS && s.Accelerator.Shares == 0 && s.Accelerator.Memory == 0, "mps", KindInvalid,
		"MPS shares a part of a device, and the session asks for none.",
		"Ask for a share such as 0.5, or leave MPS out.")
}

// ValidatePriority checks that a priority is from 0 to 100.
func ValidatePriority(priority int) *FieldError {
	if priority >= 0 && priority <= MaxPriority {
		return nil
	}
	return &FieldError{Field: "priority", Kind: KindRange,
		Message: fmt.Sprintf("%d is not a priority between 0 and %d.", priority, MaxPriority),
		Hint:    fmt.Sprintf("Higher goes first; %d is the usual one.", DefaultPriority)}
}

func (s Spec) validateAfter(f *findings) {
	if len(s.After) > MaxAfter {
		f.add("after", KindInvalid, fmt.Sprintf("There are %d sessions to wait for; the maximum is %d.",
			len(s.After), MaxAfter), "Wait for the last of them.")
		return
	}
	seen := make(map[string]bool, len(s.After))
	for i, ref := range s.After {
		field := fmt.Sprintf("after[%d]", i)
		switch {
		case !ValidID(ref) && SessionNames.Check(ref) != nil:
			f.add(field, KindInvalid, fmt.Sprintf("%q is neither an id nor a name of a session.", Clip(ref)),
				"Write the id or the name of a session to wait for.")
		case seen[ref]:
			f.add(field, KindInvalid, fmt.Sprintf("%s is already in the list.", ref), "Remove one of the two.")
		case s.Name != "" && ref == s.Name:
			f.add(field, KindInvalid, "A session cannot wait for itself.", "Name another session.")
		}
		seen[ref] = true
	}
}

// ValidateLabel checks a label: at most 64 printable characters without blanks around them.
func ValidateLabel(label string) *FieldError {
	e := FieldError{Field: "label", Kind: KindInvalid, Hint: "Use a short name of a project, or leave it empty."}
	switch {
	case label == "":
		return nil
	case utf8.RuneCountInString(label) > MaxLabel:
		e = Fault("label", KindInvalid, Phrase{Say: "labelLong", Count: MaxLabel})
	case !utf8.ValidString(label) || strings.ContainsFunc(label, func(r rune) bool { return !unicode.IsPrint(r) }):
		e.Message = "The label has a character that cannot be printed."
	case strings.TrimSpace(label) != label:
		e.Message = "The label begins or ends with a blank."
	default:
		return nil
	}
	return &e
}

// Validate returns everything that is wrong with p. path is that of the policy; empty: the policy by itself.
func (p IdlePolicy) Validate(path string) []FieldError {
	var f findings
	if path != "" {
		path += "."
	}
	bound := func(field string, d Duration) {
		if d != 0 && !plausible(d, MinLifetime) {
			f.say(path+field, KindInvalid, Say("idleSpan"))
		}
	}
	bound("lifetime", p.Lifetime)
	bound("network", p.Network)
	bound("use.window", p.Use.Window)
	f.refuse(p.Use.Grace != 0 && !plausible(p.Use.Grace, Duration(time.Second)), path+"use.grace", KindInvalid,
		"The grace is not between 1 s and 520 w.",
		"Write a whole number with s, m, h, d or w, for example 10m, or leave it empty.")
	thresholds := 0
	for _, threshold := range []struct {
		name  string
		value *float64
	}{{"cpu", p.Use.CPU}, {"memory", p.Use.Memory}, {"gpu", p.Use.GPU}, {"vram", p.Use.VRAM}} {
		if threshold.value == nil {
			continue
		}
		thresholds++
		if v := *threshold.value; math.IsNaN(v) || v <= 0 || v > 100 {
			f.say(path+"use."+threshold.name, KindInvalid, Say("idlePercent"))
		}
	}
	switch {
	case thresholds > 0 && p.Use.Window == 0:
		f.add(path+"use.window", KindInvalid, "There are thresholds of use, and no window to average over.",
			"Write a window such as 30m.")
	case thresholds == 0 && (p.Use.Window != 0 || p.Use.Grace != 0 || p.Use.Any):
		f.say(path+"use", KindInvalid, Say("idleThreshold"))
	}
	return f
}

func plausible(d, least Duration) bool { return d >= least && time.Duration(d) <= maxDuration }
