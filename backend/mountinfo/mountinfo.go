// Package mountinfo reads the kernel's table of mounts.
package mountinfo

import (
	"strconv"
	"strings"
)

// Mount is a directory of a file system that is mounted.
type Mount struct {
	ID     int    // as in fdinfo
	Device string // of the file system: major:minor
	Root   string // the directory's path in the file system
	Point  string // where it is mounted
}

// Parse parses /proc/PID/mountinfo, see proc(5), and skips invalid lines. The latest mount is the last.
func Parse(text string) []Mount {
	var mounts []Mount
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		if id, err := strconv.Atoi(fields[0]); err == nil {
			mounts = append(mounts, Mount{ID: id, Device: fields[2], Root: unescape(fields[3]),
				Point: unescape(fields[4])})
		}
	}
	return mounts
}

// unescape replaces octal escapes, such as of spaces.
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
