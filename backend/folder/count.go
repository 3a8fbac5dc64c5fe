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

// Measure counts the files and bytes of a folder. If some cannot be read, the result is partial.
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
		if err != nil { // it was removed meanwhile
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

// Counter measures folders in the background, one at a time. Its methods are safe for concurrent use.
type Counter struct {
	measure func(ctx context.Context, id session.FolderID) error
	wake    chan struct{}

	mu      sync.Mutex // guards the fields below
	waiting []session.FolderID
	current session.FolderID   // may be waiting, too, to be measured once more
	stop    context.CancelFunc // of current
}

// NewCounter returns a counter that calls measure, which also stores the result.
func NewCounter(measure func(ctx context.Context, id session.FolderID) error) *Counter {
	return &Counter{measure: measure, wake: make(chan struct{}, 1)}
}

// Ask queues a folder.
func (c *Counter) Ask(id session.FolderID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Contains(c.waiting, id) {
		return
	}
	c.waiting = append(c.waiting, id)
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Forget stops measuring a folder.
func (c *Counter) Forget(id session.FolderID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = slices.DeleteFunc(c.waiting, func(w session.FolderID) bool { return w == id })
	if c.current == id {
		c.stop()
	}
}

// Counting reports whether a folder is queued or being measured.
func (c *Counter) Counting(id session.FolderID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current == id || slices.Contains(c.waiting, id)
}

// Run measures folders until ctx ends.
func (c *Counter) Run(ctx context.Context) {
	for {
		if id, one, stop := c.next(ctx); id != "" {
			_ = c.measure(one, id) // it will be asked for again
			stop()
			c.done()
			continue
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

func (c *Counter) done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current, c.stop = "", nil
}
