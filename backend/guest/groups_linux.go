package guest

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// setGroups sets the supplementary groups of this thread alone; the standard
// library would set those of all threads, of which this program has none to spare.
func setGroups(groups []uint32) error {
	var first unsafe.Pointer
	if len(groups) > 0 {
		first = unsafe.Pointer(&groups[0])
	}
	if _, _, e := syscall.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(first), 0); e != 0 {
		return e
	}
	return nil
}
