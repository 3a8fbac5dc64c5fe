package images

import (
	"slices"
	"testing"
	"time"

	"slipway/backend/session"
)

func TestOnlyReplacedImagesOfProjectsAreRemoved(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 11, n, 0, 0, 0, 0, time.UTC) }
	paper := func(sum byte) string { return session.ProjectRef("ada", "paper", []byte{sum}) }
	image := func(id string, made int, refs ...string) session.Image {
		return session.Image{ID: id, CreatedAt: day(made), Refs: refs}
	}
	live := image("live", 1, paper(3))
	live.UsedBy = []session.ImageUser{{Name: "study"}}
	all := []session.Image{
		image("old", 1, paper(1)),
		image("used", 1, paper(2)),
		live,
		image("kept", 1, paper(4), "mine:1"),
		image("unnamed", 1),
		image("base", 1, "python:3.12"),
		image("made", 1, session.CommitRef("ada", "study")),
		image("young", 9, paper(5)),
		image("other", 1, session.ProjectRef("ada", "thesis", []byte{1})),
		image("theirs", 1, session.ProjectRef("bob", "paper", []byte{1})),
		image("newest", 20, paper(6)),
	}
	used := map[string]time.Time{paper(1): day(2), paper(2): day(10)}
	var gone []string
	for _, one := range replaced(all, used, day(8)) {
		gone = append(gone, one.ID)
	}
	if !slices.Equal(gone, []string{"old"}) {
		t.Errorf("removed are %q", gone)
	}
}
