//go:build darwin || windows

package notify

import (
	"context"
	"sync/atomic"
)

// Desktop shows notices by a script that the system runs. It is safe for concurrent use.
type Desktop struct {
	failed atomic.Bool // this system has refused one; pages show the rest
}

// HasBus is always true: keyrings need no bus on this system.
func HasBus(func(string) string) bool { return true }

// NewDesktop returns the desktop of whoever runs this program.
func NewDesktop(func(string) string) *Desktop { return &Desktop{} }

// Available reports whether this desktop shows notices, as far as is known.
func (d *Desktop) Available(context.Context) bool { return !d.failed.Load() }

// Show shows a notice. It fails with server_request_unavailable, and then for every further notice.
func (d *Desktop) Show(ctx context.Context, n Notice) error {
	if d.failed.Load() {
		return unavailable(nil)
	}
	if err := command(ctx, n).Run(); err != nil {
		d.failed.Store(ctx.Err() == nil)
		return unavailable(err)
	}
	return nil
}

// Close does nothing.
func (*Desktop) Close() error { return nil }
