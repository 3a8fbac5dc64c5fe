package session

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"slipway/gpu"
)

// Admin serves the admins of an agent that several people share. Others fail with agent_call_forbidden.
type Admin interface {
	// Audit returns the newest matching entries of the audit log, oldest first; agent_call_invalid for a wrong limit.
	//
	//rpc:method name=audit effect=read who=admin
	Audit(ctx context.Context, asked AuditQuery) ([]AuditEntry, error)
	// Limits returns what each person may hold, by owner.
	//
	//rpc:method name=limits effect=read who=admin
	Limits(ctx context.Context) (map[string]Allowance, error)
	// SetLimit sets the allowance of a person; nil removes it. agent_call_invalid.
	//
	//rpc:method name=limit.set effect=again args=owner,limit? who=admin audit=owner
	SetLimit(ctx context.Context, owner string, limit *Allowance) error
	// PairedClients lists the computers that are paired with the agent.
	//
	//rpc:method name=known effect=read who=admin as=PairedDevices
	PairedClients(ctx context.Context) ([]PairedClient, error)
	// RevokeClient ends a client's access at once; agent_find_not-found.
	//
	//rpc:method name=known.revoke effect=once who=admin audit=key as=Revoke
	RevokeClient(ctx context.Context, key string) error
}

// Pairing makes and changes the keys of an agent. It is available only on the agent's own machine, or through a login
// there; agent_pair_unavailable if the agent accepts no clients.
type Pairing interface {
	// PairCode creates a code that pairs one client.
	PairCode(ctx context.Context, request PairRequest) (PairCode, error)
	// RotateKey replaces the key of the agent by one that the old key signs.
	RotateKey(ctx context.Context) (KeyRotation, error)
}

// PairRequest is whom a pairing code is for.
type PairRequest struct {
	Owner string `json:"owner,omitempty"` // who owns what the client launches; empty: the agent's user
	Role  Role   `json:"role,omitempty"`  // empty: admin for the agent's user, user for others
}

// PairCode is a pairing code: single use, and valid for a short while.
type PairCode struct {
	Code    string    `json:"code"`
	Address string    `json:"address"` // where the agent listens
	Key     string    `json:"key"`     // fingerprint of the agent's key
	Expires time.Time `json:"expires"`
}

// KeyRotation is a change of an agent's key.
type KeyRotation struct {
	Before  string `json:"before"`  // fingerprint of the old key, which proves the new one
	Key     string `json:"key"`     // fingerprint of the new key
	Clients int    `json:"devices"` // how many were connected, and learn of it at once
}

// MostAudit is the largest limit of an audit query, so that an answer stays far below the largest message.
const MostAudit = 500

// AuditQuery selects entries of the audit log.
type AuditQuery struct {
	Limit    int       `json:"limit"`
	Before   time.Time `json:"before,omitzero"`    // only entries before this; zero: the newest
	Owner    string    `json:"owner,omitempty"`    // who did it
	Text     string    `json:"text,omitempty"`     // words, each of which is somewhere in an entry
	Failed   bool      `json:"failed,omitempty"`   // only what was refused or went wrong
	Security bool      `json:"security,omitempty"` // only changes of who may reach the agent, and attempts to
}

// Check says what is wrong with a query.
func (q AuditQuery) Check() error {
	if q.Limit < 1 || q.Limit > MostAudit {
		return &Error{Code: CodeAgentInvalid,
			Message: fmt.Sprintf("Between 1 and %d entries can be read at a time.", MostAudit), Hint: "Ask for fewer."}
	}
	return nil
}

// Matches reports whether q selects an entry.
func (q AuditQuery) Matches(e AuditEntry) bool {
	if q.Security && !e.Security || q.Failed && e.Outcome == "ok" || q.Owner != "" && q.Owner != e.Owner {
		return false
	}
	all := strings.ToLower(strings.Join([]string{e.Owner, e.Role, e.Client, e.From, e.Method, string(e.Session),
		e.Target, e.Outcome}, " "))
	for word := range strings.FieldsSeq(strings.ToLower(q.Text)) {
		if !strings.Contains(all, word) {
			return false
		}
	}
	return true
}

// AuditEntry is one call to an agent.
type AuditEntry struct {
	At      time.Time `json:"at"` // no two that follow each other have the same
	Owner   string    `json:"owner"`
	Role    string    `json:"role"`
	Client  string    `json:"device,omitempty"` // fingerprint; empty: a program of the agent's own person
	From    string    `json:"from,omitempty"`
	Method  string    `json:"method"`
	Session ID        `json:"session,omitempty"`
	Target  string    `json:"target,omitempty"`
	Outcome string    `json:"outcome"` // ok or the code of the failure
	// Count is how often it was done since the previous entry of this kind, of which this is the last; 0: once.
	Count    int  `json:"count,omitempty"`
	Security bool `json:"security,omitempty"` // it changes who may reach the agent, or is an attempt to
}

// PairedClient is a computer that is paired with an agent.
type PairedClient struct {
	Key   string    `json:"key"`
	Name  string    `json:"name"`
	Owner string    `json:"owner"`
	Role  Role      `json:"role"`
	Added time.Time `json:"added"`
	Seen  time.Time `json:"seen,omitzero"` // zero: never
	Live  int       `json:"live"`          // connections at this moment
}

// DefaultOwner is the owner whose allowance counts for everybody without one, except for the agent's own user.
const DefaultOwner = "default"

// Allowance limits what the sessions of one person hold at a time on one agent. A zero amount is no limit.
type Allowance struct {
	Sessions int       `json:"sessions,omitempty"` // that hold resources
	CPU      int       `json:"cpu,omitempty"`
	Memory   gpu.Bytes `json:"memory,omitempty"`
	GPU      gpu.Share `json:"gpu,omitempty"` // of all devices together
	// Processes is the most processes and threads in each container of theirs, in place of the machine's own limit.
	Processes int `json:"processes,omitempty"`
	// Folders are the only directories of the machine that a person who is no admin may mount, without their
	// subdirectories.
	Folders []string `json:"folders,omitempty"`
	Logins  bool     `json:"logins,omitempty"` // use of the agent's registry logins, and of what was pulled with them
}

// The bounds of a limit on processes: what the guest and a shell need, and the most that Linux has.
const (
	MinProcesses = 64
	MaxProcesses = 4194304
)

// IsZero reports whether nothing is limited and nothing is allowed.
func (a Allowance) IsZero() bool {
	return !a.Limits() && a.Processes == 0 && len(a.Folders) == 0 && !a.Logins
}

// Limits reports whether any amount is limited.
func (a Allowance) Limits() bool {
	return a.Sessions != 0 || a.CPU != 0 || a.Memory != 0 || a.GPU != 0
}

// Validate returns what is wrong, in a sentence; empty if nothing is.
func (a Allowance) Validate() string {
	if a.Sessions < 0 || a.CPU < 0 || a.Memory < 0 || a.GPU < 0 {
		return "A limit cannot be negative."
	}
	if a.Processes != 0 && (a.Processes < MinProcesses || a.Processes > MaxProcesses) {
		return fmt.Sprintf("A container has between %d and %d processes.", MinProcesses, MaxProcesses)
	}
	for _, folder := range a.Folders {
		if !path.IsAbs(folder) || path.Clean(folder) != folder || folder == "/" || strings.ContainsRune(folder, 0) {
			return fmt.Sprintf("%q is not an absolute path of a folder.", Clip(folder))
		}
	}
	return ""
}

// Ask is what sessions ask for or hold of what an [Allowance] limits, with all of their kernels.
type Ask struct {
	Sessions int
	CPU      int
	Memory   gpu.Bytes
	GPU      gpu.Share
}

// Plus is the sum of two.
func (a Ask) Plus(b Ask) Ask {
	return Ask{a.Sessions + b.Sessions, a.CPU + b.CPU, a.Memory + b.Memory, a.GPU + b.GPU}
}

// Refuse explains for each amount of ask that is more than a allows why it can never be allocated.
func (a Allowance) Refuse(ask Ask) []FieldError {
	const hint = "Ask for less, or ask an admin of the machine for more."
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

// Ranges writes numbers as ranges: "0–3, 8".
func Ranges(numbers []int) string {
	numbers = slices.Compact(slices.Sorted(slices.Values(numbers)))
	var parts []string
	for i := 0; i < len(numbers); i++ {
		part := strconv.Itoa(numbers[i])
		first := i
		for i+1 < len(numbers) && numbers[i+1] == numbers[i]+1 {
			i++
		}
		if i > first {
			part += "–" + strconv.Itoa(numbers[i])
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

// NoSession is the error for a session that does not exist or is not shown to the caller: the two cannot be told apart.
func NoSession(id ID) *Error {
	return &Error{Code: CodeSessionNotFound, Message: fmt.Sprintf("There is no session %s.", id),
		Hint: "List the sessions to find it; records of old sessions are removed after a while."}
}
