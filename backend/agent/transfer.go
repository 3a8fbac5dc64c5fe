package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"

	"github.com/shirou/gopsutil/v3/disk"

	"slipway/backend/engine"
	"slipway/backend/layers"
	"slipway/backend/session"
	"slipway/gpu"
)

// diskFree is the room on the disk of a folder.
func diskFree(dir string) (gpu.Bytes, error) {
	usage, err := disk.Usage(dir)
	if err != nil {
		return 0, err
	}
	return gpu.Bytes(usage.Free), nil
}

// DescribeImage implements [session.ImageTransfers].
func (a *Agent) DescribeImage(ctx context.Context, ref string) (session.ImageParts, error) {
	var parts session.ImageParts
	err := within(ctx, a.limits.Call, "image", func(ctx context.Context) (err error) {
		parts, err = a.engine.DescribeImage(ctx, ref)
		return err
	})
	return parts, a.heed(err)
}

// SendImage implements [session.ImageTransfers]. ctx bounds all of the stream.
func (a *Agent) SendImage(ctx context.Context, wish session.ImageWish) (io.ReadCloser, error) {
	if err := within(ctx, a.limits.Call, "image", func(ctx context.Context) error {
		_, err := a.engine.Image(ctx, wish.ID)
		return err
	}); err != nil {
		return nil, a.heed(err)
	}
	reader, writer := io.Pipe()
	stop := context.AfterFunc(ctx, func() { reader.CloseWithError(context.Cause(ctx)) })
	go func() {
		defer stop()
		writer.CloseWithError(a.heed(a.export(ctx, wish, writer)))
	}()
	return reader, nil
}

// export writes the parts wished for, each from its offset.
func (a *Agent) export(ctx context.Context, wish session.ImageWish, to io.Writer) error {
	w, err := layers.NewWriter(to)
	if err != nil {
		return err
	}
	place := func(part string) int {
		return slices.IndexFunc(wish.Parts, func(m session.PartMark) bool { return m.Part == part })
	}
	err = a.engine.ExportImage(ctx, wish.ID, func(part string) bool { return place(part) >= 0 }, func(part string, content io.Reader) error {
		mark := wish.Parts[place(part)]
		if _, err := io.CopyN(io.Discard, content, int64(mark.Offset)); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		return w.Part(mark, content)
	})
	if err != nil {
		return err
	}
	return w.Close()
}

// ExpectImage implements [session.ImageTransfers].
func (a *Agent) ExpectImage(ctx context.Context, parts session.ImageParts) (session.ImageArrival, error) {
	if err := layers.Check(parts); err != nil {
		return session.ImageArrival{}, err
	}
	present := 0
	err := within(ctx, a.limits.Call, "image", func(ctx context.Context) error {
		info, err := a.engine.Info(ctx)
		if err != nil {
			return err
		}
		if arch := defaultArch(info.Arch); parts.Arch != "" && parts.Arch != arch {
			return &session.Error{
				Code: "image_receive_arch", Message: fmt.Sprintf("The image is for %s processors, and this machine has %s ones.", parts.Arch, arch),
				Hint: "Build or pull the image for " + arch + ".",
			}
		}
		present, err = a.engine.PresentLayers(ctx, parts.Layers)
		return err
	})
	if err != nil {
		return session.ImageArrival{}, a.heed(err)
	}
	if err := a.depot.Sweep(); err != nil {
		a.log.Warn("images that nobody went on with are not dropped", "error", err)
	}
	return a.depot.Expect(parts, present)
}

func defaultArch(arch string) string {
	if arch == "" {
		return runtime.GOARCH
	}
	return arch
}

// ReceiveImage implements [session.ImageTransfers].
func (a *Agent) ReceiveImage(_ context.Context, id string) (io.ReadWriteCloser, error) {
	if _, _, err := a.depot.Parts(id); err != nil {
		return nil, err
	}
	near, far := net.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := a.depot.Receive(id, far); err != nil {
			a.log.Info("an image stopped arriving", "image", id, "error", err)
		}
	}()
	go func() {
		select {
		case <-ended:
		case <-a.closed:
			_ = far.Close() // the one that reads it fails
		}
	}()
	return near, nil
}

// InstallImage implements [session.ImageTransfers]. Asked again after it was
// done it returns the image.
func (a *Agent) InstallImage(ctx context.Context, id string) (session.Image, error) {
	a.installing.Lock()
	defer a.installing.Unlock()
	parts, stored, err := a.depot.Parts(id)
	if session.CodeOf(err) == layers.CodeNotFound {
		if image, known := a.engine.Image(ctx, id); known == nil {
			return a.received.tell(image), nil
		}
	}
	if err != nil {
		return session.Image{}, err
	}
	content := map[string]engine.Content{}
	for part, one := range stored {
		content[part] = engine.Content{Size: one.Size, Open: one.Open}
	}
	image, err := a.engine.ImportImage(ctx, parts, content)
	if err != nil {
		return session.Image{}, a.heed(err)
	}
	if image.Origin != nil && len(parts.Owners) > 0 {
		if err := a.received.add(a, image.ID, parts.Owners); err != nil {
			return session.Image{}, err
		}
	}
	return a.received.tell(image), a.depot.Forget(id)
}

// ForgetImage implements [session.ImageTransfers].
func (a *Agent) ForgetImage(_ context.Context, id string) error { return a.depot.Forget(id) }
