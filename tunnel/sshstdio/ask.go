package sshstdio

import "context"

// Kind says what a question is about, so that whoever shows it can choose the
// field and the words.
type Kind string

// The kinds of questions. A HostKey or Confirm question wants "yes" or "no",
// the others want text. A Notice wants nothing: it is withdrawn by its context
// when the person has done what it says, for example touched a security key.
const (
	KindPassword   Kind = "password"
	KindPassphrase Kind = "passphrase"
	KindMFA        Kind = "mfa"
	KindHostKey    Kind = "host-key"
	KindConfirm    Kind = "confirm"
	KindNotice     Kind = "notice"
)

// Question is something that ssh, or whoever sets up a machine, asks a person.
type Question struct {
	Text        string // as the program that asks worded it
	Kind        Kind
	Secret      bool   // the answer must not be shown while it is typed, nor kept
	Again       bool   // the same was asked just before: the answer was not accepted
	Fingerprint string // of the host key, for example "SHA256:…"; only with KindHostKey
	Host        string // whom the key belongs to, as ssh names it; only with KindHostKey
}

// Asker asks a person. Ask returns the answer, ctx's error once the question is
// moot, or any other error when the person refuses. It is called by one
// goroutine at a time for each connection that is being made.
type Asker interface {
	Ask(ctx context.Context, question Question) (answer string, err error)
}
