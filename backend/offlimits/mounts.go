package offlimits

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// mounts are the places at which the machine's file systems are mounted, the
// latest last.
type mounts []mount

// mount is a directory of a file system at a place of the machine.
type mount struct {
	device string // of the file system, as the kernel names it
	root   string // the directory's path in the file system
	point  string
}

// readMounts returns nothing where the system does not tell.
func readMounts() mounts {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	return parseMounts(string(data))
}

// parseMounts reads lines of mountinfo, see proc(5).
func parseMounts(text string) mounts {
	var list mounts
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) > 4 {
			list = append(list, mount{device: fields[2], root: unescape(fields[3]), point: unescape(fields[4])})
		}
	}
	return list
}

// unescape reads the octal numbers that stand for spaces and the like.
func unescape(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if code, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				out.WriteByte(byte(code))
				i += 3
				continue
			}
		}
		out.WriteByte(s[i])
	}
	return out.String()
}

// names returns every path at which a directory, or a part of it, is seen: its
// own, and those where its file system is mounted besides. Some may be covered by
// what was mounted over them later.
func (m mounts) names(dir string) []string {
	if dir == "" {
		return nil
	}
	list := []string{dir}
	home, found := m.of(dir)
	if !found {
		return list
	}
	inside := filepath.Join(home.root, strings.TrimPrefix(dir, home.point))
	for _, other := range m {
		if other.device != home.device || other == home {
			continue
		}
		switch {
		case in(inside, other.root) || other.root == "/":
			list = append(list, filepath.Join(other.point, strings.TrimPrefix(inside, other.root)))
		case in(other.root, inside):
			list = append(list, other.point)
		}
	}
	return list
}

// of is the mount that a path is seen by: the latest of the deepest above it.
func (m mounts) of(path string) (best mount, found bool) {
	for _, one := range m {
		if (in(path, one.point) || one.point == "/") && (!found || len(one.point) >= len(best.point)) {
			best, found = one, true
		}
	}
	return best, found
}
