package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"io/fs"
	"os"
	"time"

	"github.com/docker/docker/api/types/container"

	"slipway/backend/engine"
	"slipway/backend/engine/docker/daemon"
	"slipway/backend/session"
)

// ownFolder is Slipway's own folder in a container.
const ownFolder = "/.slipway"

// checkRemote refuses what a daemon on another machine cannot do.
func (e *Engine) checkRemote(c engine.Container, facts *daemon.Facts) error {
	switch {
	case facts.Here:
		return nil
	case c.Guest.Admin:
		return session.NewError(session.CodeEngineUnsupported,
			"Administrator sessions need a Docker daemon that shares this machine's files.",
			"Launch an ordinary session, or one on a machine with an agent of its own.")
	case len(c.Mounts) > 0 && !facts.Mounts:
		return session.NewError(session.CodeEngineUnsupported,
			"The Docker daemon at "+e.daemon.Host()+" does not share this machine's files, so it can mount none.",
			"Launch without folders and upload what the session needs, or run a Slipway agent on that machine.")
	}
	return nil
}

// deliver copies Slipway's files into a container that is not started.
func (e *Engine) deliver(ctx context.Context, id string, k *kernel) error {
	var files bytes.Buffer
	if err := k.archive(&files); err != nil {
		return daemon.FileFailure("the container's files", err)
	}
	return daemon.ContainerFailure(ctx, id,
		e.daemon.API.CopyToContainer(ctx, id, ownFolder, &files, container.CopyToContainerOptions{}))
}

// archive writes what is mounted where the daemon shares this machine's files, all of it root's.
func (k *kernel) archive(to *bytes.Buffer) error {
	archive := tar.NewWriter(to)
	for _, folder := range []string{"link/", "spool/"} {
		header := &tar.Header{Typeflag: tar.TypeDir, Name: folder, Mode: 0o700, ModTime: time.Now()}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
	}
	for _, file := range []struct {
		name, path string
		mode       fs.FileMode
	}{{"guest", k.guestPath(), 0o755}, {"config.json", k.configPath(), 0o600}} {
		data, err := os.ReadFile(file.path)
		if err != nil {
			return err
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: file.name, Mode: int64(file.mode), Size: int64(len(data)),
			ModTime: time.Now()}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(data); err != nil {
			return err
		}
	}
	return archive.Close()
}
