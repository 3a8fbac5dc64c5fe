package server

import (
	"fmt"

	"slipway/backend/session"
)

// checkHidden refuses values that were hidden in an answer and came back.
func checkHidden(env []session.EnvVar) []session.FieldError {
	var wrong []session.FieldError
	for i, v := range env {
		if v.Value == session.Hidden {
			wrong = append(wrong, session.FieldError{Field: fmt.Sprintf("env[%d].value", i),
				Kind:    session.KindInvalid,
				Message: fmt.Sprintf("The value of %s was hidden and is not known.", v.Name), Hint: "Enter it again."})
		}
	}
	return wrong
}
