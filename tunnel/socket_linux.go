package tunnel

import (
	"math"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// pacedUnsent is how many bytes may wait unsent in the kernel on a long path, so that an urgent frame does not wait
// behind more.
const pacedUnsent = 16 << 10

// socket sets options of a carrier's TCP socket. Without one it does nothing.
type socket struct {
	raw     syscall.RawConn
	control string // the congestion control that it had at first
}

// socketOf finds the TCP socket beneath the layers of a connection.
func socketOf(conn net.Conn) socket {
	for range 8 {
		switch c := conn.(type) {
		case Carrier:
			conn = c.Conn
		case *net.TCPConn:
			raw, err := c.SyscallConn()
			if err != nil {
				return socket{}
			}
			s := socket{raw: raw}
			_ = raw.Control(func(fd uintptr) {
				s.control, _ = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
			})
			return s
		case interface{ NetConn() net.Conn }:
			conn = c.NetConn()
		default:
			return socket{}
		}
	}
	return socket{}
}

// set sets the socket to the kind of the path. On a long one little waits in the kernel, and only the gate limits what
// is in flight: cubic does not while nothing is lost, but BBR would, by a rate that the gate takes for the path's.
// Where the path loses packets by itself BBR is several times as fast. A kernel that lacks one stays as it is.
func (s socket) set(to pathKind) {
	if s.raw == nil {
		return
	}
	unsent, control := pacedUnsent, "cubic"
	switch to {
	case pathShort:
		unsent, control = 0, s.control
	case pathLossy:
		control = "bbr"
	}
	_ = s.raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsent)
		_ = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, control)
	})
}

// pace limits the kernel to a rate in bytes per second; 0: no limit.
func (s socket) pace(rate uint64) {
	if s.raw == nil {
		return
	}
	if rate == 0 {
		rate = math.MaxUint64
	}
	_ = s.raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptUint64(int(fd), unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, rate)
	})
}

// look returns what the kernel knows of the path.
func (s socket) look() seen {
	if s.raw == nil {
		return seen{}
	}
	var v seen
	_ = s.raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			return
		}
		v = seen{known: true, again: int(info.Total_retrans), needless: int(info.Dsack_dups)}
		if info.Rtt > info.Min_rtt {
			v.queue = time.Duration(info.Rtt-info.Min_rtt) * time.Microsecond
		}
	})
	return v
}
