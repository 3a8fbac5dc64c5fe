package tunnel

import "fmt"

// Fault is a failure of a transport that a person can act on. Code is of the form agent_operation_detail, for example
// "agent_connect_auth"; programs decide by it, never by the text. Message is one sentence and Hint says what to do
// next. Neither holds a secret.
type Fault struct {
	Code    string
	Message string
	Hint    string
	Err     error // the cause, for logs and for errors.As; it may be nil
}

// NewFault returns a fault. The cause may be nil.
func NewFault(code, message, hint string, cause error) *Fault {
	return &Fault{Code: code, Message: message, Hint: hint, Err: cause}
}

func (f *Fault) Error() string {
	if f.Err != nil {
		return fmt.Sprintf("%s: %s: %v", f.Code, f.Message, f.Err)
	}
	return fmt.Sprintf("%s: %s", f.Code, f.Message)
}

func (f *Fault) Unwrap() error { return f.Err }
