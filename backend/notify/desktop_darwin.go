package notify

import (
	"context"
	"os/exec"
)

// script shows a notification. The texts are arguments and not part of it, because it is code.
const script = `on run argv
	display notification (item 2 of argv) with title "Slipway" subtitle (item 1 of argv)
end run`

// command shows a notice; see osascript(1).
func command(ctx context.Context, n Notice) *exec.Cmd {
	return exec.CommandContext(ctx, "/usr/bin/osascript", "-e", script, "--", n.Title, n.Text)
}
