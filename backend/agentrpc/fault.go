package agentrpc

import (
	"errors"

	"slipway/backend/session"
	"slipway/tunnel"
)

// FaultError returns the fault of a transport as a [session.Error], and every other error as it is.
func FaultError(err error) error {
	var fault *tunnel.Fault
	if errors.As(err, &fault) {
		return session.WrapError(err, session.Code(fault.Code), fault.Message, fault.Hint)
	}
	return err
}
