package files

import (
	"io/fs"
	"path"
	"time"
)

// partKept is how long a part that nothing is added to is kept: so long may whoever was cut off come back and go on.
const partKept = 7 * 24 * time.Hour

// sweep removes the parts of a directory that were given up. What may not be removed by whoever looks stays.
func (t Tree) sweep(dir string, entries []fs.DirEntry) {
	for _, e := range entries {
		if !isPart(e.Name()) || !e.Type().IsRegular() {
			continue
		}
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > partKept {
			_ = t.FS.Remove(path.Join(dir, e.Name())) // it is tried again with the next look
		}
	}
}
