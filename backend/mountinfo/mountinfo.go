// Package mountinfo reads the kernel's table of mounts.
package mountinfo

import (
	"strconv"
	"strings"
)

// Mount is a directory of a file system at a place.
type Mount struct {
	ID     int    // that the descriptors of files in it tell, too
	Device string // of the file system, as the kernel names it
	Root   string // the directory's path in the file system
	Point  string // the place
}

// Parse reads the lines of /proc/PID/mountinfo, see proc(5); the latest mount is the last. Lines that are none are left
// out.
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
