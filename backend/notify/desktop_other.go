//go:build !linux

package notify

import (
	"context"

	"slipway/backend/session"
)

// Desktop shows nothing on this system: the pages of the user interface do.
type Desktop struct{}

// NewDesktop never finds a desktop.
func NewDesktop(func(string) string) *Desktop { return &Desktop{} }

// Available is always false.
func (*Desktop) Available(context.Context) bool { return false }

// Show fails with server_request_unavailable.
func (*Desktop) Show(context.Context, Notice) error {
	return session.NewError(session.CodeServerUnavailable, "The desktop shows no notifications.",
		"A browser may show them instead: allow it on the Settings page.")
}

// Close has nothing to close.
func (*Desktop) Close() error { return nil }
