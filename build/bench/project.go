package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"slipway/backend/api/route"
	"slipway/build/bench/measure"
)

// measureProject compares the second start of a project, by the command that also reads it, with the launch of its
// image and its folder by another command, in pairs.
func (b *bench) measureProject() {
	dir := measure.Get(os.MkdirTemp("", "bench-project-"))
	defer os.RemoveAll(dir)
	name, dockerfile := filepath.Base(dir), fmt.Appendf(nil, "FROM %s\nCOPY said /\n", b.o.image)
	measure.OK(os.WriteFile(filepath.Join(dir, "Dockerfile"), dockerfile, 0o600))
	measure.OK(os.WriteFile(filepath.Join(dir, "said"), []byte("hello\n"), 0o600))
	_, image := b.startBy(name, "up", dir) // builds it
	var ours, theirs samples
	for i := range b.o.pairs + 1 {
		up, _ := b.startBy(name, "up", dir)
		plain, _ := b.startBy(name, "run", "--image", image, "--name", name, "-v", name)
		if i > 0 { // as for the other starts
			ours, theirs = append(ours, up), append(theirs, plain)
		}
	}
	b.slipway("image", "rm", "--yes", image)
	b.add(against("second start of a project", ours, "slipway run", theirs, "≤ 1.3", 1.3))
}

// startBy returns how long a command takes to start a session, which it ends, and the image of that.
func (b *bench) startBy(name string, args ...string) (time.Duration, string) {
	begin := time.Now()
	b.slipway(append([]string{args[0], "--cpu", "1", "--mem", "512m", "--shm", "64m", "--wait"}, args[1:]...)...)
	took := time.Since(begin)
	s := measure.Get(route.Session.At(name).Ask(b.ctx, b))
	b.live[s.ID] = true
	measure.OK(b.end(b.ctx, s.ID))
	return took, s.Image
}
