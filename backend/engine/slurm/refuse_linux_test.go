package slurm_test

import (
	"os"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// refusingVariable is the path of a program that this one becomes. It is set on nodes only.
const refusingVariable = "SLIPWAY_TEST_REFUSING"

// TestRefusing becomes a program for which clone with CLONE_NEWUSER fails. It stands in for a site that lets only
// programs that it knows make user namespaces, as Ubuntu does: Apptainer uses unshare.
func TestRefusing(t *testing.T) {
	program := os.Getenv(refusingVariable)
	if program == "" {
		return
	}
	const refused, allowed = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM), unix.SECCOMP_RET_ALLOW
	steps := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number of the call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 3, K: unix.SYS_CLONE},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 16}, // its first argument
		{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, Jf: 1, K: unix.CLONE_NEWUSER},
		{Code: unix.BPF_RET | unix.BPF_K, K: refused},
		{Code: unix.BPF_RET | unix.BPF_K, K: allowed},
	}
	filter := unix.SockFprog{Len: uint16(len(steps)), Filter: &steps[0]}
	runtime.LockOSThread()                 // which has the filter and becomes the program
	at := uintptr(unsafe.Pointer(&filter)) //nolint:gosec // as the kernel takes it
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, at, 0, 0); err != nil {
		t.Fatal(err)
	}
	t.Fatal(syscall.Exec(program, []string{program}, os.Environ()))
}
