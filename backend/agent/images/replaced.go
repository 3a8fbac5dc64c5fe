package images

import (
	"context"
	"slices"
	"time"

	"slipway/backend/session"
)

const (
	sweepFirst   = 10 * time.Minute // after the start, when there is less to do
	sweepEvery   = 24 * time.Hour
	replacedKept = 30 * 24 * time.Hour // after the last session
)

// Run removes once a day the images of projects that newer ones have replaced and that nothing has used for 30 days,
// as [session.ProjectOf] finds them. The newest image of a project stays. It returns when ctx ends.
func (m *Images) Run(ctx context.Context) {
	for wait := sweepFirst; m.config.Clock.Pause(ctx, wait) == nil; wait = sweepEvery {
		if err := m.sweepReplaced(ctx); err != nil && ctx.Err() == nil {
			m.config.Log.Warn("the replaced images of projects are not removed", "error", err)
		}
	}
}

func (m *Images) sweepReplaced(ctx context.Context) error {
	all, err := m.ListImages(ctx)
	if err != nil {
		return err
	}
	ended, err := m.config.Records.List(session.Filter{Finished: true})
	if err != nil {
		return err
	}
	used := map[string]time.Time{}
	for _, s := range ended {
		if s.TerminatedAt != nil && s.TerminatedAt.After(used[s.Spec.Image]) {
			used[s.Spec.Image] = *s.TerminatedAt
		}
	}
	for _, image := range replaced(all, used, m.config.Clock.Now().Add(-replacedKept)) {
		if err := m.RemoveImage(ctx, image.Refs[0]); err != nil {
			return err
		}
		m.config.Log.Info("the replaced image of a project was removed", "image", image.Refs, "size", image.Size)
	}
	return nil
}

// replaced returns the images of projects that have a newer one and that nothing has used since before. used says when
// the last session with a reference ended. Images with a name of another kind are never among them.
func replaced(all []session.Image, used map[string]time.Time, before time.Time) []session.Image {
	newest := map[string]time.Time{} // by project
	for _, image := range all {
		for _, ref := range image.Refs {
			if project, ok := session.ProjectOf(ref); ok && image.CreatedAt.After(newest[project]) {
				newest[project] = image.CreatedAt
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(image session.Image) bool {
		return len(image.Refs) == 0 || len(image.UsedBy) > 0 || image.CreatedAt.After(before) ||
			slices.ContainsFunc(image.Refs, func(ref string) bool {
				project, ok := session.ProjectOf(ref)
				return !ok || !newest[project].After(image.CreatedAt) || used[ref].After(before)
			})
	})
}
