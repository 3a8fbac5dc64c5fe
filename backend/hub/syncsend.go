package hub

import (
	"context"
	"fmt"

	"slipway/backend/session"
)

// fillMark is in the state of a pair whose second side is not filled yet. It is no [brief].
const fillMark = "fill"

// mayFill fails if the second side has files and was never synced with the first, and finds out whether it is filled.
func (s *syncing) mayFill(ctx context.Context) error {
	if len(s.before) > 0 {
		_, s.fills = s.before[fillMark]
		return nil
	}
	s.fills = true
	c := s.copies[1]
	return c.each(ctx, c.from, c.source, 0, func(string, session.FileInfo) error {
		return session.NewError(session.CodeFileExists, fmt.Sprintf(
			"The folder %s on %s has files and was never synced with this one.", s.req.That.Folder, s.names[1]),
			"Choose another name with --folder, or sync the two: "+s.command())
	})
}

// refuse says what changed on both sides. Nothing is done then.
func (s *syncing) refuse(both []*syncNode) error {
	var names []string
	for _, n := range both {
		if !n.equal {
			names = append(names, quoted(n.path))
		}
	}
	return session.NewError(session.CodeFileConflict,
		fmt.Sprintf("Changed on %s and on %s: %s.", s.names[0], s.names[1], firstOf(names)),
		"Decide what to keep: "+s.command())
}

// sent says what is sent, and how to sync the rest.
func (s *syncing) sent() string {
	text := fmt.Sprintf("%d to %s", len(s.sends[0]), s.names[1])
	if s.kept > 0 {
		text += fmt.Sprintf("; not synced, because changed on %s or deleted: %s. To sync them, too: %s",
			s.names[1], plural(s.kept, "file", "files"), s.command())
	}
	return text
}

// command is what syncs the two both ways.
func (s *syncing) command() string {
	name := func(end FileEnd) string {
		name := end.Folder
		if end.Agent != "" {
			name += "@" + end.Agent
		}
		if end.Path != "" {
			name += "/" + end.Path
		}
		return name
	}
	return "slipway folder sync " + name(s.req.This) + " " + name(s.req.That)
}
