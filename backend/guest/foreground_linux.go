package guest

import (
	"bytes"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

var _ Foregrounder = (*tty)(nil)

// Foreground implements [Foregrounder] by the process group that the kernel
// calls the terminal's foreground. See ioctl_tty(2), TIOCGPGRP.
func (t *tty) Foreground() (string, bool) {
	conn, err := t.SyscallConn()
	if err != nil {
		return "", false
	}
	var group int
	var failure error
	err = conn.Control(func(fd uintptr) { group, failure = unix.IoctlGetInt(int(fd), unix.TIOCGPGRP) })
	if err != nil || failure != nil || group <= 0 {
		return "", false
	}
	command := commandOf(group)
	if command == "" {
		return "", false // it ended between the two questions, or it is hidden
	}
	name := strings.TrimPrefix(path.Base(strings.Fields(command)[0]), "-")
	if group == t.child.pid && slices.Contains(shells, name) {
		return "", true
	}
	return command, true
}

// commandOf is the command line of a process, shortened, or "" if it is gone.
func commandOf(pid int) string {
	const maxCommandLine = 4 << 10
	line, err := kernelFile("/proc/"+strconv.Itoa(pid)+"/cmdline", maxCommandLine)
	if err != nil {
		return ""
	}
	words := strings.Fields(string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
	if len(words) == 0 {
		return ""
	}
	words[0] = path.Base(words[0])
	return shorten(words)
}
