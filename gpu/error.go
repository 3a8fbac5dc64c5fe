package gpu

import "errors"

// Error is a failure that a person can act on. Code is a
// domain_operation_detail as everywhere in Slipway; Message is one sentence
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
	CodeRequestInvalid     = "gpu_request_invalid"
	CodeRequestQuantum     = "gpu_request_quantum"
	CodeGrantUnavailable   = "gpu_grant_unavailable"
	CodeGrantImpossible    = "gpu_grant_impossible"
	CodeGrantFragmented    = "gpu_grant_fragmented"
	CodeHoldConflict       = "gpu_hold_conflict"
	CodeHoldInvalid        = "gpu_hold_invalid"
	CodeSourceUnavailable  = "gpu_source_unavailable"
	CodeSourceNotSupported = "gpu_source_not-supported"
)

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Waits says whether err is a refusal that may end by waiting.
func Waits(err error) bool {
	var e *Error
	return errors.As(err, &e) && (e.Code == CodeGrantUnavailable || e.Code == CodeGrantFragmented)
}

func invalid(message string) *Error { return &Error{Code: CodeRequestInvalid, Message: message} }
