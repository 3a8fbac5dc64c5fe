package offlimits

import (
	"os"
	"path/filepath"
	"strings"

	"slipway/backend/mountinfo"
)

// mounts are the machine's mounts, the latest last.
type mounts []mountinfo.Mount

// readMounts returns no mounts on systems without /proc.
func readMounts() mounts {
	data, _ := os.ReadFile("/proc/self/mountinfo")
	return mountinfo.Parse(string(data))
}

// names returns every path of a directory or a part of it at any mount of its file system. Some may be covered.
func (m mounts) names(dir string) []string {
	if dir == "" {
		return nil
	}
	list := []string{dir}
	home, found := m.of(dir)
	if !found {
		return list
	}
	inside := filepath.Join(home.Root, strings.TrimPrefix(dir, home.Point))
	for _, other := range m {
		if other.Device != home.Device || other == home {
			continue
		}
		switch {
		case in(inside, other.Root) || other.Root == "/":
			list = append(list, filepath.Join(other.Point, strings.TrimPrefix(inside, other.Root)))
		case in(other.Root, inside):
			list = append(list, other.Point)
		}
	}
	return list
}

// of returns the mount that a path is on: the latest of the deepest above it.
func (m mounts) of(path string) (best mountinfo.Mount, found bool) {
	for _, one := range m {
		if (in(path, one.Point) || one.Point == "/") && (!found || len(one.Point) >= len(best.Point)) {
			best, found = one, true
		}
	}
	return best, found
}
