package docker

import (
	"context"

	"slipway/backend/engine/docker/daemon"
	"slipway/backend/session"
)

// startHints explain what runc and the daemon say of a container that did not start.
var startHints = daemon.Wordings[string]{
	daemon.When(`(?i)exec format error`,
		"The image is made for another kind of processor; choose one for this machine."),
	daemon.When(`(?i)cpuset|cpus?\.(max|cfs)`, "The machine refuses the CPU limit; check that its cgroups are set up."),
	daemon.When(`(?i)memory`, "The machine refuses the memory limit; ask for more memory."),
	daemon.When(`(?i)not a directory|no such file or directory|mounting`,
		"A mounted directory vanished or its target is a file in the image; check the mounts."),
	daemon.When(`(?i)permission denied|operation not permitted`,
		"Docker may not do this; check that Slipway's data folder is not on a file system mounted noexec."),
}

func startHint(text string) string {
	if hint := startHints.Of(text); hint != "" {
		return hint
	}
	return "Try again. If it fails again, read the Docker daemon's log."
}

// startFailure says why a container did not start. One that devices kept from
// starting is removed, and the next attempt tries the ways again: what was
// found before is not true any more.
func (e *Engine) startFailure(ctx context.Context, id string, err error) error {
	failed := e.Devices.Failure(err)
	if failed == nil {
		text := daemon.Text(err)
		return session.WrapError(err, session.CodeStartFailed,
			"Docker could not start the container: "+daemon.Sentence(text),
			startHint(text))
	}
	cleaning, cancel := e.daemon.Brief(context.WithoutCancel(ctx))
	defer cancel()
	if gone := e.daemon.RemoveContainer(cleaning, id); gone != nil && session.CodeOf(gone) != session.CodeNoContainer {
		e.daemon.Log.Warn("a container that did not start stays", "container", daemon.ShortID(id), "error", gone)
	}
	return failed
}
