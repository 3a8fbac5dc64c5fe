package daemon

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// descriptorPath names an entry of an open folder without the folder's path.
func descriptorPath(folder *os.File, name string) (string, bool) {
	return fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), name), true
}

// peerUser is the user whose process is at the other end.
func peerUser(conn *net.UnixConn) (uid int, known bool) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return -1, true // nobody is let in of whom nothing can be found out
	}
	uid = -1
	_ = raw.Control(func(fd uintptr) {
		if peer, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			uid = int(peer.Uid)
		}
	})
	return uid, true
}
