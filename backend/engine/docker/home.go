package docker

import (
	"context"
	"io"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"slipway/backend/engine/docker/daemon"
	"slipway/backend/engine/docker/devices"
	"slipway/backend/session"
)

// Home implements [engine.Containers]. It reads the volume through a container that never starts: through the session's
// own, Docker would read everything else that is mounted in the home as well.
func (e *Engine) Home(ctx context.Context, id string) (io.ReadCloser, error) {
	state, err := e.Inspect(ctx, id)
	if err != nil {
		return nil, err
	}
	home := homeVolume(state.Labels)
	if _, err := e.daemon.API.VolumeInspect(ctx, home); err != nil { // Docker would make it
		return nil, daemon.ContainerFailure(ctx, id, err)
	}
	if err := e.daemon.MakeEmptyImage(ctx); err != nil {
		return nil, daemon.Failure(ctx, err)
	}
	reader := &homeReader{engine: e, name: devices.NewTrialName()}
	_, err = e.daemon.API.ContainerCreate(ctx,
		&container.Config{Image: session.EmptyImage, Cmd: []string{"none"},
			Labels: map[string]string{devices.LabelTrial: e.config.Instance}},
		&container.HostConfig{NetworkMode: "none", Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: home,
			Target: session.Home, ReadOnly: true, VolumeOptions: &mount.VolumeOptions{NoCopy: true}}}},
		nil, nil, reader.name)
	if err == nil {
		reader.ReadCloser, _, err = e.daemon.API.CopyFromContainer(ctx, reader.name, session.Home)
	}
	if err != nil {
		reader.remove(ctx)
		return nil, daemon.ContainerFailure(ctx, id, err)
	}
	return reader, nil
}

// homeReader reads a home, and removes what it is read through when it is closed.
type homeReader struct {
	io.ReadCloser
	engine *Engine
	name   string
}

func (r *homeReader) Close() error {
	err := r.ReadCloser.Close()
	r.remove(context.Background())
	return err
}

func (r *homeReader) remove(ctx context.Context) {
	ctx, cancel := r.engine.daemon.Brief(context.WithoutCancel(ctx))
	defer cancel()
	if err := r.engine.daemon.RemoveContainer(ctx, r.name); err != nil {
		r.engine.daemon.Log.Warn("the container through which a home was read stays", "container", r.name,
			"error", err)
	}
}
