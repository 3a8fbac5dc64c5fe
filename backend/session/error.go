package session

import (
	"errors"
	"fmt"
	"strings"
)

// The details that decide how a failure is treated by a caller.
const (
	DetailInvalid     = "invalid"
	DetailNotFound    = "not-found"
	DetailExists      = "already-exists"
	DetailForbidden   = "forbidden"
	DetailConflict    = "conflict"
	DetailUnavailable = "unavailable"
	DetailTimeout     = "timeout"
	DetailInternal    = "internal-error"
)

// Detail is the part of the code after the second underscore.
func (c Code) Detail() string {
	parts := strings.SplitN(string(c), "_", 3)
	if len(parts) < 3 {
		return DetailInternal
	}
	return parts[2]
}

// Error is a failure that a person can act on. Message is one sentence, Hint the remedy. Fields are the wrong fields of
// what was entered.
type Error struct {
	Code    Code         `json:"code"`
	Message string       `json:"message"`
	Hint    string       `json:"hint,omitempty"`
	Fields  []FieldError `json:"fields,omitempty"`
	Said    []Phrase     `json:"said,omitempty"`   // sentences of Message, for other languages; nil: only in English
	Advice  []Phrase     `json:"advice,omitempty"` // and those of Hint
	Err     error        `json:"-"`                // the cause, for logs; it does not cross the wire
}

// Kind is what is wrong with a field.
type Kind string

// The kinds of faults of fields.
const (
	KindRequired  Kind = "required"     // it is empty
	KindInvalid   Kind = "invalid"      // it breaks the rule for such values
	KindRange     Kind = "out-of-range" // it is less or more than allowed, or than the machine has
	KindRounded   Kind = "rounded"      // it is not a multiple of the smallest share
	KindTooMany   Kind = "too-many"     // the list is too long
	KindDuplicate Kind = "duplicate"    // something else has this value
	KindReserved  Kind = "reserved"     // Slipway or the system uses it
	KindForbidden Kind = "forbidden"    // the person may not use it
	KindNotFound  Kind = "not-found"    // what it names does not exist
	KindConflict  Kind = "conflict"     // it does not go with another field
	KindUnknown   Kind = "unknown"      // there is no such field
)

// FieldError is what is wrong with one field of a [Spec]. Field is its JSON path, for example "env[2].name".
type FieldError struct {
	Field   string   `json:"field"`
	Kind    Kind     `json:"kind"`
	Message string   `json:"message"`
	Hint    string   `json:"hint,omitempty"`
	Said    []Phrase `json:"said,omitempty"` // Message for other languages; nil: only in English
}

// Fault is a [FieldError] whose message, with the remedy, is a phrase.
func Fault(field string, kind Kind, said Phrase) FieldError {
	return FieldError{Field: field, Kind: kind, Message: said.English(), Said: []Phrase{said}}
}

// NewError returns an error without a cause or fields.
func NewError(code Code, message, hint string) *Error {
	return &Error{Code: code, Message: message, Hint: hint}
}

// WrapError returns an error with its cause.
func WrapError(cause error, code Code, message, hint string) *Error {
	return &Error{Code: code, Message: message, Hint: hint, Err: cause}
}

// Refused returns an error about fields, with the message of the first.
func Refused(code Code, fields ...FieldError) *Error {
	return &Error{Code: code, Message: fields[0].Message, Hint: fields[0].Hint, Fields: fields}
}

func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Message, e.Err)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Message)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// CodeOf returns the code of the first [Error] in err's chain, or "".
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}

// AsError returns the first [Error] in err's chain, or wraps err under code with its text as the message.
func AsError(err error, code Code) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Code: code, Message: err.Error(), Err: err}
}

// Cause is an [Error] as it is stored with a session.
type Cause struct {
	Code    Code     `json:"code"`
	Message string   `json:"message"`
	Hint    string   `json:"hint,omitempty"`
	Said    []Phrase `json:"said,omitempty"`   // the sentences of Message, for other languages
	Advice  []Phrase `json:"advice,omitempty"` // and those of Hint
}

// Because is a cause whose message and hint are phrases. An empty hint is none.
func Because(code Code, message, hint Phrase) *Cause {
	c := &Cause{Code: code, Message: message.English(), Hint: hint.English(), Said: []Phrase{message}}
	if hint.Say != "" {
		c.Advice = []Phrase{hint}
	}
	return c
}

// Failure is the error of a stored cause, caused by err.
func (c *Cause) Failure(err error) *Error {
	return &Error{Code: c.Code, Message: c.Message, Hint: c.Hint, Said: c.Said, Advice: c.Advice, Err: err}
}

// Cause returns e as it is stored with a session.
func (e *Error) Cause() *Cause {
	return &Cause{Code: e.Code, Message: e.Message, Hint: e.Hint, Said: e.Said, Advice: e.Advice}
}

// CauseOf returns err as it is stored with a session. If it is no [Error], its code is code.
func CauseOf(err error, code Code) *Cause { return AsError(err, code).Cause() }
