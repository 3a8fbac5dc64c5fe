//go:build !linux

package notify

import "context"

// Desktop shows nothing on this system. The user interface does.
type Desktop struct{}

// NewDesktop returns a desktop that shows nothing.
func NewDesktop(func(string) string) *Desktop { return &Desktop{} }

// Available is always false.
func (*Desktop) Available(context.Context) bool { return false }

// Show fails with server_request_unavailable.
func (*Desktop) Show(context.Context, Notice) error { return unavailable(nil) }

// Close does nothing.
func (*Desktop) Close() error { return nil }
