package doctor

import "golang.org/x/sys/unix"

// noexec reports whether programs may not run from a folder.
func noexec(dir string) bool {
	var stat unix.Statfs_t
	return unix.Statfs(dir, &stat) == nil && stat.Flags&unix.ST_NOEXEC != 0
}

// clockState reports whether a time service sets the kernel's clock, according to adjtimex(2).
func clockState() (kept, known bool) {
	var state unix.Timex
	result, err := unix.Adjtimex(&state)
	return result != unix.TIME_ERROR && state.Status&unix.STA_UNSYNC == 0, err == nil
}
