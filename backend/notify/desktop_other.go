//go:build !linux && !darwin

package notify

import "context"

// Desktop shows nothing on this system. The user interface does.
type Desktop struct{}

// HasBus is always true: keyrings need no bus on this system.
func HasBus(func(string) string) bool { return true }

// NewDesktop returns a desktop that shows nothing.
func NewDesktop(func(string) string) *Desktop { return &Desktop{} }

// Available is always false.
func (*Desktop) Available(context.Context) bool { return false }

// Show fails with server_request_unavailable.
func (*Desktop) Show(context.Context, Notice) error { return unavailable(nil) }

// Close does nothing.
func (*Desktop) Close() error { return nil }
