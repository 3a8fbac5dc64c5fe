package hub

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"slipway/backend/gitignore"
	"slipway/backend/session"
)

const (
	syncMost   = 200_000   // paths of one sync, since they are held in memory and stored
	ignoreMost = 256 << 10 // bytes of all files named .gitignore, whose rules take much more memory
	syncsKept  = 32        // pairs whose last state is stored
	syncsKey   = "hub.syncs"
	syncKey    = "hub.sync." // followed by the key of a pair

	deleteTitle = "Delete what the other side deleted"
)

// syncing is one run of SyncFiles. Its two sides are numbered: this is 0, that is 1.
type syncing struct {
	*shared
	syncState
	req    FileSyncing
	work   *Work
	copies [2]*fileCopy // from each side to the other
	names  [2]string    // of the sides, for people
	keep   Keeping      // of what changed on both sides; empty: ask

	listed, ruled atomic.Int64 // files, and bytes of those named .gitignore
	syncCount
	moves          [2][]move
	sends, removes [2][]*syncNode // by the side that has them
	left           atomic.Int64   // they have changed since they were listed
}

type syncCount struct{ conflicts, asked, kept int }

// syncState is what both sides of a pair had after the last sync, and have now, by [brief] of their path.
type syncState struct {
	key           string // of the pair, the same in both directions
	first         int    // the side whose digest is stored first
	before, after map[string][2]string
	fills         bool       // the second side was empty, and is not filled yet
	noting        sync.Mutex // guards after while paths are copied and deleted
}

// syncNode is a path of the two trees.
type syncNode struct {
	path     string
	parent   *syncNode
	sides    [2]session.FileInfo // without a kind: not there
	children []*syncNode
	rules    [2]gitignore.Rules
	partly   bool // some of what is in it is not synced
	equal    bool // both sides have changed, and have the same now
}

// digest is what a side has at a path; empty: nothing. Times and permissions of directories are not compared.
func digest(info session.FileInfo) string {
	switch {
	case info.Link:
		return brief("link", info.Target)
	case isDirectory(info):
		return "d"
	case info.Kind == "":
		return ""
	}
	return brief(info.Size, info.Modified.UnixNano(), info.Mode)
}

func brief(of ...any) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%#v", of))
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

// save stores what both sides have, and forgets the pair that was synced longest ago.
func (s *syncing) save() error {
	s.saving.Lock()
	defer s.saving.Unlock()
	keys := read[[]string](s.shared, syncsKey, "the list of syncs cannot be read")
	keys = append([]string{s.key}, slices.DeleteFunc(keys, func(key string) bool { return key == s.key })...)
	if len(keys) > syncsKept {
		if err := s.shelf.Save(syncKey+keys[syncsKept], nil); err != nil {
			return err
		}
		keys = keys[:syncsKept]
	}
	return errors.Join(s.shelf.Save(syncsKey, keys), s.shelf.Save(syncKey+s.key, s.after))
}

// had returns what a side had at a path after the last sync.
func (s *syncing) had(n *syncNode, side int) string { return s.before[brief(n.path)][side^s.first] }

// note records what the sides have at a path now, or forgets it if they have nothing.
func (s *syncing) note(n *syncNode) {
	s.noting.Lock()
	defer s.noting.Unlock()
	now := [2]string{digest(n.sides[s.first]), digest(n.sides[1-s.first])}
	if s.after[brief(n.path)] = now; now == [2]string{} {
		delete(s.after, brief(n.path))
	}
}

// arrived records that a path was sent from a side, and what the other side has there now.
func (s *syncing) arrived(n *syncNode, side int, there session.FileInfo) {
	n.sides[1-side] = there
	s.note(n)
}

func (s *syncing) run(ctx context.Context) (err error) {
	s.before = read[map[string][2]string](s.shared, syncKey+s.key, "the state of a sync cannot be read; comparing all")
	s.after = map[string][2]string{}
	if err := s.step(ctx, Step{Name: "compare", Title: "Compare both sides"}, s.copies[0], s.compare); err != nil {
		return err
	}
	if s.fills { // until all is there, a sync that only sends continues
		s.after[fillMark] = [2]string{}
		if err := s.save(); err != nil {
			return err
		}
	}
	defer func() {
		if err == nil {
			delete(s.after, fillMark)
		}
		err = cmp.Or(err, s.save())
	}()
	if len(s.removes[0])+len(s.removes[1]) > 0 {
		if err := s.step(ctx, Step{Name: "delete", Title: deleteTitle}, s.copies[0], s.removeAll); err != nil {
			return err
		}
	}
	for side, step := range []Step{{Name: "there", Title: "Copy to the other folder"},
		{Name: "back", Title: "Copy from the other folder"}} {
		if len(s.sends[side]) == 0 {
			continue
		}
		if err := s.step(ctx, step, s.copies[side], func(ctx context.Context) (string, error) {
			return s.sendAll(ctx, side)
		}); err != nil {
			return err
		}
	}
	if left := s.left.Load(); left > 0 {
		s.work.Tell(Step{Name: "left", Title: "Changed during the sync", State: StepWarning,
			Detail: plural(int(left), "path was left", "paths were left"), Remedy: "Sync again."})
	}
	return nil
}

func (s *syncing) step(ctx context.Context, step Step, c *fileCopy, do func(context.Context) (string, error)) error {
	s.work.Plan(step)
	s.copies[0].step, s.copies[1].step = step.Name, step.Name
	return c.do(ctx, step.Name, func() (string, error) { return do(ctx) })
}

// compare lists both sides, decides what is done, and asks.
func (s *syncing) compare(ctx context.Context) (string, error) {
	root := &syncNode{}
	for i, c := range s.copies {
		info, err := c.stat(ctx, c.from, c.source)
		if err != nil {
			return "", err
		}
		if info.Kind != session.KindDirectory {
			return "", session.NewError(session.CodeFileConflict, quoted(c.source)+" is not a directory.",
				"Choose a folder, or a directory in one.")
		}
		root.sides[i] = session.FileInfo{Kind: info.Kind, Mode: info.Mode}
		if c.source == "" {
			root.sides[i].Mode = 0o700 // that of a folder is not changed
		}
	}
	if s.req.Send {
		if err := s.mayFill(ctx); err != nil {
			return "", err
		}
	}
	var both []*syncNode
	for level := []*syncNode{root}; len(level) > 0; {
		if err := s.all(ctx, level, s.list); err != nil {
			return "", err
		}
		var next []*syncNode
		for _, n := range level {
			for _, child := range n.children {
				if s.judge(child).verdict == clash {
					both = append(both, child)
				}
				if isDirectory(child.sides[0]) || isDirectory(child.sides[1]) {
					next = append(next, child)
				}
			}
		}
		level = next
	}
	if err := s.all(ctx, both, s.checkEqual); err != nil {
		return "", err
	}
	for _, n := range both {
		s.conflicts += truth(!n.equal)
	}
	if s.req.Send && s.conflicts > 0 {
		return "", s.refuse(both)
	}
	if _, _, err := s.plan(ctx, root, decision{same, 0}); err != nil {
		return "", err
	}
	if s.req.Send {
		return s.sent(), nil
	}
	return fmt.Sprintf("%d to %s, %d to %s, %d to delete, %d changed on both sides", len(s.sends[0]), s.names[1],
		len(s.sends[1]), s.names[0], len(s.removes[0])+len(s.removes[1]), s.conflicts), s.mayRemove(ctx)
}

// all calls do for each path, for several at once, until one fails.
func (s *syncing) all(ctx context.Context, nodes []*syncNode, do func(context.Context, *syncNode) error) error {
	c := s.copies[0]
	ctx, c.stop = context.WithCancelCause(ctx)
	defer c.stop(nil)
	var group sync.WaitGroup
	for _, n := range nodes {
		if c.begin(ctx, &group, func() error { return do(ctx, n) }) != nil {
			break
		}
	}
	group.Wait()
	return context.Cause(ctx)
}

// list lists a directory on each side that has it.
func (s *syncing) list(ctx context.Context, n *syncNode) error {
	var lists [2]map[string]session.FileInfo
	names := map[string]bool{}
	for i, c := range s.copies {
		if !isDirectory(n.sides[i]) {
			continue
		}
		lists[i] = map[string]session.FileInfo{}
		dir, depth := path.Join(c.source, n.path), strings.Count(n.path, "/")
		if err := c.each(ctx, c.from, dir, depth, func(name string, info session.FileInfo) error {
			if s.listed.Add(1) > 2*syncMost {
				return session.NewError(session.CodeFileInvalid,
					fmt.Sprintf("The folders have more than %d files.", syncMost), "Sync directories in them.")
			}
			lists[i][name], names[name] = info, true
			return nil
		}); err != nil {
			return err
		}
		if info := lists[i][gitignore.Name]; info.Kind == session.KindFile && !info.Link && !s.req.Ignored {
			content, err := s.readRules(ctx, c, path.Join(dir, gitignore.Name), info)
			if err != nil {
				return err
			}
			n.rules[i] = n.rules[i].With(n.path, content)
		}
	}
	for i, list := range lists {
		if list == nil { // what it was ignored by is gone, too
			n.rules[i] = n.rules[1-i]
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		child := &syncNode{path: path.Join(n.path, name), parent: n, rules: n.rules}
		synced := name != ".git" || s.fills
		for i, list := range lists {
			info, there := list[name]
			if !there {
				continue
			}
			child.sides[i] = info
			synced = synced && copied(name, info) && !n.rules[0].Ignores(child.path, isDirectory(info)) &&
				!n.rules[1].Ignores(child.path, isDirectory(info))
		}
		if !synced {
			n.partly = true
			continue
		}
		n.children = append(n.children, child)
	}
	return nil
}

func (s *syncing) readRules(ctx context.Context, c *fileCopy, name string, info session.FileInfo) ([]byte, error) {
	if s.ruled.Add(info.Size) > ignoreMost {
		return nil, session.NewError(session.CodeFileInvalid, "The files named .gitignore are too large.",
			"Shorten "+quoted(name)+", or sync also what they ignore.")
	}
	return until(ctx, c, func() ([]byte, error) {
		from, err := c.from.member.Agent.ReadFile(ctx, c.from.place, session.ReadRequest{Path: at(name)})
		if err != nil {
			return nil, err
		}
		defer from.Close()
		return io.ReadAll(io.LimitReader(from, info.Size))
	})
}

// checkEqual compares what has changed on both sides.
func (s *syncing) checkEqual(ctx context.Context, n *syncNode) (err error) {
	a, b := n.sides[0], n.sides[1]
	switch {
	case a.Link || b.Link:
		n.equal = a.Link == b.Link && a.Target == b.Target
	case a.Kind == session.KindFile && b.Kind == session.KindFile && a.Size == b.Size:
		if n.equal = sameTime(a.Modified, b.Modified) || sameTime(b.Modified, a.Modified); !n.equal {
			n.equal, err = s.sameContent(ctx, n)
		}
	}
	return s.unless(err)
}

func (s *syncing) sameContent(ctx context.Context, n *syncNode) (bool, error) {
	c := s.copies[0]
	return c.sameContent(ctx, path.Join(c.source, n.path), path.Join(c.target, n.path))
}
