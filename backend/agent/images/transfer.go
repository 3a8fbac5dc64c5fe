package images

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"

	"slipway/backend/engine"
	"slipway/backend/layers"
	"slipway/backend/session"
	"slipway/backend/store"
)

func (m *Images) DescribeImage(ctx context.Context, ref string) (session.ImageParts, error) {
	parts, err := engine.Ask(ctx, m.config.Limits.Call, "image",
		func(ctx context.Context) (session.ImageParts, error) { return m.config.Engine.DescribeImage(ctx, ref) })
	return parts, m.config.Health.Heed(err)
}

// SendImage implements [session.ImageTransfers]. ctx bounds the whole stream.
func (m *Images) SendImage(ctx context.Context, wish session.ImageWish) (io.ReadCloser, error) {
	if _, err := m.image(ctx, wish.ID); err != nil {
		return nil, m.config.Health.Heed(err)
	}
	reader, writer := io.Pipe()
	stop := context.AfterFunc(ctx, func() { reader.CloseWithError(context.Cause(ctx)) })
	go func() {
		defer stop()
		writer.CloseWithError(m.config.Health.Heed(m.export(ctx, wish, writer)))
	}()
	return reader, nil
}

// export writes the requested parts, each from its offset.
func (m *Images) export(ctx context.Context, wish session.ImageWish, to io.Writer) error {
	w, err := layers.NewWriter(to)
	if err != nil {
		return err
	}
	place := func(part string) int {
		return slices.IndexFunc(wish.Parts, func(m session.PartMark) bool { return m.Part == part })
	}
	err = m.config.Engine.ExportImage(ctx, wish.ID, func(part string) bool { return place(part) >= 0 },
		func(part string, content io.Reader) error {
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

type arrivals struct {
	images *Images
	owner  string
}

// Arrivals receives the images that a person sends. It takes a name from another image only when asked to replace it.
func (m *Images) Arrivals(owner string) session.ImageArrivals { return arrivals{m, owner} }

// ExpectImage implements [session.ImageArrivals]. It renames customized images, whose names are people's elsewhere.
func (r arrivals) ExpectImage(ctx context.Context, parts session.ImageParts) (session.ImageArrival, error) {
	if err := layers.Check(parts); err != nil {
		return session.ImageArrival{}, err
	}
	parts.Refs = slices.Clone(parts.Refs)
	for i, ref := range parts.Refs {
		if session.CustomizedRef(ref) && !session.OwnRef(r.owner, ref) {
			parts.Refs[i] = session.BroughtRef(r.owner, ref)
		}
	}
	parts.Refs = slices.DeleteFunc(parts.Refs, func(ref string) bool { return ref == "" })
	m, present := r.images, 0
	err := engine.Within(ctx, m.config.Limits.Call, "image", func(ctx context.Context) error {
		info, err := m.config.Engine.Info(ctx)
		if err != nil {
			return err
		}
		if arch := cmp.Or(info.Arch, runtime.GOARCH); parts.Arch != "" && parts.Arch != arch {
			return session.NewError(session.CodeEngineUnsupported,
				fmt.Sprintf("The image is for %s processors, and this machine has %s ones.", parts.Arch, arch),
				"Build or pull the image for "+arch+".")
		}
		if err := m.mayName(ctx, parts); err != nil {
			return err
		}
		present, err = m.config.Engine.PresentLayers(ctx, parts.Layers)
		return err
	})
	if err != nil {
		return session.ImageArrival{}, m.config.Health.Heed(err)
	}
	if err := m.depot.Sweep(); err != nil {
		m.config.Log.Warn("images whose transfer was left are not dropped", "error", err)
	}
	return m.depot.Expect(r.owner, parts, present)
}

// mayName fails early if a name of an expected image belongs to an image of other layers. The engine checks it again.
func (m *Images) mayName(ctx context.Context, parts session.ImageParts) error {
	for _, ref := range parts.Refs {
		there, err := m.config.Engine.DescribeImage(ctx, ref)
		switch {
		case session.CodeOf(err) == session.CodeNoImage:
		case err != nil:
			return err
		case !parts.Replace && engine.CommonLayers(there.Layers, parts.Layers) != max(len(there.Layers),
			len(parts.Layers)):
			return engine.NameTaken(ref)
		}
	}
	return nil
}

func (r arrivals) ReceiveImage(_ context.Context, id string) (io.ReadWriteCloser, error) {
	m := r.images
	if _, _, err := m.depot.Parts(r.owner, id); err != nil {
		return nil, err
	}
	near, far := net.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := m.depot.Receive(r.owner, id, far); err != nil {
			m.config.Log.Info("an image stopped arriving", "image", id, "error", err)
		}
	}()
	go func() {
		select {
		case <-ended:
		case <-m.closed:
			_ = far.Close() // its reader fails
		}
	}()
	return near, nil
}

// InstallImage implements [session.ImageArrivals]. Called again after it succeeded, it returns the image.
func (r arrivals) InstallImage(ctx context.Context, id string) (session.Image, error) {
	m := r.images
	m.installing.Lock()
	defer m.installing.Unlock()
	parts, stored, err := m.depot.Parts(r.owner, id)
	if session.CodeOf(err) == session.CodeImageUnexpected {
		if image, known := m.config.Engine.Image(ctx, id); known == nil {
			return m.book.tell(image), nil
		}
	}
	if err != nil {
		return session.Image{}, err
	}
	content := map[string]engine.Content{}
	for part, one := range stored {
		content[part] = engine.Content{Size: one.Size, Open: one.Open}
	}
	image, err := m.config.Engine.ImportImage(ctx, parts, content)
	if err != nil {
		return session.Image{}, m.config.Health.Heed(err)
	}
	err = m.book.change(image.ID, func(known *store.Image) {
		if len(known.Owners) > 0 {
			known.Owners = slices.Compact(slices.Sorted(slices.Values(append(known.Owners, r.owner))))
		}
		if known.Origin == nil && image.OnlyOf(r.owner) {
			// It was not made by this agent, so its labels may only say what its owner may read.
			if known.Origin = session.OriginOf(image.Labels); known.Origin != nil {
				known.Origin.Owner, known.Origin.Instance = r.owner, ""
			}
		}
	})
	if err != nil {
		return session.Image{}, err
	}
	return m.book.tell(image), m.depot.Forget(r.owner, id)
}

func (r arrivals) ForgetImage(_ context.Context, id string) error {
	return r.images.depot.Forget(r.owner, id)
}
