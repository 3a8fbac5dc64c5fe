package hub

import (
	"context"
	"maps"
	"math"
	"path"
	"slices"
	"strings"

	"slipway/backend/session"
)

// unless counts a path that has changed since it was listed, which is left to the next sync, and returns other errors.
func (s *syncing) unless(err error) error {
	switch session.CodeOf(err) {
	case session.CodeFileChanged, session.CodeFileNotFound, session.CodeFileExists, session.CodeFileConflict:
		s.left.Add(1)
		return nil
	}
	return err
}

// still fails if a path is no longer what it was when it was listed.
func (c *fileCopy) still(ctx context.Context, end copyEnd, name string, was session.FileInfo) error {
	now, err := c.stat(ctx, end, name)
	if err != nil && session.CodeOf(err) != session.CodeFileNotFound {
		return err
	}
	if digest(now) != digest(was) {
		return session.NewError(session.CodeFileChanged, quoted(name)+" has changed.", "Sync again.")
	}
	return nil
}

// removeAll deletes files and links, then directories, the innermost first.
func (s *syncing) removeAll(ctx context.Context) (string, error) {
	for side, nodes := range s.removes {
		c := s.copies[1-side]
		unlocked, err := s.unlock(ctx, c, nodes, side)
		if err != nil {
			return "", err
		}
		if err := s.inOrder(ctx, nodes, func(n *syncNode) int {
			if isDirectory(n.sides[side]) {
				return -n.depth()
			}
			return math.MinInt
		}, func(ctx context.Context, n *syncNode) error { return s.unless(s.remove(ctx, c, n, side)) }); err != nil {
			return "", err
		}
		if err := s.lock(ctx, c, unlocked, side); err != nil {
			return "", err
		}
	}
	return "", nil
}

func (s *syncing) remove(ctx context.Context, c *fileCopy, n *syncNode, side int) error {
	name := path.Join(c.target, n.path)
	if err := c.still(ctx, c.to, name, n.sides[side]); err != nil {
		return err
	}
	if err := c.remove(ctx, name, false); err != nil {
		return err
	}
	if n.sides[side] = (session.FileInfo{}); n.sides[1-side].Kind == "" {
		s.note(n)
	}
	return nil
}

// inOrder calls do for all paths, for those of a lower rank first.
func (s *syncing) inOrder(ctx context.Context, nodes []*syncNode, rank func(*syncNode) int,
	do func(context.Context, *syncNode) error) error {
	by := map[int][]*syncNode{}
	for _, n := range nodes {
		by[rank(n)] = append(by[rank(n)], n)
	}
	for _, r := range slices.Sorted(maps.Keys(by)) {
		if err := s.all(ctx, by[r], do); err != nil {
			return err
		}
	}
	return nil
}

func (n *syncNode) depth() int { return strings.Count(n.path, "/") }

// unlock lets the directories be changed that the paths are in, on the side that a copy leads to. It returns those
// that could not.
func (s *syncing) unlock(ctx context.Context, c *fileCopy, nodes []*syncNode, side int) ([]*syncNode, error) {
	var unlocked []*syncNode
	seen := map[*syncNode]bool{}
	for _, n := range nodes {
		dir := n.parent
		if seen[dir] || !isDirectory(dir.sides[side]) || dir.sides[side].Mode&0o700 == 0o700 {
			continue
		}
		seen[dir] = true
		if err := c.directory(ctx, path.Join(c.target, dir.path), dir.sides[side]); s.unless(err) != nil {
			return nil, err
		}
		unlocked = append(unlocked, &syncNode{path: dir.path, sides: dir.sides})
	}
	return unlocked, nil
}

// lock gives directories their permissions again.
func (s *syncing) lock(ctx context.Context, c *fileCopy, unlocked []*syncNode, side int) error {
	return s.inOrder(ctx, unlocked, func(n *syncNode) int { return -n.depth() },
		func(ctx context.Context, n *syncNode) error {
			if err := c.attributes(ctx, path.Join(c.target, n.path), n.sides[side]); !gone(err) {
				return err
			}
			return nil
		})
}

// sendAll copies from a side to the other: directories, then files, then links, so that nothing is written through a
// link that an untrusted source has just made.
func (s *syncing) sendAll(ctx context.Context, side int) (string, error) {
	c, nodes := s.copies[side], s.sends[side]
	if side == 0 {
		if err := s.rename(ctx); err != nil {
			return "", err
		}
	}
	unlocked, err := s.unlock(ctx, c, nodes, 1-side)
	if err != nil {
		return "", err
	}
	var made []*syncNode
	for _, n := range nodes {
		switch info := n.sides[side]; {
		case isDirectory(info):
			made = append(made, n)
		case !info.Link:
			c.total += info.Size
		}
	}
	c.advance(0)
	if err := s.inOrder(ctx, nodes, func(n *syncNode) int {
		switch info := n.sides[side]; {
		case isDirectory(info):
			return n.depth()
		case info.Link:
			return math.MaxInt
		}
		return math.MaxInt - 1
	}, func(ctx context.Context, n *syncNode) error { return s.unless(s.send(ctx, c, n, side)) }); err != nil {
		return "", err
	}
	if err := s.lock(ctx, c, made, side); err != nil {
		return "", err
	}
	return c.detail(), s.lock(ctx, c, unlocked, 1-side)
}

// rename gives files another name, so that both sides keep both.
func (s *syncing) rename(ctx context.Context) error {
	for side, moves := range s.moves {
		c := s.copies[side]
		for _, m := range moves {
			from, to := path.Join(c.source, m.from), path.Join(c.source, m.to.path)
			err := c.still(ctx, c.from, from, m.to.sides[side])
			if err == nil {
				_, err = until(ctx, c, func() (struct{}, error) {
					return struct{}{}, c.from.member.Agent.MoveFile(ctx, c.from.place, at(from), at(to))
				})
			}
			if err := s.unless(err); err != nil {
				return err
			}
		}
	}
	return nil
}

// send copies one path, and not the content of its directory.
func (s *syncing) send(ctx context.Context, c *fileCopy, n *syncNode, side int) error {
	source, target := path.Join(c.source, n.path), path.Join(c.target, n.path)
	info, there := n.sides[side], n.sides[1-side]
	plain := func(info session.FileInfo) bool { return info.Kind == session.KindFile && !info.Link }
	if !plain(info) {
		if err := c.still(ctx, c.to, target, there); err != nil {
			return err
		}
	}
	switch {
	case isDirectory(info):
		if err := c.directory(ctx, target, there); err != nil {
			return err
		}
		s.arrived(n, side, info)
		return nil
	case info.Link:
		made, err := c.link(ctx, target, info, there)
		if made {
			s.arrived(n, side, info)
		}
		return err
	case plain(there) && there.Size == info.Size && !sameTime(info.Modified, there.Modified):
		equal, err := s.sameContent(ctx, n)
		if err != nil {
			return err
		}
		if equal { // only its attributes differ
			if err := c.still(ctx, c.to, target, there); err != nil {
				return err
			}
			if err := c.attributes(ctx, target, info); err != nil {
				return err
			}
			if there, err = c.stat(ctx, c.to, target); err != nil {
				return err
			}
			info.Modified = there.Modified // as finely as it is stored
		}
	}
	made, err := c.file(ctx, source, target, info, there)
	if err == nil {
		s.arrived(n, side, made)
	}
	return err
}
