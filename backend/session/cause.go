package session

// Cause is an [Error] as it is kept with a session.
type Cause struct {
	Code    Code     `json:"code"`
	Message string   `json:"message"`
	Hint    string   `json:"hint,omitempty"`
	Said    []Phrase `json:"said,omitempty"`   // the sentences of Message, for other languages
	Advice  []Phrase `json:"advice,omitempty"` // and those of Hint
}

// Because is a cause whose message and hint are said by phrases. A hint that
// says nothing is none.
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

// CauseOf is a failure as it is kept with a session. One of another type than
// [Error] is kept under the given code.
func CauseOf(err error, code Code) *Cause { return AsError(err, code).Cause() }
