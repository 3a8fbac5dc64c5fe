package gpu

import "errors"

// Error is a failure that a person can act on. Code is
// one of those below, which stay in the program; Message is one sentence
// and Hint says what to do next.
type Error struct {
	Code    string
	Message string
	Hint    string
}

// The codes of this package. Unavailable means that waiting may help;
// impossible that this machine can never grant it; fragmented that enough is
// free in sum but not on few enough devices; quantum that the request is
// below the smallest share; conflict that a grant is not free any more.
const (
	CodeRequestInvalid     = "invalid request"
	CodeRequestQuantum     = "below the quantum"
	CodeGrantUnavailable   = "not free now"
	CodeGrantImpossible    = "never here"
	CodeGrantFragmented    = "fragmented"
	CodeHoldConflict       = "held"
	CodeHoldInvalid        = "invalid grant"
	CodeSourceUnavailable  = "no answer"
	CodeSourceNotSupported = "not supported"
)

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Waits says whether err is a refusal that may end by waiting.
func Waits(err error) bool {
	var e *Error
	return errors.As(err, &e) && (e.Code == CodeGrantUnavailable || e.Code == CodeGrantFragmented)
}

func invalid(message string) *Error { return &Error{Code: CodeRequestInvalid, Message: message} }
