package session

import (
	"fmt"
	"path"
	"strings"

	"slipway/gpu"
)

// DefaultOwner in place of an owner stands for everybody who has no allowance of
// their own, except for the agent's own user.
const DefaultOwner = "default"

// Allowance is the most that the sessions of one person hold at a time on one
// agent. A zero amount sets no limit.
type Allowance struct {
	Sessions int       `json:"sessions,omitempty"` // that hold resources
	CPU      int       `json:"cpu,omitempty"`
	Memory   gpu.Bytes `json:"memory,omitempty"`
	GPU      gpu.Share `json:"gpu,omitempty"` // of all devices together
	// Processes is the most processes and threads in each container of theirs, in
	// place of the machine's own limit.
	Processes int `json:"processes,omitempty"`
	// Folders are the directories of the agent's machine that a person who does
	// not rule the agent may mount: these themselves, not what is in them.
	Folders []string `json:"folders,omitempty"`
	// Logins lets a person pull with the agent's registry logins, and use what was pulled with them.
	Logins bool `json:"logins,omitempty"`
}

// The bounds of a limit on processes: what the guest and a shell need, and the most
// that Linux has.
const (
	MinProcesses = 64
	MaxProcesses = 4194304
)

// IsZero reports whether nothing is limited and nothing is opened.
func (a Allowance) IsZero() bool {
	return !a.Limits() && a.Processes == 0 && len(a.Folders) == 0 && !a.Logins
}

// Limits reports whether any amount is limited.
func (a Allowance) Limits() bool {
	return a.Sessions != 0 || a.CPU != 0 || a.Memory != 0 || a.GPU != 0
}

// Validate says what cannot be meant, in a sentence; nothing where all can.
func (a Allowance) Validate() string {
	if a.Sessions < 0 || a.CPU < 0 || a.Memory < 0 || a.GPU < 0 {
		return "A limit cannot be less than nothing."
	}
	if a.Processes != 0 && (a.Processes < MinProcesses || a.Processes > MaxProcesses) {
		return fmt.Sprintf("A container has between %d and %d processes.", MinProcesses, MaxProcesses)
	}
	for _, folder := range a.Folders {
		if !path.IsAbs(folder) || path.Clean(folder) != folder || folder == "/" || strings.ContainsRune(folder, 0) {
			return fmt.Sprintf("%q is no absolute path of a folder.", Clip(folder))
		}
	}
	return ""
}

// Ask is what one session asks for of what an [Allowance] limits, all of its
// kernels together.
type Ask struct {
	CPU    int
	Memory gpu.Bytes
	GPU    gpu.Share
}

// Refuse says for each amount by which ask alone is more than a allows why it
// can never be had.
func (a Allowance) Refuse(ask Ask) []FieldError {
	const hint = "Ask for less, or ask whoever rules the agent for more."
	var wrong []FieldError
	refuse := func(field string, kind Kind, limit, asked string) {
		wrong = append(wrong, FieldError{Field: field, Kind: kind,
			Message: fmt.Sprintf("Your limit here is %s, and this asks for %s.", limit, asked), Hint: hint})
	}
	if a.CPU > 0 && ask.CPU > a.CPU {
		refuse("resources.cpu", KindRange, CPUs(a.CPU), fmt.Sprint(ask.CPU))
	}
	if a.Memory > 0 && ask.Memory > a.Memory {
		refuse("resources.memory", KindRange, a.Memory.String()+" of memory", ask.Memory.String())
	}
	if a.GPU > 0 && ask.GPU > a.GPU {
		refuse("accelerator", KindRange, a.GPU.String()+" of devices", ask.GPU.String())
	}
	return wrong
}

// CPUs writes a number of CPUs.
func CPUs(n int) string {
	if n == 1 {
		return "1 CPU"
	}
	return fmt.Sprintf("%d CPUs", n)
}

// NoSession is the failure of asking for a session that there is not, or that
// is not shown to whoever asks: the two cannot be told apart.
func NoSession(id ID) *Error {
	return &Error{Code: CodeSessionNotFound, Message: fmt.Sprintf("There is no session %s.", id),
		Hint: "List the sessions to find it; records of old sessions are removed after a while."}
}
