package hub

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"sync"
	"time"

	"slipway/backend/session"
)

// begin does a part of the copy beside others. It counts in of until it is done. The first failure ends the copy.
func (c *fileCopy) begin(ctx context.Context, of *sync.WaitGroup, do func() error) error {
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	of.Add(1)
	c.parts.Go(func() {
		defer of.Done()
		defer func() { <-c.slots }()
		if err := do(); err != nil {
			c.stop(err)
		}
	})
	return nil
}

// change calls do for the destination, again while that is not reached.
func (c *fileCopy) change(ctx context.Context, do func(to session.Agent, place session.Place) error) error {
	_, err := until(ctx, c, func() (struct{}, error) { return struct{}{}, do(c.to.member.Agent, c.to.place) })
	return err
}

// copy begins all parts of the copy.
func (c *fileCopy) copy(ctx context.Context, root session.FileInfo) error {
	there, err := c.stat(ctx, c.to, c.target)
	if err != nil && !gone(err) {
		return err
	}
	root.Link, there.Link = false, false // they are named, so what they lead to is meant
	if !isDirectory(root) {
		_, err := c.file(ctx, c.source, c.target, root, there)
		return err
	}
	return c.tree(ctx, branch{source: c.source, target: c.target, info: root, there: there}, new(sync.WaitGroup))
}

// isDirectory reports whether an entry is itself a directory, not a link to one.
func isDirectory(info session.FileInfo) bool { return info.Kind == session.KindDirectory && !info.Link }

// branch is a directory that is copied.
type branch struct {
	source, target string
	info, there    session.FileInfo // at the source and at the destination
	depth          int
}

// tree copies a directory, a part of outer. Its links come after everything else in it, so that nothing is written
// through a link that an untrusted source has just made, and its attributes last, because they may forbid changes. The
// root of a place keeps its own. The destination is listed first, since most of a copy that is continued is there.
func (c *fileCopy) tree(ctx context.Context, d branch, outer *sync.WaitGroup) error {
	if err := c.directory(ctx, d.target, d.there); err != nil {
		return err
	}
	there := map[string]session.FileInfo{}
	if err := c.each(ctx, c.to, d.target, d.depth, func(name string, info session.FileInfo) error {
		there[name] = info
		return nil
	}); err != nil {
		return err
	}
	if c.mirror {
		if err := c.strip(ctx, d, there); err != nil {
			return err
		}
	}
	var inner sync.WaitGroup
	var links []func() error
	if err := c.each(ctx, c.from, d.source, d.depth, func(name string, info session.FileInfo) error {
		one := branch{path.Join(d.source, name), path.Join(d.target, name), info, there[name], d.depth + 1}
		switch {
		case !copied(name, info) && info.Link:
			c.note(func(n *copyCount) { n.unlinked++ })
		case !copied(name, info):
			c.note(func(n *copyCount) { n.skipped++ })
		case info.Link:
			links = append(links, func() error {
				_, err := c.link(ctx, one.target, info, one.there)
				return err
			})
		case isDirectory(info):
			return c.tree(ctx, one, &inner)
		default:
			return c.begin(ctx, &inner, func() error {
				_, err := c.file(ctx, one.source, one.target, info, one.there)
				return c.unlessLive(err)
			})
		}
		return nil
	}); err != nil {
		return err
	}
	outer.Add(1)
	c.parts.Go(func() {
		defer outer.Done()
		inner.Wait()
		var err error
		for i := 0; i < len(links) && err == nil; i++ {
			err = c.begin(ctx, &inner, links[i])
		}
		if inner.Wait(); err == nil && clean(d.target) != "/" {
			_ = c.begin(ctx, outer, func() error { return c.attributes(ctx, d.target, d.info) }) // else ctx has ended
		}
	})
	return nil
}

// directory makes a directory, or lets the one that is there be changed by its owner until all of it is copied.
func (c *fileCopy) directory(ctx context.Context, target string, there session.FileInfo) error {
	const mine = 0o700
	if isDirectory(there) {
		if there.Mode&mine == mine {
			return nil
		}
		err := c.set(ctx, target, session.Attributes{Mode: there.Mode | mine})
		if unable(err) {
			return nil
		}
		return err
	}
	if err := c.vacate(ctx, target, there); err != nil {
		return err
	}
	return c.change(ctx, func(to session.Agent, place session.Place) error {
		return to.MakeDirectory(ctx, place, at(target), true)
	})
}

// strip removes what is in a directory of the destination and not in that of the source, once all of that is listed.
func (c *fileCopy) strip(ctx context.Context, d branch, there map[string]session.FileInfo) error {
	extra := maps.Clone(there)
	if err := c.each(ctx, c.from, d.source, d.depth, func(name string, _ session.FileInfo) error {
		delete(extra, name)
		return nil
	}); err != nil {
		return err
	}
	var removals sync.WaitGroup
	defer removals.Wait()
	for name, info := range extra {
		if err := c.begin(ctx, &removals, func() error {
			return c.remove(ctx, path.Join(d.target, name), isDirectory(info))
		}); err != nil {
			return err
		}
	}
	return nil
}

// vacate removes what is in the way of something else. Only a mirror removes directories.
func (c *fileCopy) vacate(ctx context.Context, target string, there session.FileInfo) error {
	switch {
	case there.Kind == "":
		return nil
	case !c.replace || isDirectory(there) && !c.mirror:
		return session.NewError(session.CodeFileExists,
			fmt.Sprintf("%s already exists and is not the same.", session.Clip(target)),
			"Choose another destination, or replace existing files.")
	}
	return c.remove(ctx, target, isDirectory(there))
}

func (c *fileCopy) remove(ctx context.Context, target string, directory bool) error {
	remove := func() error {
		err := c.change(ctx, func(to session.Agent, place session.Place) error {
			return to.RemoveFile(ctx, place, at(target), directory)
		})
		if gone(err) {
			return nil
		}
		return err
	}
	err := remove()
	if directory && session.CodeOf(err) == session.CodeFileForbidden {
		if err = c.unlock(ctx, target, 0); err == nil {
			err = remove()
		}
	}
	return err
}

// unlock lets a directory and those in it be changed by their owner.
func (c *fileCopy) unlock(ctx context.Context, target string, depth int) error {
	if err := c.set(ctx, target, session.Attributes{Mode: 0o700}); err != nil {
		return err
	}
	return c.each(ctx, c.to, target, depth, func(name string, info session.FileInfo) error {
		if isDirectory(info) {
			return c.unlock(ctx, path.Join(target, name), depth+1)
		}
		return nil
	})
}

// file copies one file, unless the one that is there has its size and time, and describes what is there then.
func (c *fileCopy) file(ctx context.Context, from, to string, info, there session.FileInfo) (session.FileInfo, error) {
	same, err := c.sameFile(ctx, from, to, info, there)
	if err != nil {
		return there, err
	}
	if same {
		c.note(func(n *copyCount) { n.files, n.present = n.files+1, n.present+1 })
		c.advance(info.Size)
		if !c.replace || there.Mode == info.Mode {
			return there, nil
		}
		if err := c.attributes(ctx, to, info); err != nil {
			return there, err
		}
		return c.stat(ctx, c.to, to)
	}
	if !c.replace || there.Kind == session.KindDirectory { // also a link to one
		if err := c.vacate(ctx, to, there); err != nil {
			return there, err
		}
		there = session.FileInfo{}
	}
	up := session.Upload{Path: session.FilePath(to), Key: copyKey(c.from.place, from, info)}
	sum, err := until(ctx, c, func() (string, error) {
		return c.send(ctx, from, up, info)
	})
	if err == nil && c.steady {
		if err = c.still(ctx, c.to, to, there); err != nil {
			_ = c.to.member.Agent.DropUpload(ctx, c.to.place, up)
		}
	}
	if err != nil {
		return there, err
	}
	finish := session.FinishRequest{Upload: up,
		Finish: session.Finish{Size: info.Size, SHA256: sum, Mode: info.Mode, Modified: info.Modified}}
	if c.replace {
		finish.Conflict = session.ConflictReplace
	}
	made, err := until(ctx, c, func() (session.FileInfo, error) {
		return c.to.member.Agent.FinishUpload(ctx, c.to.place, finish)
	})
	if err == nil {
		c.note(func(n *copyCount) { n.files++ })
	}
	return made, err
}

// sameFile reports whether the file that is there has the size and the time of the source. Where the source stores only
// seconds, as a home does that was read out of a container, the contents of both are compared as well.
func (c *fileCopy) sameFile(ctx context.Context, from, to string, info, there session.FileInfo) (bool, error) {
	if there.Kind != session.KindFile || there.Link || there.Size != info.Size {
		return false, nil
	}
	if sameTime(info.Modified, there.Modified) || !info.Modified.Equal(there.Modified.Truncate(time.Second)) {
		return sameTime(info.Modified, there.Modified), nil
	}
	return c.sameContent(ctx, from, to)
}

// sameContent compares a file of the source with one of the destination by their checksums.
func (c *fileCopy) sameContent(ctx context.Context, from, to string) (bool, error) {
	sum := func(end copyEnd, name string) (string, error) {
		return until(ctx, c, func() (string, error) {
			return end.member.Agent.ChecksumFile(ctx, end.place, at(name))
		})
	}
	source, err := sum(c.from, from)
	if err != nil {
		return false, err
	}
	there, err := sum(c.to, to)
	return source == there, err
}

// unlessLive forgets that a file has changed or vanished meanwhile, where a later copy brings what there is then.
func (c *fileCopy) unlessLive(err error) error {
	code := session.CodeOf(err)
	if c.live && (gone(err) || code == session.CodeFileChanged || code == session.CodeFileConflict) {
		c.note(func(n *copyCount) { n.changed++ })
		return nil
	}
	return err
}

// sameTime reports whether a file has the time of the source, as finely as the destination stores it: some file systems
// store seconds, and older agents set microseconds.
func sameTime(source, there time.Time) bool {
	return there.Equal(source) || there.Equal(source.Truncate(time.Microsecond)) ||
		there.Equal(source.Truncate(time.Second))
}

func copyKey(place session.Place, name string, info session.FileInfo) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%s %s %q %q", place.Session, place.Folder, name, info.Version)
	return hex.EncodeToString(sum.Sum(nil))[:24]
}

// link makes a link, unless the one that is there has its target, and reports whether it is there then. It removes
// nothing before the destination has shown that it can make links.
func (c *fileCopy) link(ctx context.Context, to string, info, there session.FileInfo) (made bool, err error) {
	if there.Link && there.Target == info.Target {
		c.note(func(n *copyCount) { n.files, n.present = n.files+1, n.present+1 })
		return true, nil
	}
	makeLink := func() error {
		return c.change(ctx, func(agent session.Agent, place session.Place) error {
			return agent.MakeLink(ctx, place, at(to), info.Target)
		})
	}
	err = makeLink()
	if session.CodeOf(err) == session.CodeFileExists {
		if err = c.vacate(ctx, to, there); err == nil {
			err = makeLink()
		}
	}
	switch {
	case unable(err):
		c.note(func(n *copyCount) { n.unlinked++ })
		return false, nil
	case err == nil:
		c.note(func(n *copyCount) { n.files++ })
	}
	return err == nil, err
}

// attributes gives what was copied the permissions and the time of the source, if the destination can do that.
func (c *fileCopy) attributes(ctx context.Context, to string, info session.FileInfo) error {
	err := c.set(ctx, to, session.Attributes{Mode: info.Mode, Modified: info.Modified})
	if unable(err) || session.CodeOf(err) == session.CodeFileForbidden { // it belongs to somebody else
		c.note(func(n *copyCount) { n.unset++ })
		return nil
	}
	return err
}

func (c *fileCopy) set(ctx context.Context, to string, attributes session.Attributes) error {
	return c.change(ctx, func(agent session.Agent, place session.Place) error {
		return agent.SetAttributes(ctx, place, at(to), attributes)
	})
}

// unable reports whether a call failed because the agent is too old, or the session, which was started by one.
func unable(err error) bool {
	code := session.CodeOf(err)
	return code == session.CodeAgentUnsupported || code == session.CodeFileInvalid
}
