package folders

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"slipway/backend/session"
)

// CheckSource looks whether a directory is there and somebody may mount it.
func (f *Folders) CheckSource(owner, source string) *session.FieldError {
	info, err := os.Stat(source)
	e := &session.FieldError{Kind: session.KindInvalid}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		*e = session.Fault("", e.Kind, session.Say("sourceGone", session.Fill("path", source)))
	case err != nil:
		*e = session.Fault("", e.Kind, session.Say("sourceUnreadable", session.Fill("path", source)))
	case !info.IsDir():
		*e = session.Fault("", e.Kind, session.Say("sourceFile", session.Fill("path", source)))
	default:
		_, err := f.config.Machine.OffLimits().Look(source, owner != f.config.Owner)
		if err == nil {
			return nil
		}
		told := session.AsError(err, session.CodeFileInvalid)
		e.Kind, e.Message, e.Hint = session.KindForbidden, told.Message, told.Hint
	}
	return e
}

// Nested finds another person's directory, linked or open to them, that lies in
// one of owner's or around it, and says whose it is: whoever may write to the
// outer one could put a link in place of the inner one and so have another
// mounted. Several people may have the same one, and person, whose agent it is, may
// have what is around others'.
func Nested(path, owner, person string, linked []session.Folder, opened map[string][]string) (other, whose string) {
	if path == "" {
		return "", ""
	}
	around := func(outer, inner, whose string) bool { return liesIn(inner, outer) && whose != person }
	for _, f := range linked {
		if f.Linked() && f.Owner != owner && (around(path, f.Path, owner) || around(f.Path, path, f.Owner)) {
			return f.Path, f.Owner
		}
	}
	for whose, dirs := range opened {
		for _, open := range dirs {
			if around(path, open, owner) || liesIn(path, open) {
				return open, whose
			}
		}
	}
	return "", ""
}

// Overlap says that path cannot be had because of another person's directory.
func Overlap(path, other, whose string) string {
	return fmt.Sprintf("The folder %s lies in %s or the other way round, which is %s's; one of them must go.", path,
		other, whose)
}

func liesIn(path, folder string) bool { return strings.HasPrefix(path, folder+"/") }
