package session

import (
	"fmt"
	"strings"

	"slipway/gpu"
)

// MaxCommitOnEnd is the most images that [Spec.CommitOnEnd] may keep.
const MaxCommitOnEnd = 50

// EndImage is the image that is made of a session as it ends, as
// [Spec.CommitOnEnd] asks for. A session that ended without one for want of
// room, say, keeps its main container, stopped, until it is made an image after
// all ([Images.CommitSession]) or dropped ([Sessions.Terminate], forced).
type EndImage struct {
	State ImageWorkState `json:"state"`
	Name  string         `json:"name"` // of the image, in the manner of [SeriesName]
	Ref   string         `json:"ref"`
	Size  gpu.Bytes      `json:"size"` // of what the session changed; 0 while unknown
	Kept  bool           `json:"kept"`
	Error *Cause         `json:"error,omitempty"` // why there is none
}

// EndsInImage reports whether an image is to be made of a session whose end is
// under way. Nothing is made of one that never ran or that is forced to end, nor
// of a batch session that failed: what it left behind would push aside the
// images of those that succeeded.
func (s Session) EndsInImage() bool {
	if s.Spec.CommitOnEnd == 0 || s.Forced || s.StartedAt == nil {
		return false
	}
	if s.Spec.Type == Batch {
		switch s.Stopping {
		case ReasonTaskFailed, ReasonOOM, ReasonLost, ReasonStartFailed:
			return false
		}
	}
	return true
}

// KeepsContainer reports whether an ended session still has its main container.
func (s Session) KeepsContainer() bool {
	return s.Status.Terminal() && s.EndImage != nil && s.EndImage.Kept
}

// SeriesName names the image of a number in the series of a session's name. It
// keeps the rule of [CommitNames], whatever the name of the session.
func SeriesName(name string, number int) string {
	slug := strings.Map(func(r rune) rune {
		if r == '.' {
			return '-'
		}
		return r
	}, name)
	ending := fmt.Sprintf("-%d", number)
	return strings.TrimRight(slug[:min(len(slug), CommitNames.Max-len(ending))], "-") + ending
}

// validateCommitOnEnd checks how many images are to be kept.
func (s Spec) validateCommitOnEnd(f *findings) {
	if s.CommitOnEnd < 0 || s.CommitOnEnd > MaxCommitOnEnd {
		f.add("commitOnEnd", KindRange, fmt.Sprintf("%d is not a number of images between 1 and %d.",
			s.CommitOnEnd, MaxCommitOnEnd),
			"Write how many of the newest images to keep, or leave it empty to make none.")
	}
}
