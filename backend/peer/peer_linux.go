package peer

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Known means that this operating system reports the process at the other end.
const Known = true

// end has the open directory of the process in /proc. If the process id is reused, reading from it fails.
type end struct{ dir *os.File }

// namespaces are those that a process outside of containers shares with this one.
var namespaces = []string{"mnt", "pid", "user"}

func of(conn *net.UnixConn) (*Process, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, errors.Join(ErrUnknown, err)
	}
	var p *Process
	var failed error
	err = raw.Control(func(fd uintptr) { p, failed = find(int(fd)) })
	if errors.Is(failed, ErrElsewhere) {
		return nil, failed
	}
	if err := errors.Join(err, failed); err != nil {
		return nil, errors.Join(ErrUnknown, err)
	}
	return p, nil
}

// find opens the directory of the process, while its pidfd prevents that the process id is reused. Before Linux 6.5
// there is no pidfd, so the id may have been reused since the connection was made.
func find(socket int) (*Process, error) {
	told, err := unix.GetsockoptUcred(socket, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return nil, err
	}
	if told.Pid <= 0 { // it is in another process namespace that is not below ours
		return nil, ErrElsewhere
	}
	held, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	switch {
	case errors.Is(err, unix.ENOPROTOOPT):
		held = -1
	case err != nil:
		return nil, err
	default:
		defer unix.Close(held) //nolint:errcheck // nothing was written
	}
	fd, err := unix.Open(fmt.Sprintf("/proc/%d", told.Pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	p := &Process{PID: int(told.Pid), UID: int(told.Uid), end: end{os.NewFile(uintptr(fd), "the peer's process")}}
	if held >= 0 && !lives(held) {
		return nil, errors.Join(errors.New("its process has ended"), p.Close())
	}
	return p, nil
}

// lives reports whether a process has not ended: its end makes the pidfd readable.
func lives(pidfd int) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, 0)
	return n == 0 && err == nil
}

// Close closes the process's directory.
func (p *Process) Close() error { return p.dir.Close() }

// Beside fails with [ErrElsewhere] if the process is in other namespaces than this one, or if they cannot be read. Only
// root can read those of root's processes, so a process of root passes if it is in the same process namespace.
func (p *Process) Beside() error {
	for _, name := range namespaces {
		own, err := os.Readlink("/proc/self/ns/" + name)
		if err != nil {
			return errors.Join(ErrUnknown, err)
		}
		buffer := make([]byte, len(own)+1)
		n, err := unix.Readlinkat(int(p.dir.Fd()), "ns/"+name, buffer)
		switch {
		case errors.Is(err, unix.EACCES) && p.UID == 0:
			return p.visible()
		case errors.Is(err, unix.EACCES):
			return errors.Join(ErrElsewhere, err)
		case err != nil:
			return errors.Join(ErrUnknown, err)
		case string(buffer[:n]) != own:
			return ErrElsewhere
		}
	}
	return nil
}

// visible fails if the process is in a process namespace below ours, where it has another id.
func (p *Process) visible() error {
	numbers, err := p.status("NSpid")
	if err != nil {
		return err
	}
	if len(strings.Fields(numbers)) != 1 {
		return ErrElsewhere
	}
	return nil
}

// Capable reports whether the process has a capability in effect.
func (p *Process) Capable(capability int) bool {
	value, err := p.status("CapEff")
	if err != nil {
		return false
	}
	bits, err := strconv.ParseUint(value, 16, 64)
	return err == nil && bits&(1<<capability) != 0
}

// Users returns the number of users in the user namespace of the process; 0 if that is unknown. A namespace that a user
// creates has one user; only root creates others. See user_namespaces(7).
func (p *Process) Users() uint64 {
	text, err := p.read("uid_map")
	if err != nil {
		return 0
	}
	total := uint64(0)
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) == 3 {
			count, err := strconv.ParseUint(fields[2], 10, 32)
			if total += count; err != nil {
				break
			}
		}
	}
	return total
}

func (p *Process) status(name string) (string, error) {
	text, err := p.read("status")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value), nil
		}
	}
	return "", ErrUnknown
}

func (p *Process) read(name string) (string, error) {
	fd, err := unix.Openat(int(p.dir.Fd()), name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", errors.Join(ErrUnknown, err)
	}
	file := os.NewFile(uintptr(fd), name)
	defer file.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(io.LimitReader(file, 64<<10))
	if err != nil {
		return "", errors.Join(ErrUnknown, err)
	}
	return string(text), nil
}
