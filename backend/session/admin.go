package session

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Admin answers the admins of an agent that several people share. Others fail
// with agent_call_forbidden.
type Admin interface {
	// Audit returns the newest entries of the log of what was done that are
	// asked for, oldest first; agent_call_invalid unless 1 to [MostAudit] are.
	//
	//rpc:method name=audit effect=read who=admin
	Audit(ctx context.Context, asked AuditQuery) ([]AuditEntry, error)
	// Limits returns what each person may hold, by owner.
	//
	//rpc:method name=limits effect=read who=admin
	Limits(ctx context.Context) (map[string]Allowance, error)
	// SetLimit sets what a person may hold, nil: nothing of their own;
	// agent_call_invalid.
	//
	//rpc:method name=limit.set effect=again args=owner,limit? who=admin audit=owner
	SetLimit(ctx context.Context, owner string, limit *Allowance) error
	// PairedClients lists the clients, the computers that are paired with the agent.
	//
	//rpc:method name=known effect=read who=admin as=PairedDevices
	PairedClients(ctx context.Context) ([]PairedClient, error)
	// RevokeClient ends a client's access at once; agent_find_not-found.
	//
	//rpc:method name=known.revoke effect=once who=admin audit=key as=Revoke
	RevokeClient(ctx context.Context, key string) error
}

// Pairing makes and changes the keys of an agent. It is asked on the agent's own
// machine alone, or through a login there; agent_pair_unavailable where the agent
// accepts no clients.
type Pairing interface {
	// PairCode creates a code that pairs one client.
	PairCode(ctx context.Context, request PairRequest) (PairCode, error)
	// RotateKey gives the agent another key, which the old one signs.
	RotateKey(ctx context.Context) (KeyRotation, error)
}

// PairRequest says for whom a code is.
type PairRequest struct {
	Owner string `json:"owner,omitempty"` // who owns what the client launches; empty: the agent's user
	Role  Role   `json:"role,omitempty"`  // empty: admin for the agent's user, user for others
}

// PairCode is a pairing code. It is valid once and for a short while.
type PairCode struct {
	Code    string    `json:"code"`
	Address string    `json:"address"` // where the agent listens
	Key     string    `json:"key"`     // fingerprint of the agent's key
	Expires time.Time `json:"expires"`
}

// KeyRotation is an agent's change of its key.
type KeyRotation struct {
	Before  string `json:"before"`  // fingerprint of the old key, which proves the new one
	Key     string `json:"key"`     // fingerprint of the new key
	Clients int    `json:"devices"` // how many were connected, and learn of it at once
}

// MostAudit is the most entries of the log of what was done in one answer, so
// that it stays far below what is read of one.
const MostAudit = 500

// AuditQuery asks for a part of the log of what was done.
type AuditQuery struct {
	Limit int `json:"limit"`
	// when the oldest entry known was written: only what is older; zero: the newest
	Before time.Time `json:"before,omitzero"`
	Owner  string    `json:"owner,omitempty"`  // who did it
	Text   string    `json:"text,omitempty"`   // words, each of which is somewhere in an entry
	Failed bool      `json:"failed,omitempty"` // only what was refused or went wrong
	// Security selects only what decides who may reach the agent, and who tried.
	Security bool `json:"security,omitempty"`
}

// Check says what is wrong with a query.
func (q AuditQuery) Check() error {
	if q.Limit < 1 || q.Limit > MostAudit {
		return &Error{Code: CodeAgentInvalid,
			Message: fmt.Sprintf("Between 1 and %d entries can be read at a time.", MostAudit), Hint: "Ask for fewer."}
	}
	return nil
}

// Matches reports whether an entry is asked for, wherever in the log it is.
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

// AuditEntry is one thing that was done with an agent.
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
	// Count is how often it was done since the entry before that is like it, of
	// which this is the last; 0: once.
	Count    int  `json:"count,omitempty"`
	Security bool `json:"security,omitempty"` // it decides who may reach the agent, or tells of somebody who tried
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
