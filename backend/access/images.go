package access

import (
	"context"
	"io"
	"regexp"
	"slices"
	"strings"

	"slipway/backend/session"
)

// sees reports whether the caller may see an image.
func (v person) sees(i session.Image) bool {
	return v.all || i.ShownTo(v.who.Owner, v.inner.Allowance(v.who.Owner).Logins)
}

func noImage(ref string) error {
	return session.NewError(session.CodeNoImage, "The image "+ref+" is not on this machine.", "Pull it first.")
}

// image returns an image. Those that the caller may not see are not found.
func (v person) image(ctx context.Context, ref string) (session.Image, error) {
	i, err := v.inner.FindImage(ctx, ref)
	if err == nil && !v.sees(i) {
		err = noImage(ref)
	}
	return i, err
}

// hidden reports whether the caller may not see the image ref, or one that ref could name when a waiting session
// starts.
func (v person) hidden(ctx context.Context, ref string) (bool, error) {
	if v.all || !session.ValidImage(ref) {
		return false, nil
	}
	i, err := v.inner.FindImage(ctx, ref)
	switch code := session.CodeOf(err); {
	case code == session.CodeNoImage, strings.HasSuffix(string(code), "_unavailable"):
		return session.CustomizedRef(ref) && !session.OwnRef(v.who.Owner, ref) || byID.MatchString(ref), nil
	case err != nil:
		return false, err
	}
	return !v.sees(i), nil
}

// byID matches what an engine may take for the beginning of an image's id.
var byID = regexp.MustCompile(`^(sha256:)?[0-9a-f]{4,64}$`)

// forbiddenImage describes an image of somebody else in a spec.
func forbiddenImage(ref string) session.FieldError {
	return session.FieldError{Field: "image", Kind: session.KindForbidden,
		Message: "There is no image " + ref + " that you may use.", Hint: "Choose an environment that is listed."}
}

// theirs removes the names, users and owners of an image that the caller may not see.
func (v person) theirs(i session.Image) session.Image {
	if v.all {
		return i
	}
	i.Refs = v.names(i.Refs)
	i.Owners = slices.DeleteFunc(slices.Clone(i.Owners), func(owner string) bool { return owner != v.who.Owner })
	i.UsedBy = slices.Clone(i.UsedBy)
	for at, u := range i.UsedBy {
		if u.Owner != v.who.Owner {
			i.UsedBy[at] = session.ImageUser{Name: anothers}
		}
	}
	return i
}

// names removes the names that belong to other people.
func (v person) names(refs []string) []string {
	return slices.DeleteFunc(slices.Clone(refs), func(ref string) bool {
		return !v.all && session.CustomizedRef(ref) && !session.OwnRef(v.who.Owner, ref)
	})
}

func (v *view) ListImages(ctx context.Context) ([]session.Image, error) {
	images, err := v.agent.ListImages(ctx)
	shown := []session.Image{}
	for _, i := range images {
		if v.sees(i) {
			shown = append(shown, v.theirs(i))
		}
	}
	return shown, err
}

// ImageDisk implements [session.Images]. The total includes images of others.
func (v *view) ImageDisk(ctx context.Context) (session.ImageDisk, error) {
	disk, err := v.agent.ImageDisk(ctx)
	shown := []session.ImageRoom{}
	for _, room := range disk.Images {
		if v.sees(room.Image) {
			room.Image = v.theirs(room.Image)
			shown = append(shown, room)
		}
	}
	disk.Images = shown
	return disk, err
}

// PullImage implements [session.Images]. A pull may change what a name means, so a user can pull only new names.
func (v *view) PullImage(ctx context.Context, req session.PullRequest) (work session.ImageWork, err error) {
	req.Owner, req.ByAdmin = v.who.Owner, v.all
	if !v.all && session.ValidImage(req.Ref) {
		err = v.mayPull(ctx, req.Ref)
	}
	if err == nil {
		work, err = v.agent.PullImage(ctx, req)
	}
	v.note("PullImage", "", req.Ref, err)
	return work, err
}

// mayPull fails for a name that is on the machine.
func (v person) mayPull(ctx context.Context, ref string) error {
	i, err := v.inner.FindImage(ctx, ref)
	e := session.NewError(session.CodeAgentForbidden, "Only an admin may pull "+ref+".",
		"Ask an admin of that machine.")
	switch {
	case session.CodeOf(err) == session.CodeNoImage:
		return nil
	case err != nil:
		return err
	case v.sees(i):
		e.Message, e.Hint = ref+" is on this machine already, and only an admin may update it.",
			"Use it as it is, or ask an admin of that machine."
	}
	return e
}

// ownWork is like own for image works.
func (v person) ownWork(ctx context.Context, id string) error {
	work, err := v.agent.AwaitImageWork(ctx, id, 0)
	if err == nil && !v.all && work.Owner != v.who.Owner {
		_, err = v.agent.AwaitImageWork(ctx, "", 0) // which does not exist
	}
	return err
}

func (v *view) AwaitImageWork(ctx context.Context, id string, after uint64) (session.ImageWork, error) {
	if err := v.ownWork(ctx, id); err != nil {
		return session.ImageWork{}, err
	}
	return v.agent.AwaitImageWork(ctx, id, after)
}

func (v *view) CancelImageWork(ctx context.Context, id string) (session.ImageWork, error) {
	if err := v.ownWork(ctx, id); err != nil {
		return session.ImageWork{}, err
	}
	work, err := v.agent.CancelImageWork(ctx, id)
	v.note("CancelImageWork", work.Session, work.Ref, err)
	return work, err
}

// RemoveImage implements [session.Images]. A user can remove their own images.
func (v *view) RemoveImage(ctx context.Context, ref string) error {
	i, err := v.image(ctx, ref)
	if err == nil && !v.all && !i.OnlyOf(v.who.Owner) {
		err = session.NewError(session.CodeAgentForbidden,
			"You may remove only images that you made from your sessions here or uploaded yourself.", "Ask an admin.")
	}
	if err == nil {
		err = v.agent.RemoveImage(ctx, ref)
	}
	v.note("RemoveImage", "", ref, err)
	return err
}

func (v *view) DescribeImage(ctx context.Context, ref string) (session.ImageParts, error) {
	if _, err := v.image(ctx, ref); err != nil {
		return session.ImageParts{}, err
	}
	parts, err := v.agent.DescribeImage(ctx, ref)
	parts.Refs = v.names(parts.Refs)
	return parts, err
}

func (v *view) SendImage(ctx context.Context, wish session.ImageWish) (stream io.ReadCloser, err error) {
	if _, err = v.image(ctx, wish.ID); err == nil {
		stream, err = v.agent.SendImage(ctx, wish)
	}
	v.note("SendImage", "", wish.ID, err)
	return stream, err
}

// ExpectImage implements [session.ImageTransfers]. An upload of a user gets their own names, so that it replaces no
// image of others.
func (v *view) ExpectImage(ctx context.Context, parts session.ImageParts) (session.ImageArrival, error) {
	if !v.all {
		parts.Replace, parts.Refs = false, v.brought(parts)
	}
	arrival, err := v.inner.Arrivals(v.who.Owner).ExpectImage(ctx, parts)
	v.note("ExpectImage", "", parts.ID, err)
	return arrival, err
}

// brought returns the names of an upload of a user.
func (v person) brought(parts session.ImageParts) []string {
	refs := parts.Refs
	if len(refs) == 0 {
		name := strings.TrimPrefix(parts.ID, "sha256:")
		refs = []string{"image:" + name[:min(len(name), 12)]}
	}
	own := make([]string, len(refs))
	for i, ref := range refs {
		if own[i] = ref; !session.OwnRef(v.who.Owner, ref) {
			own[i] = session.BroughtRef(v.who.Owner, ref)
		}
	}
	return own
}

func (v *view) ReceiveImage(ctx context.Context, id string) (io.ReadWriteCloser, error) {
	stream, err := v.inner.Arrivals(v.who.Owner).ReceiveImage(ctx, id)
	v.note("ReceiveImage", "", id, err)
	return stream, err
}

// InstallImage implements [session.ImageTransfers]. Knowing the id of an image is not enough to see it.
func (v *view) InstallImage(ctx context.Context, id string) (session.Image, error) {
	image, err := v.inner.Arrivals(v.who.Owner).InstallImage(ctx, id)
	if err == nil && !v.sees(image) {
		image, err = session.Image{}, noImage(id)
	}
	v.note("InstallImage", "", id, err)
	return v.theirs(image), err
}

func (v *view) ForgetImage(ctx context.Context, id string) error {
	err := v.inner.Arrivals(v.who.Owner).ForgetImage(ctx, id)
	v.note("ForgetImage", "", id, err)
	return err
}
