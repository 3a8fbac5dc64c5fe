package doctor

import "golang.org/x/sys/unix"

// noexec reports whether programs are forbidden to run from a folder.
func noexec(dir string) bool {
	var stat unix.Statfs_t
	return unix.Statfs(dir, &stat) == nil && stat.Flags&unix.ST_NOEXEC != 0
}

// clockState reports whether the kernel's clock is kept by a time service, as adjtimex(2) tells anybody.
func clockState() (kept, known bool) {
	var state unix.Timex
	result, err := unix.Adjtimex(&state)
	return result != unix.TIME_ERROR && state.Status&unix.STA_UNSYNC == 0, err == nil
}
