package peer

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Known says that this operating system tells who is at the other end.
const Known = true

// end holds the directory of the process in /proc open. It stays that of this process: where the number is given to
// another one, reading from it fails.
type end struct{ dir *os.File }

// namespaces are those that a process on the machine itself shares with this one.
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

// find looks the process up while what the kernel holds of it keeps its number from being given to another one. Before
// Linux 6.5 the kernel has nothing to hold; what is read is then still of one process, though a number could have
// changed hands between the connection and now.
func find(socket int) (*Process, error) {
	told, err := unix.GetsockoptUcred(socket, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return nil, err
	}
	if told.Pid <= 0 { // it is in a process namespace above or beside ours
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

// lives reports whether a process has not ended, which makes its descriptor readable.
func lives(pidfd int) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, 0)
	return n == 0 && err == nil
}

// Close lets go of the process.
func (p *Process) Close() error { return p.dir.Close() }

// Beside fails with [ErrElsewhere] where the process is in other namespaces than this one, or where that is kept from
// this one. Only root may read it of root's processes; a root that is in the same process namespace passes.
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

// visible fails where the process has a number of its own in a process namespace below ours.
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

// Users is how many users the user namespace of the process has, and 0 where that is unknown. One that a person makes
// has a single user, and only root makes others. See user_namespaces(7).
func (p *Process) Users() uint64 {
	total := uint64(0)
	err := p.lines("uid_map", func(line string) (more bool) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return true
		}
		count, err := strconv.ParseUint(fields[2], 10, 32)
		total += count
		return err == nil
	})
	if err != nil {
		return 0
	}
	return total
}

// status reads one line of what the kernel tells everybody of the process.
func (p *Process) status(name string) (string, error) {
	value, found := "", false
	err := p.lines("status", func(line string) (more bool) {
		key, rest, ok := strings.Cut(line, ":")
		if found = ok && key == name; found {
			value = strings.TrimSpace(rest)
		}
		return !found
	})
	if err == nil && !found {
		err = ErrUnknown
	}
	return value, err
}

// lines reads a file of the process in /proc line by line, while more are wanted.
func (p *Process) lines(name string, each func(line string) (more bool)) error {
	fd, err := unix.Openat(int(p.dir.Fd()), name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return errors.Join(ErrUnknown, err)
	}
	file := os.NewFile(uintptr(fd), name)
	defer file.Close() //nolint:errcheck // only read
	lines := bufio.NewScanner(io.LimitReader(file, 64<<10))
	for lines.Scan() && each(lines.Text()) {
	}
	if err := lines.Err(); err != nil {
		return errors.Join(ErrUnknown, err)
	}
	return nil
}
