package folder

import (
	"context"
	"io/fs"
	"slices"
	"sync"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// Measure counts what a folder holds. What cannot be read is left out and told as partial.
func (d Disk) Measure(ctx context.Context, f session.Folder) (session.FolderUsage, error) {
	tree, err := d.Open(f)
	if err != nil {
		return session.FolderUsage{}, err
	}
	defer tree.Close()
	type file struct{ device, inode uint64 }
	seen := map[file]bool{}
	var usage session.FolderUsage
	err = fs.WalkDir(tree.root.FS(), ".", func(_ string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			usage.Partial = true
			return nil
		}
		if entry.IsDir() {
			return nil
		}
		info, err := entry.Info()
		if err != nil { // it has gone meanwhile
			return nil //nolint:nilerr // see above
		}
		if names(info) > 1 {
			device, inode := identity(info)
			if seen[file{device, inode}] {
				return nil
			}
			seen[file{device, inode}] = true
		}
		usage.Files++
		if info.Mode().IsRegular() {
			usage.Bytes += gpu.Bytes(info.Size())
		}
		return nil
	})
	usage.At = time.Now().UTC()
	return usage, err
}

// Counter counts in the background what folders hold, one folder at a time. Its methods are safe for concurrent use.
type Counter struct {
	measure func(ctx context.Context, id session.FolderID) error

	mu      sync.Mutex // guards what follows
	waiting []session.FolderID
	current session.FolderID
	again   bool // current is to be counted once more
	stop    context.CancelFunc
	wake    chan struct{}
}

// NewCounter returns a counter that counts a folder by measure, which also keeps what it counted.
func NewCounter(measure func(ctx context.Context, id session.FolderID) error) *Counter {
	return &Counter{measure: measure, wake: make(chan struct{}, 1)}
}

// Ask has a folder counted soon.
func (c *Counter) Ask(id session.FolderID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == id {
		c.again = true
		return
	}
	if slices.Contains(c.waiting, id) {
		return
	}
	c.waiting = append(c.waiting, id)
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Forget stops counting a folder.
func (c *Counter) Forget(id session.FolderID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = slices.DeleteFunc(c.waiting, func(w session.FolderID) bool { return w == id })
	if c.current == id {
		c.again = false
		c.stop()
	}
}

// Counting reports whether a folder is being counted or will be.
func (c *Counter) Counting(id session.FolderID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current == id || slices.Contains(c.waiting, id)
}

// Run counts until ctx ends.
func (c *Counter) Run(ctx context.Context) {
	for {
		for {
			id, one, stop := c.next(ctx)
			if id == "" {
				break
			}
			_ = c.measure(one, id) // nobody waits; it is asked again
			stop()
			c.done(id)
		}
		select {
		case <-c.wake:
		case <-ctx.Done():
			return
		}
	}
}

func (c *Counter) next(ctx context.Context) (session.FolderID, context.Context, context.CancelFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 || ctx.Err() != nil {
		return "", nil, nil
	}
	one, stop := context.WithCancel(ctx)
	c.current, c.waiting, c.stop = c.waiting[0], c.waiting[1:], stop
	return c.current, one, stop
}

func (c *Counter) done(id session.FolderID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current, c.stop = "", nil
	if c.again {
		c.again = false
		c.waiting = append(c.waiting, id)
	}
}
