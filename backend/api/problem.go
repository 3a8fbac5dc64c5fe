package api

// Problem is how every failure is told: a code to decide by, one sentence, and
// what to do next. It is the body of every answer with a status of 400 or more.
type Problem struct {
	Code    string         `json:"code"`
	Message string         `json:"message"`
	Hint    string         `json:"hint,omitempty"`
	Fields  []FieldProblem `json:"fields,omitempty"`
	Said    []Phrase       `json:"said,omitempty"`   // the sentences of message, for other languages
	Advice  []Phrase       `json:"advice,omitempty"` // and those of hint
}

// FieldProblem says what is wrong with one field, by its JSON path.
type FieldProblem struct {
	Field   string `json:"field"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}
