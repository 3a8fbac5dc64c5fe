package session

import (
	"errors"
	"fmt"
	"strings"
)

// Code names a failure as domain_operation_detail, for example
// "session_create_already-exists". Programs decide by code, never by text;
// codes cross HTTP and the tunnel unchanged.
type Code string

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

// Error is a failure that a person can act on. Message is one sentence, Hint
// says what to do next. Fields is set when the failure is about what was
// entered; each names one field and what is wrong with it.
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

// FieldError says what is wrong with one field of a [Spec]. Field is the JSON
// path of the field, for example "env[2].name".
type FieldError struct {
	Field   string `json:"field"`
	Code    Code   `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	// Message for other languages; nil: it is told only in English
	Said []Phrase `json:"said,omitempty"`
}

// Fault is a [FieldError] whose message, which also says what to do, is a phrase.
func Fault(field string, code Code, said Phrase) FieldError {
	return FieldError{Field: field, Code: code, Message: said.English(), Said: []Phrase{said}}
}

func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Message, e.Err)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Message)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// CodeOf returns the code of the first [Error] in err's chain, or "" where
// there is none.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// AsError returns the first [Error] in err's chain. An error of another type is
// wrapped under the given code with its own text as the message.
func AsError(err error, code Code) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Code: code, Message: err.Error(), Err: err}
}
