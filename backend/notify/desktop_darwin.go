package notify

import (
	"context"
	"os/exec"
	"sync/atomic"
)

// Desktop shows notices by the script runner of macOS. It is safe for concurrent use.
type Desktop struct {
	failed atomic.Bool // this system has refused one; pages show the rest
}

// HasBus is always true: keyrings need no bus on this system.
func HasBus(func(string) string) bool { return true }

// NewDesktop returns the desktop of whoever runs this program.
func NewDesktop(func(string) string) *Desktop { return &Desktop{} }

// Available reports whether this desktop shows notices, as far as is known.
func (d *Desktop) Available(context.Context) bool { return !d.failed.Load() }

// script shows a notification. The texts are arguments and not part of it, because it is code.
const script = `on run argv
	display notification (item 2 of argv) with title "Slipway" subtitle (item 1 of argv)
end run`

// Show shows a notice. It fails with server_request_unavailable, and then for every further notice. See osascript(1).
func (d *Desktop) Show(ctx context.Context, n Notice) error {
	if d.failed.Load() {
		return unavailable(nil)
	}
	err := exec.CommandContext(ctx, "/usr/bin/osascript", "-e", script, "--", n.Title, n.Text).Run()
	if err != nil {
		d.failed.Store(ctx.Err() == nil)
		return unavailable(err)
	}
	return nil
}

// Close does nothing.
func (*Desktop) Close() error { return nil }
