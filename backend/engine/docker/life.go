package docker

import (
	"context"
	"math"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/volume"

	"slipway/backend/engine"
	"slipway/backend/engine/docker/daemon"
	"slipway/backend/session"
)

// Start starts a created container. It also fails with disk_write_no-space, engine_read_not-found, and engine_attach_…
// where a device could not be attached; then the container is removed.
func (e *Engine) Start(ctx context.Context, id string) error {
	if started, err := e.reservations.start(id); started {
		return err
	}
	err := e.daemon.API.ContainerStart(ctx, id, container.StartOptions{})
	if err == nil {
		return nil
	}
	failed := daemon.ContainerFailure(ctx, id, err)
	switch code := session.CodeOf(failed); {
	case ctx.Err() != nil, code == session.CodeEngineUnavailable, code == session.CodeNoContainer,
		code == session.CodeDiskFull:
		return failed
	}
	return e.startFailure(ctx, id, err)
}

// Stop stops a container and kills it after grace, which Docker counts in whole seconds, rounded up.
func (e *Engine) Stop(ctx context.Context, id string, grace time.Duration) error {
	seconds := int(math.Ceil(max(grace, 0).Seconds()))
	err := e.daemon.API.ContainerStop(ctx, id, container.StopOptions{Timeout: &seconds})
	if errdefs.IsNotFound(err) {
		return nil
	}
	return daemon.ContainerFailure(ctx, id, err)
}

// Remove removes a container with its anonymous volumes, its home unless another kernel uses it, and its files here.
func (e *Engine) Remove(ctx context.Context, id string) error {
	state, err := e.Inspect(ctx, id)
	if session.CodeOf(err) == session.CodeNoContainer {
		return e.removeLeftovers(ctx, id)
	}
	if err != nil {
		return err
	}
	if err := e.daemon.RemoveContainer(ctx, state.ID); err != nil {
		return err
	}
	if _, ok := state.Labels[engine.LabelSession]; ok {
		if err := e.removeVolume(ctx, homeVolume(state.Labels)); err != nil {
			return err
		}
	}
	e.reservations.forget(state.Name)
	return e.kernels.discard(state.Name)
}

// removeLeftovers removes what a removed container left behind. List removes what this process does not know.
func (e *Engine) removeLeftovers(ctx context.Context, id string) error {
	k := e.kernels.of(id)
	if k == nil {
		return nil
	}
	if of := k.session(); of != "" {
		if err := e.removeVolumes(ctx, engine.LabelSession+"="+of, nil); err != nil {
			return err
		}
	}
	e.reservations.forget(k.name)
	return e.kernels.discard(k.name)
}

// removeVolumes removes our volumes with a label, except those in keep and those in use.
func (e *Engine) removeVolumes(ctx context.Context, label string, keep map[string]bool) error {
	selection := e.mine()
	selection.Add("label", label)
	found, err := e.daemon.API.VolumeList(ctx, volume.ListOptions{Filters: selection})
	if err != nil {
		return daemon.Failure(ctx, err)
	}
	for _, v := range found.Volumes {
		if keep[v.Name] {
			continue
		}
		if err := e.removeVolume(ctx, v.Name); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) removeVolume(ctx context.Context, name string) error {
	err := e.daemon.API.VolumeRemove(ctx, name, false)
	if errdefs.IsNotFound(err) || errdefs.IsConflict(err) {
		return nil
	}
	return daemon.Failure(ctx, err)
}

var startHints = daemon.Wordings[string]{
	daemon.When(`(?i)exec format error`,
		"The image is made for another kind of processor; choose one for this machine."),
	daemon.When(`(?i)cpuset|cpus?\.(max|cfs)`, "The machine refuses the CPU limit; check that its cgroups are set up."),
	daemon.When(`(?i)memory`, "The machine refuses the memory limit; ask for more memory."),
	daemon.When(`(?i)not a directory|no such file or directory|mounting`,
		"A mounted directory vanished or its target is a file in the image; check the mounts."),
	daemon.When(`(?i)permission denied|operation not permitted`,
		"Docker may not do this; check that Slipway's data folder is not on a file system mounted noexec."),
	daemon.When(``, "Try again. If it fails again, read the Docker daemon's log."),
}

// startFailure says why a container did not start. If it was a device, the container is removed, and the next attempt
// tries the ways to attach again.
func (e *Engine) startFailure(ctx context.Context, id string, err error) error {
	failed := e.Devices.Failure(err)
	if failed == nil {
		text := daemon.Text(err)
		return session.WrapError(err, session.CodeStartFailed,
			"Docker could not start the container: "+daemon.Sentence(text), startHints.Of(text))
	}
	e.clear(ctx, id)
	return failed
}

// clear removes a container that cannot be started, also when ctx has ended. One that stays is logged.
func (e *Engine) clear(ctx context.Context, id string) {
	ctx, cancel := e.daemon.Brief(context.WithoutCancel(ctx))
	defer cancel()
	if gone := e.daemon.RemoveContainer(ctx, id); gone != nil && session.CodeOf(gone) != session.CodeNoContainer {
		e.daemon.Log.Warn("a container that cannot be started stays", "container", daemon.ShortID(id), "error", gone)
	}
}
