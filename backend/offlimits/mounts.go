package offlimits

import (
	"os"
	"path/filepath"
	"strings"

	"slipway/backend/mountinfo"
)

// mounts are the places at which the machine's file systems are mounted, the latest last.
type mounts []mountinfo.Mount

// readMounts returns nothing where the system does not tell.
func readMounts() mounts {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	return mountinfo.Parse(string(data))
}

// names returns every path at which a directory, or a part of it, is seen: its own, and those where its file system is
// mounted besides. Some may be covered by what was mounted over them later.
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

// of is the mount that a path is seen by: the latest of the deepest above it.
func (m mounts) of(path string) (best mountinfo.Mount, found bool) {
	for _, one := range m {
		if (in(path, one.Point) || one.Point == "/") && (!found || len(one.Point) >= len(best.Point)) {
			best, found = one, true
		}
	}
	return best, found
}
