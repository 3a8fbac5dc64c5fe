package daemon

import (
	"archive/tar"
	"bytes"
	"context"
	"io"

	"github.com/docker/docker/api/types/image"

	"slipway/backend/session"
)

// MakeEmptyImage makes [session.EmptyImage] if the daemon does not have it.
func (d *Daemon) MakeEmptyImage(ctx context.Context) error {
	if _, err := d.API.ImageInspect(ctx, session.EmptyImage); err == nil {
		return nil
	}
	var empty bytes.Buffer
	if err := tar.NewWriter(&empty).Close(); err != nil {
		return err
	}
	reply, err := d.API.ImageImport(ctx, image.ImportSource{Source: &empty, SourceName: "-"}, session.EmptyImage,
		image.ImportOptions{})
	if err != nil {
		return err
	}
	defer reply.Close()                 //nolint:errcheck // read to its end
	_, err = io.Copy(io.Discard, reply) // the image is there once it has said all
	return err
}
