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

// Error is a failure that a person can act on. Message is one sentence, Hint says what to do next. Fields is set when
// the failure is about what was entered; each names one field and what is wrong with it.
type Error struct {
	Code    Code         `json:"code"`
	Message string       `json:"message"`
	Hint    string       `json:"hint,omitempty"`
	Fields  []FieldError `json:"fields,omitempty"`
	// the sentences of Message, for other languages; nil: it is told only in English
	Said   []Phrase `json:"said,omitempty"`
	Advice []Phrase `json:"advice,omitempty"` // and those of Hint
	Err    error    `json:"-"`                // the cause, for logs; it does not cross the wire
}

// Kind is what is wrong with a field.
type Kind string

// The kinds of faults of fields.
const (
	KindRequired  Kind = "required"     // it is empty
	KindInvalid   Kind = "invalid"      // it breaks the rule for such values
	KindRange     Kind = "out-of-range" // it is less or more than allowed, or than the machine has
	KindRounded   Kind = "rounded"      // it is not a multiple of what can be given
	KindTooMany   Kind = "too-many"     // the list is too long
	KindDuplicate Kind = "duplicate"    // something else has this value
	KindReserved  Kind = "reserved"     // Slipway or the system uses it
	KindForbidden Kind = "forbidden"    // the person may not use it
	KindNotFound  Kind = "not-found"    // what it names does not exist
	KindConflict  Kind = "conflict"     // it does not go with another field
	KindUnknown   Kind = "unknown"      // there is no such field
)

// FieldError says what is wrong with one field of a [Spec]. Field is the JSON path of the field, for example
// "env[2].name".
type FieldError struct {
	Field   string `json:"field"`
	Kind    Kind   `json:"kind"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	// Message for other languages; nil: it is told only in English
	Said []Phrase `json:"said,omitempty"`
}

// Fault is a [FieldError] whose message, which also says what to do, is a phrase.
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

// Refused returns an error about fields, which says what is wrong with the first.
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

// CodeOf returns the code of the first [Error] in err's chain, or "" where there is none.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}

// AsError returns the first [Error] in err's chain. An error of another type is wrapped under the given code with its
// own text as the message.
func AsError(err error, code Code) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Code: code, Message: err.Error(), Err: err}
}

// Cause is an [Error] as it is kept with a session.
type Cause struct {
	Code    Code     `json:"code"`
	Message string   `json:"message"`
	Hint    string   `json:"hint,omitempty"`
	Said    []Phrase `json:"said,omitempty"`   // the sentences of Message, for other languages
	Advice  []Phrase `json:"advice,omitempty"` // and those of Hint
}

// Because is a cause whose message and hint are said by phrases. A hint that says nothing is none.
func Because(code Code, message, hint Phrase) *Cause {
	c := &Cause{Code: code, Message: message.English(), Hint: hint.English(), Said: []Phrase{message}}
	if hint.Say != "" {
		c.Advice = []Phrase{hint}
	}
	return c
}

// Failure is the error that c is kept of, made by err.
func (c *Cause) Failure(err error) *Error {
	return &Error{Code: c.Code, Message: c.Message, Hint: c.Hint, Said: c.Said, Advice: c.Advice, Err: err}
}

// Cause writes e the way it is kept with a session.
func (e *Error) Cause() *Cause {
	return &Cause{Code: e.Code, Message: e.Message, Hint: e.Hint, Said: e.Said, Advice: e.Advice}
}

// CauseOf is a failure as it is kept with a session. One of another type than [Error] is kept under the given code.
func CauseOf(err error, code Code) *Cause { return AsError(err, code).Cause() }
