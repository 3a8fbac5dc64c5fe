package server

import (
	"fmt"
	"time"

	"slipway/backend/session"
)

// maxKeep is the longest time that one wish keeps a session.
const maxKeep = session.Duration(7 * 24 * time.Hour)

// keepIn reads how long a session is to be kept: above 0 and up to a week.
func keepIn(text string) (session.Duration, error) {
	d, err := session.ParseDuration(text)
	var message string
	switch {
	case text == "":
		message = "It is not said for how long."
	case err != nil:
		message = err.Error() + "."
	case d <= 0 || d > maxKeep:
		message = fmt.Sprintf("%s is not between 1 s and %s.", d, maxKeep)
	default:
		return d, nil
	}
	const hint = "Write for example 4h."
	return 0, &session.Error{Code: session.CodeSessionInvalid, Message: message, Hint: hint,
		Fields: []session.FieldError{{Field: "for", Kind: session.KindInvalid, Message: message, Hint: hint}}}
}
