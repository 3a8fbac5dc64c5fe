package session

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"slipway/gpu"
)

// Bounds of the fields that [Spec.Validate] checks here.
const (
	MaxPriority = 100
	MaxAfter    = 32
	MaxLabel    = 64
	// MinLifetime is the shortest time after which an idle policy may reclaim
	// anything, so that its warning can come before.
	MinLifetime = Duration(time.Minute)
)

// validateQueue checks what says how a session waits, what it shares and how
// it is counted.
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
		"Write a whole number with s, m, h, d or w, for example 2h, or leave it empty to wait for ever.")
	f.append(ValidateLabel(s.Label))
	if s.Idle != nil {
		*f = append(*f, s.Idle.Validate("idle")...)
	}
	f.refuse(s.CommitOnEnd < 0 || s.CommitOnEnd > MaxCommitOnEnd, "commitOnEnd", KindRange,
		fmt.Sprintf("%d is not a number of images between 1 and %d.", s.CommitOnEnd, MaxCommitOnEnd),
		"Write how many of the newest images to keep, or leave it empty to make none.")
}

func (s Spec) validateAccelerator(f *findings) {
	if err := s.Accelerator.Validate(); err != nil {
		message := err.Error()
		if e, ok := errors.AsType[*gpu.Error](err); ok {
			message = e.Message
		}
		f.add("accelerator", KindInvalid, message,
			"Write for example 0.5, 2, mig:1g.10gb or vram:12g, or leave it empty.")
		return
	}
	f.refuse(s.MPS && s.Accelerator.Shares == 0 && s.Accelerator.Memory == 0, "mps", KindInvalid,
		"MPS shares a part of a device, and the session asks for none.",
		"Ask for a share such as 0.5, or leave MPS out.")
}

// ValidatePriority checks that a priority is from 0 to 100; nil where it is.
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
		f.add("after", KindInvalid, fmt.Sprintf("There are %d sessions to wait for; %d is the most.",
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
			f.add(field, KindInvalid, fmt.Sprintf("%s is there already.", ref), "Remove one of the two.")
		case s.Name != "" && ref == s.Name:
			f.add(field, KindInvalid, "A session cannot wait for itself.", "Name another session.")
		}
		seen[ref] = true
	}
}

// ValidateLabel checks the rule for labels: at most 64 printable characters
// without blanks around them. It returns nil where the label keeps it; an empty
// one does.
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

// Validate returns everything that is wrong with p, each field under the path
// of the policy, which is empty for a policy by itself.
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

// plausible reports whether d is from least to the longest length of time that
// is accepted.
func plausible(d, least Duration) bool { return d >= least && time.Duration(d) <= maxDuration }
