package images

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/distribution/reference"

	"slipway/backend/engine"
	"slipway/backend/layers"
	"slipway/backend/session"
	"slipway/gpu"
)

// Pull asks the registry itself, from the login node. The layers are stored as those of an import.
func (s *Store) Pull(ctx context.Context, ref string, login engine.Login,
	progress func(session.Pull)) (private bool, err error) {
	if err := ended(ctx); err != nil {
		return false, err
	}
	if session.IsEmptyImage(ref) {
		return false, nil
	}
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil || !session.ValidImage(ref) {
		return false, session.Because(session.CodeEngineInvalid,
			session.Say("pullInvalid", session.Fill("image", ref)), session.Say("pullInvalidHint")).Failure(err)
	}
	tagged, ok := reference.TagNameOnly(named).(reference.Tagged)
	if !ok || strings.Contains(ref, "@") {
		return false, session.NewError(session.CodeEngineUnsupported,
			"On this cluster images are pulled by their tags.",
			"Write the image with its tag, for example python:3.12.")
	}
	own := login.For(reference.Domain(named))
	r := openRegistry(ref, named, nil)
	defer r.close()
	m, err := r.manifest(ctx, tagged.Tag())
	code := session.CodeOf(err)
	if own != nil && (code == session.CodePullForbidden || code == session.CodePullNotFound) {
		r.login, r.header, private = own, "", true
		m, err = r.manifest(ctx, tagged.Tag())
	}
	if err != nil {
		return private, err
	}
	return private, s.fetch(ctx, r, m, ref, progress)
}

// fetch imports an image from its registry.
func (s *Store) fetch(ctx context.Context, r *registry, m manifest, ref string, progress func(session.Pull)) error {
	data, err := r.read(ctx, "blobs/"+m.Config.Digest, "", configMost)
	if err != nil {
		return err
	}
	var said struct {
		config
		Architecture string `json:"architecture"`
		OS           string `json:"os"`
	}
	if err := json.Unmarshal(data, &said); err != nil || len(said.RootFS.Layers) != len(m.Layers) {
		return engine.Incomplete("its configuration does not have its layers")
	}
	parts := session.ImageParts{ID: m.Config.Digest, Refs: []string{ref}, Arch: said.Architecture, OS: said.OS,
		Replace: true}
	watch := &watcher{progress: progress, began: time.Now(), pull: session.Pull{Layers: len(m.Layers)}}
	content := map[string]engine.Content{session.ImageConfig: {Size: gpu.Bytes(len(data)),
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}}
	for i, layer := range m.Layers {
		if !idRule.MatchString(layer.Digest) || layer.Size < 0 {
			return engine.Incomplete("one of its layers is not named by its digest")
		}
		digest := said.RootFS.Layers[i]
		parts.Layers = append(parts.Layers, session.ImageLayer{Digest: digest})
		if present, _ := s.PresentLayers(ctx, parts.Layers[i:]); present > 0 {
			watch.pull.LayersDone++
			continue
		}
		watch.pull.Total += gpu.Bytes(layer.Size)
		content[digest] = engine.Content{Open: func() (io.ReadCloser, error) {
			reply, err := r.get(ctx, "blobs/"+layer.Digest, "") //nolint:bodyclose // Inflate closes it
			if err != nil {
				return nil, err
			}
			return layers.Inflate(&download{ctx: ctx, from: r, watch: watch, body: reply.Body})
		}}
	}
	watch.tell(true)
	_, err = s.ImportImage(ctx, parts, content)
	return err
}

// watcher adds up what was downloaded.
type watcher struct {
	progress func(session.Pull)
	began    time.Time
	told     time.Time
	pull     session.Pull
}

// tellEvery is the least time between two reports of progress.
const tellEvery = 200 * time.Millisecond

func (w *watcher) tell(now bool) {
	if !now && time.Since(w.told) < tellEvery {
		return
	}
	w.told = time.Now()
	if seconds := w.told.Sub(w.began).Seconds(); seconds > 0 {
		w.pull.Rate = gpu.Bytes(float64(w.pull.Current) / seconds)
	}
	w.progress(w.pull)
}

// download is a layer on its way.
type download struct {
	ctx   context.Context //nolint:containedctx // of the pull that reads
	from  *registry
	watch *watcher
	body  io.ReadCloser
}

func (d *download) Read(p []byte) (int, error) {
	n, err := d.body.Read(p)
	d.watch.pull.Current += gpu.Bytes(n)
	switch {
	case errors.Is(err, io.EOF):
		d.watch.pull.LayersDone++
		d.watch.tell(true)
	case err != nil:
		return n, d.from.failure(d.ctx, session.CodePullUnavailable, err)
	default:
		d.watch.tell(false)
	}
	return n, err
}

func (d *download) Close() error { return d.body.Close() }
