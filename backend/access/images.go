package access

import (
	"context"
	"io"
	"regexp"
	"slices"
	"strings"

	"slipway/backend/session"
)

// private reports whether an image was made of a session of another person's
// here, or was made elsewhere and brought here by others.
func (v *view) private(instance string, i session.Image) bool {
	switch {
	case v.all || i.Origin == nil:
		return false
	case i.Origin.Instance == instance:
		return i.Origin.Owner != v.who.Owner
	}
	return len(i.Received) > 0 && !slices.Contains(i.Received, v.who.Owner)
}

// mine reports whether an image is of whoever asks and of nobody else.
func (v *view) mine(i session.Image) bool {
	if i.Origin == nil {
		return false
	}
	if len(i.Received) > 0 {
		return slices.Equal(i.Received, []string{v.who.Owner})
	}
	return i.Origin.Owner == v.who.Owner
}

// shown returns an image as it is shown to whoever asks, or fails.
func (v *view) shown(ctx context.Context, i session.Image) (session.Image, error) {
	if v.all {
		return i, nil
	}
	m, err := v.inner.Machine(ctx)
	if err == nil && v.private(m.Instance, i) {
		err = noImage(i.ID)
	}
	if err != nil {
		return session.Image{}, err
	}
	return v.users(i), nil
}

func noImage(ref string) error {
	return &session.Error{Code: "engine_image_not-found", Message: "The image " + ref + " is not on this machine.", Hint: "Pull it first."}
}

// image fails for an image that is not shown to whoever asks, as it does for one
// that is not there.
func (v *view) image(ctx context.Context, ref string) (session.Image, error) {
	i, err := v.inner.FindImage(ctx, ref)
	if err != nil || v.all {
		return i, err
	}
	m, err := v.inner.Machine(ctx)
	if err == nil && v.private(m.Instance, i) {
		err = noImage(ref)
	}
	return i, err
}

// hidden reports whether ref is, or could become, an image that is not shown to
// whoever asks: a session may wait for long until its image is looked for.
func (v *view) hidden(ctx context.Context, ref string) (bool, error) {
	if v.all || !session.ValidImage(ref) {
		return false, nil
	}
	i, err := v.inner.FindImage(ctx, ref)
	code := session.CodeOf(err)
	switch {
	case code == "engine_image_not-found", strings.HasSuffix(string(code), "_unavailable"):
		return session.CustomizedRef(ref) || byID.MatchString(ref), nil
	case err != nil || i.Origin == nil:
		return false, err
	}
	m, err := v.inner.Machine(ctx)
	return err == nil && v.private(m.Instance, i), err
}

// byID is how an engine may be asked for an image by the beginning of its id.
var byID = regexp.MustCompile(`^(sha256:)?[0-9a-f]{4,64}$`)

// forbiddenImage is what is wrong with a spec whose image is another's.
func forbiddenImage(ref string) session.FieldError {
	return session.FieldError{Field: "image", Code: "session_create_forbidden-image", Message: "There is no image " + ref + " that you may use.", Hint: "Choose an environment that is listed."}
}

// users keeps those of an image's users and owners that are shown to whoever asks.
func (v *view) users(i session.Image) session.Image {
	if v.all {
		return i
	}
	i.Received = slices.DeleteFunc(slices.Clone(i.Received), func(owner string) bool { return owner != v.who.Owner })
	i.UsedBy = slices.Clone(i.UsedBy)
	for at, u := range i.UsedBy {
		if u.Owner != v.who.Owner {
			i.UsedBy[at] = session.ImageUser{Name: anothers}
		}
	}
	return i
}

// ListImages implements [session.Images].
func (v *view) ListImages(ctx context.Context) ([]session.Image, error) {
	images, err := v.inner.ListImages(ctx)
	if err != nil || v.all {
		return images, err
	}
	m, err := v.inner.Machine(ctx)
	shown := []session.Image{}
	for _, i := range images {
		if !v.private(m.Instance, i) {
			shown = append(shown, v.users(i))
		}
	}
	return shown, err
}

// ImageDisk implements [session.Images]. The sum counts what is others' as well.
func (v *view) ImageDisk(ctx context.Context) (session.ImageDisk, error) {
	disk, err := v.inner.ImageDisk(ctx)
	if err != nil || v.all {
		return disk, err
	}
	m, err := v.inner.Machine(ctx)
	shown := []session.ImageRoom{}
	for _, room := range disk.Images {
		if !v.private(m.Instance, room.Image) {
			room.Image = v.users(room.Image)
			shown = append(shown, room)
		}
	}
	disk.Images = shown
	return disk, err
}

// PullImage implements [session.Images].
func (v *view) PullImage(ctx context.Context, req session.PullRequest) (session.ImageWork, error) {
	req.Owner = v.who.Owner
	work, err := v.inner.PullImage(ctx, req)
	v.note("PullImage", "", req.Ref, err)
	return work, err
}

// CommitSession implements [session.Images].
func (v *view) CommitSession(ctx context.Context, id session.ID, req session.CommitRequest) (session.ImageWork, error) {
	return did(ctx, v, "CommitSession", id, req.Name, func() (session.ImageWork, error) { return v.inner.CommitSession(ctx, id, req) })
}

// ownWork returns a piece of work that is shown to whoever asks.
func (v *view) ownWork(ctx context.Context, id string) error {
	work, err := v.inner.AwaitImageWork(ctx, id, 0)
	if err == nil && !v.all && work.Owner != v.who.Owner {
		_, err = v.inner.AwaitImageWork(ctx, "", 0) // which there never is
	}
	return err
}

// AwaitImageWork implements [session.Images].
func (v *view) AwaitImageWork(ctx context.Context, id string, after uint64) (session.ImageWork, error) {
	if err := v.ownWork(ctx, id); err != nil {
		return session.ImageWork{}, err
	}
	return v.inner.AwaitImageWork(ctx, id, after)
}

// CancelImageWork implements [session.Images].
func (v *view) CancelImageWork(ctx context.Context, id string) (session.ImageWork, error) {
	if err := v.ownWork(ctx, id); err != nil {
		return session.ImageWork{}, err
	}
	work, err := v.inner.CancelImageWork(ctx, id)
	v.note("CancelImageWork", work.Session, work.Ref, err)
	return work, err
}

// RemoveImage implements [session.Images]. A user removes what they made.
func (v *view) RemoveImage(ctx context.Context, ref string) error {
	i, err := v.image(ctx, ref)
	if err == nil && !v.all && !v.mine(i) {
		err = &session.Error{Code: "image_remove_forbidden", Message: "You may remove only images that you made of your sessions here, or brought here alone.", Hint: "Ask whoever rules the agent."}
	}
	if err == nil {
		err = v.inner.RemoveImage(ctx, ref)
	}
	v.note("RemoveImage", "", ref, err)
	return err
}

// DescribeImage implements [session.ImageTransfers].
func (v *view) DescribeImage(ctx context.Context, ref string) (session.ImageParts, error) {
	if _, err := v.image(ctx, ref); err != nil {
		return session.ImageParts{}, err
	}
	return v.inner.DescribeImage(ctx, ref)
}

// SendImage implements [session.ImageTransfers].
func (v *view) SendImage(ctx context.Context, wish session.ImageWish) (io.ReadCloser, error) {
	_, err := v.image(ctx, wish.ID)
	var stream io.ReadCloser
	if err == nil {
		stream, err = v.inner.SendImage(ctx, wish)
	}
	v.note("SendImage", "", wish.ID, err)
	return stream, err
}
