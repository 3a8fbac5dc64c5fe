package api

import (
	"bytes"
	"encoding/json"
)

// Bytes is an amount in bytes: an integer, or when it is sent to the server a
// text such as "512m", which is kept as it was written until it is checked.
type Bytes struct {
	N    int64
	Text string
}

// MarshalJSON writes the text if there is one, else the number.
func (b Bytes) MarshalJSON() ([]byte, error) {
	if b.Text != "" {
		return json.Marshal(b.Text)
	}
	return json.Marshal(b.N)
}

// UnmarshalJSON takes a whole number or any text; the text is judged with the
// rest of the spec, so that a bad amount is reported as a field like any other.
func (b *Bytes) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte{'"'}) {
		return json.Unmarshal(data, &b.Text)
	}
	return json.Unmarshal(data, &b.N)
}

// IsZero reports whether nothing was given, so that omitzero leaves it out.
func (b Bytes) IsZero() bool { return b.N == 0 && b.Text == "" }
