package hub

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"slipway/backend/session"
	"slipway/gpu"
)

// FileSyncing asks for two folders, or directories in them, to be made equal: what changed on one side since the last
// sync of the two is copied to the other, or deleted there. What is named .git is left alone.
type FileSyncing struct {
	This    FileEnd `json:"this"`
	That    FileEnd `json:"that"`
	Ignored bool    `json:"ignored,omitempty"` // also what files named .gitignore ignore
	Delete  bool    `json:"delete,omitempty"`  // delete without asking what was deleted on the other side
	Keep    Keeping `json:"keep,omitempty"`    // of what changed on both sides: this, that or both; empty: ask
	// Send only copies what changed in This, and asks nothing: it fails if That has changed the same file, or has files
	// and was never synced with This. It fills an empty That also with what is named .git.
	Send bool `json:"send,omitempty"`
}

// Keeping is what to keep of a file that changed on both sides.
type Keeping string

// What can be kept. With both, one of them gets another name.
const (
	KeepThis Keeping = "this"
	KeepThat Keeping = "that"
	KeepBoth Keeping = "both"
)

// forAll follows an answer that is for all further questions of the kind.
const forAll = " all"

// SyncFiles starts to sync two folders, as an operation. What is done stays when it ends early, and the same request
// continues there.
func (t *transfers) SyncFiles(ctx context.Context, req FileSyncing) (Operation, error) {
	s := &syncing{shared: t.state.shared, req: req, keep: req.Keep}
	if !slices.Contains([]Keeping{"", KeepThis, KeepThat, KeepBoth}, req.Keep) {
		return Operation{}, session.NewError(session.CodeFileInvalid,
			fmt.Sprintf("%q cannot be kept.", session.Clip(string(req.Keep))), "Write this, that or both.")
	}
	slots := make(chan struct{}, copiesAtOnce)
	var ends [2]copyEnd
	var paths, folders, keys [2]string
	for i, end := range []FileEnd{req.This, req.That} {
		if end.Session != "" {
			return Operation{}, session.NewError(session.CodeFileInvalid, "Only folders are synced.",
				"Name a folder for each side.")
		}
		found, f, err := t.endOf(ctx, end)
		if err != nil {
			return Operation{}, err
		}
		ends[i], folders[i], paths[i] = found, f.Name, strings.TrimPrefix(clean(end.Path), "/")
		s.names[i], keys[i] = found.member.Name(), fmt.Sprintf("%s %q", f.ID, paths[i])
	}
	if ends[0].member == ends[1].member {
		s.names = [2]string{path.Join(folders[0], paths[0]), path.Join(folders[1], paths[1])}
	}
	if ends[0].place == ends[1].place && (inside(clean(paths[0]), clean(paths[1])) ||
		inside(clean(paths[1]), clean(paths[0]))) {
		return Operation{}, session.NewError(session.CodeFileInvalid, "A directory cannot be synced with itself.",
			"Choose another folder.")
	}
	for i := range ends {
		s.copies[i] = &fileCopy{transfers: t, from: ends[i], to: ends[1-i], source: paths[i], target: paths[1-i],
			copyRule: copyRule{replace: true, steady: true}, slots: slots}
	}
	s.key, s.first = brief(min(keys[0], keys[1]), max(keys[0], keys[1])), truth(keys[0] > keys[1])
	return t.folders.operations.startOn("sync "+s.key, FileSync, subjectAt(folders[0], ends[0].member),
		func(ctx context.Context, work *Work) error {
			work.Concerns(ends[1].member.Name())
			work.change(func(one *operation) { one.Folder = folders[1] })
			s.work, s.copies[0].work, s.copies[1].work = work, work, work
			return s.run(ctx)
		})
}

// verdict is what is to be done about a path.
type verdict int

const (
	open   verdict = iota // not decided yet
	same                  // nothing
	send                  // copy it from a side
	remove                // delete it on a side
	clash                 // ask: both sides have changed
	leave                 // not now: it would change this side, or delete something
)

// decision is a verdict about a path, and the side that has what is sent or removed.
type decision struct {
	verdict
	side int
}

// judge decides what this sync does about a path.
func (s *syncing) judge(n *syncNode) decision {
	d := s.merge(n)
	switch {
	case !s.req.Send:
	case d.verdict == remove, d == decision{send, 1}:
		d = decision{leave, 0}
	case d.verdict == send && isDirectory(n.sides[1]):
		d = decision{clash, 0}
	}
	return d
}

// merge decides from what both sides have now, and had after the last sync.
func (s *syncing) merge(n *syncNode) decision {
	changed := [2]bool{digest(n.sides[0]) != s.had(n, 0), digest(n.sides[1]) != s.had(n, 1)}
	side, equal := 0, n.equal || isDirectory(n.sides[0]) && isDirectory(n.sides[1])
	switch {
	case equal || !changed[0] && !changed[1]:
		return decision{same, 0}
	case n.sides[0].Kind == "" || n.sides[1].Kind == "":
		if n.sides[0].Kind == "" {
			side = 1
		}
		if !changed[side] {
			return decision{remove, side}
		}
		return decision{send, side}
	case changed[0] == changed[1]:
		return decision{clash, 0}
	case changed[1]:
		side = 1
	}
	if isDirectory(n.sides[1-side]) && !s.untouched(n, 1-side) {
		return decision{clash, 0}
	}
	return decision{send, side}
}

// untouched reports whether a directory of one side has what it had after the last sync, and nothing besides.
func (s *syncing) untouched(n *syncNode, side int) bool {
	return !n.partly && digest(n.sides[side]) == s.had(n, side) &&
		!slices.ContainsFunc(n.children, func(child *syncNode) bool { return !s.untouched(child, side) })
}

// plan decides about a path and all in it, unless that is given. It reports whether some of it is sent, and whether
// some of it stays where it is though the other side does not have it.
func (s *syncing) plan(ctx context.Context, n *syncNode, given decision) (sent, left bool, err error) {
	if before, ok := s.before[brief(n.path)]; ok {
		s.after[brief(n.path)] = before
	}
	now, forced := given, given.verdict != open
	if !forced {
		now = s.judge(n)
	}
	if now.verdict == clash {
		forced = true
		if now, err = s.settle(ctx, n); err != nil {
			return false, false, err
		}
	}
	side, inner := now.side, decision{}
	there := n.sides[1-side]
	if forced || now.verdict == send && there.Kind != "" {
		inner = now
	}
	switch {
	case now.verdict == same:
		s.note(n)
		inner = decision{}
	case now.verdict == send && isDirectory(there): // its contents make room
		inner = decision{remove, 1 - side}
	}
	for _, child := range n.children {
		childSent, childLeft, err := s.plan(ctx, child, inner)
		if err != nil {
			return false, false, err
		}
		sent, left = sent || childSent, left || childLeft
	}
	switch {
	case now.verdict == same:
	case now.verdict == leave && !sent:
		s.kept += truth(!isDirectory(n.sides[0]) && !isDirectory(n.sides[1]))
	case now.verdict == send && isDirectory(there):
		s.removes[1-side] = append(s.removes[1-side], n)
		fallthrough
	case now.verdict == send, sent:
		s.sends[side] = append(s.sends[side], n)
		return true, left, nil
	case left || n.partly:
		return false, true, nil
	default:
		s.removes[side] = append(s.removes[side], n)
	}
	return sent, left, nil
}

// settle asks what to keep of a path that has changed on both sides.
func (s *syncing) settle(ctx context.Context, n *syncNode) (decision, error) {
	s.asked++
	keep := s.keep
	for again := false; keep == ""; again = true {
		answer, err := s.work.Ask(ctx, Prompt{Kind: PromptKeep, Again: again, Sides: s.names[:],
			Remaining: s.conflicts - s.asked, Text: fmt.Sprintf("%s changed on both sides: %s on %s, and %s on %s.",
				quoted(n.path), describe(n.sides[0]), s.names[0], describe(n.sides[1]), s.names[1])})
		if err != nil {
			return decision{}, err
		}
		text, all := strings.CutSuffix(answer, forAll)
		if slices.Contains([]Keeping{KeepThis, KeepThat, KeepBoth}, Keeping(text)) {
			keep = Keeping(text)
		}
		if all {
			s.keep = keep
		}
	}
	switch keep {
	case KeepThis:
		return decision{send, 0}, nil
	case KeepThat:
		return decision{send, 1}, nil
	}
	side := truth(!isDirectory(n.sides[1])) // a directory keeps its name
	twin := &syncNode{path: s.free(n, side), parent: n.parent}
	twin.sides[side], n.sides[side] = n.sides[side], session.FileInfo{}
	s.moves[side] = append(s.moves[side], move{n.path, twin})
	s.sends[side] = append(s.sends[side], twin)
	n.parent.children = append(slices.Clip(n.parent.children), twin) // its name is taken
	return decision{send, 1 - side}, nil
}

// move gives a file another name.
type move struct {
	from string
	to   *syncNode
}

func describe(info session.FileInfo) string {
	switch {
	case info.Link:
		return "a link"
	case isDirectory(info):
		return "a directory"
	}
	return gpu.Bytes(info.Size).String() + " of " + info.Modified.UTC().Format("2006-01-02 15:04 MST")
}

// quoted writes a name that another machine has sent.
func quoted(name string) string { return strconv.Quote(session.Clip(name)) }

// free returns the name of the second one of two files that are both kept.
func (s *syncing) free(n *syncNode, side int) string {
	ext := path.Ext(n.path)
	if path.Base(n.path) == ext {
		ext = ""
	}
	stem := strings.TrimSuffix(n.path, ext) + ".conflict-" + strings.ReplaceAll(s.names[side], "/", "-")
	name := stem + ext
	for i := 2; slices.ContainsFunc(n.parent.children, func(c *syncNode) bool { return c.path == name }); i++ {
		name = fmt.Sprintf("%s-%d%s", stem, i, ext)
	}
	return name
}

// mayRemove asks once whether what was deleted on one side is to be deleted on the other.
func (s *syncing) mayRemove(ctx context.Context) error {
	var counts, names []string
	for side, all := range s.removes {
		if len(all) == 0 {
			continue
		}
		files := slices.DeleteFunc(slices.Clone(all), func(n *syncNode) bool { return isDirectory(n.sides[side]) })
		what := plural(len(files), "file", "files")
		if len(files) == 0 {
			files, what = all, plural(len(all), "directory", "directories")
		}
		counts = append(counts, what+" on "+s.names[side])
		for _, n := range files {
			names = append(names, quoted(n.path))
		}
	}
	if len(counts) == 0 || s.req.Delete {
		return nil
	}
	answer, err := s.work.Ask(ctx, Prompt{Kind: PromptConfirm, Text: fmt.Sprintf(
		"Delete %s? Deleted on the other side: %s.", strings.Join(counts, " and "), firstOf(names))})
	if err != nil {
		return err
	}
	if !slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(answer))) {
		s.removes = [2][]*syncNode{}
		s.work.Tell(Step{Name: "delete", Title: deleteTitle, State: StepSkipped, Detail: "The next sync asks again."})
	}
	return nil
}

// firstOf lists the first few names.
func firstOf(names []string) string {
	const named = 5
	if len(names) > named {
		names = append(names[:named:named], fmt.Sprintf("and %d more", len(names)-named))
	}
	return strings.Join(names, ", ")
}

func plural(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
