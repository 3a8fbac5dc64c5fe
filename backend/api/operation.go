package api

import (
	"time"

	"slipway/backend/session"
)

// Operation is a piece of work that takes a while: it has steps, may ask a
// person something, can be cancelled, and is told of by events until it has
// ended. The last 50 are kept.
type Operation struct {
	ID string `json:"id"`
	// agent-add, agent-probe, agent-upgrade, agent-remove, agent-reconnect, image-send, image-fetch, image-pull,
	// image-commit, image-remove, file-archive or folder-purge
	Kind string `json:"kind"`
	// name or address of the agent, reference of the image, or name of the archive or folder
	Subject   string         `json:"subject"`
	State     string         `json:"state"` // running, waiting (for an answer), done, failed or cancelled
	Steps     []OpStep       `json:"steps"` // those that are known so far, in their order
	Progress  *Progress      `json:"progress,omitempty"`
	Prompt    *Prompt        `json:"prompt,omitempty"` // what it waits for while its state is waiting
	Error     *session.Error `json:"error,omitempty"`  // why it failed
	Agent     string         `json:"agent,omitempty"`  // name of the agent that it made or changed
	Image     string         `json:"image,omitempty"`  // reference of the image that it makes or brings
	StartedAt time.Time      `json:"startedAt"`
	EndedAt   *time.Time     `json:"endedAt,omitempty"`
	Revision  uint64         `json:"revision"` // grows with every change of this operation
}

// OpStep is one step of an operation. A probe is a step too: one that found
// something wrong says how to mend it.
type OpStep struct {
	Name      string     `json:"name"`  // stable, for example docker or upload
	Title     string     `json:"title"` // for people
	State     string     `json:"state"` // pending, running, ok, warning, failed or skipped
	Detail    string     `json:"detail,omitempty"`
	Remedy    string     `json:"remedy,omitempty"` // one command or sentence
	StartedAt *time.Time `json:"startedAt,omitempty"`
	EndedAt   *time.Time `json:"endedAt,omitempty"`
}

// Progress is how far the bytes of an operation are.
type Progress struct {
	Done  int64    `json:"done"`           // bytes
	Total int64    `json:"total"`          // bytes; 0 while unknown
	Rate  int64    `json:"rate"`           // bytes a second over the last seconds
	Left  *float64 `json:"left,omitempty"` // seconds, estimated; absent: unknown
}

// Prompt is what a person is asked. The answer of a secret one is shown nowhere
// and kept nowhere.
type Prompt struct {
	ID string `json:"id"`
	// password, passphrase, mfa, host-key, pair-code, confirm, or notice: something to do elsewhere, which is not
	// answered
	Kind        string `json:"kind"`
	Text        string `json:"text"`
	Secret      bool   `json:"secret"`                // do not show what is typed
	Again       bool   `json:"again"`                 // the answer before was not accepted
	Fingerprint string `json:"fingerprint,omitempty"` // of a host's key
	Host        string `json:"host,omitempty"`        // whom that key belongs to
}

// PromptAnswer answers the prompt of an operation. A host-key or a confirm is
// answered with yes or no.
type PromptAnswer struct {
	Prompt string `json:"prompt"` // its id
	Text   string `json:"text"`
}
