package hub

import (
	"cmp"
	"context"
	"slices"
	"time"

	"slipway/backend/session"
)

// Recipe is what a session or a launch was asked for, fit to be asked for again.
type Recipe struct {
	Name   string
	Spec   session.Spec // without the values of secret-looking variables; its image pinned by digest where one is known
	Pinned bool
	Passed *time.Time // a start time that has passed and is therefore left out
}

// SessionRecipe returns the recipe of a session, by id or by the name of a live
// one. It fails as [Hub.Get] does.
func (l *launches) SessionRecipe(ctx context.Context, ref string) (Recipe, error) {
	s, _, err := l.finder.Get(ctx, ref)
	if err != nil {
		return Recipe{}, err
	}
	return l.recipe(ctx, s.Name, s.Spec, s.Pinned, s.Agent), nil
}

// RecentRecipe returns the recipe of an entry of the launch history;
// recent_read_not-found.
func (l *launches) RecentRecipe(ctx context.Context, id string) (Recipe, error) {
	recents := l.person.Recents()
	i := slices.IndexFunc(recents, func(r Recent) bool { return r.ID == id })
	if i < 0 {
		return Recipe{}, recentNotFound("recent_read_not-found", id)
	}
	r := recents[i]
	pinned, agent := "", r.Spec.Agent
	if s, _, err := l.finder.Get(ctx, string(r.Session)); r.Session != "" && err == nil {
		pinned, agent = s.Pinned, cmp.Or(agent, s.Agent)
	}
	return l.recipe(ctx, r.Name, r.Spec, pinned, agent), nil
}

// recipe leaves a start time out that has passed, and says so: nothing else
// would ever be launched of it. Pinned is the image as it was used, empty where it
// never was.
func (l *launches) recipe(ctx context.Context, name string, spec session.Spec, pinned, agent string) Recipe {
	spec = l.again(ctx, spec)
	var passed *time.Time
	if spec.NotBefore != nil && !spec.NotBefore.After(l.now()) {
		passed, spec.NotBefore = spec.NotBefore, nil
	}
	if pinned == "" {
		pinned = l.pinImage(ctx, spec.Image, agent)
	}
	spec.Image = pinned
	return Recipe{Name: name, Spec: spec, Pinned: session.ImageDigest(pinned) != "" || session.ValidImageID(pinned),
		Passed: passed}
}

// pinImage names an image by the digest that it has now on an agent, or on any that
// has it where none is named; as it is where nobody has it.
func (l *launches) pinImage(ctx context.Context, ref, agent string) string {
	images, err := l.images.ImagesOn(ctx, agent)
	if err != nil {
		l.log.Warn("the images are not listed, so the recipe does not pin one", "agent", agent, "error", err)
		return ref
	}
	for _, image := range images {
		if slices.ContainsFunc(image.Refs, func(name string) bool { return session.SameImage(name, ref) }) {
			return session.PinImage(ref, image.Image)
		}
	}
	return ref
}
