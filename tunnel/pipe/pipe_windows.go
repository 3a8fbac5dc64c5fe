package pipe

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

const (
	bufferSize = 64 << 10              // bytes, in each direction
	busyPause  = 10 * time.Millisecond // until a pipe is tried again whose instances are all taken
)

// addr is the name of a pipe.
type addr string

func (addr) Network() string  { return "pipe" }
func (a addr) String() string { return string(a) }

// addrOf returns the name of the pipe that stands for a path. Pipes are not in the file system, and every user sees
// their names.
func addrOf(path string) addr {
	sum := sha256.Sum256([]byte(strings.ToLower(filepath.Clean(path))))
	return addr(fmt.Sprintf(`\\.\pipe\slipway-%x`, sum[:16]))
}

// Listen makes the pipe of a path, which only this user can connect to, and only on this computer. It fails if any
// program has made it before.
func Listen(path string) (net.Listener, error) {
	us, err := thisUser()
	if err != nil {
		return nil, err
	}
	descriptor, err := windows.SecurityDescriptorFromString(fmt.Sprintf("O:%[1]sD:P(A;;GA;;;%[1]s)", us))
	if err != nil {
		return nil, fmt.Errorf("pipe: describe who may connect: %w", err)
	}
	stop, err := windows.CreateEvent(nil, 1, 0, nil)
	if err != nil {
		return nil, fmt.Errorf("pipe: create an event: %w", err)
	}
	l := &listener{addr: addrOf(path), descriptor: descriptor, stop: stop}
	if l.next, err = l.instance(windows.FILE_FLAG_FIRST_PIPE_INSTANCE); err != nil {
		return nil, errors.Join(err, windows.CloseHandle(stop))
	}
	return l, nil
}

// Dial connects to the pipe of a path. It fails with [ErrStranger] if another user made it, and does not let the other
// end act in the name of this user.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	a := addrOf(path)
	name, err := windows.UTF16PtrFromString(string(a))
	if err != nil {
		return nil, err
	}
	for {
		handle, err := windows.CreateFile(name, windows.GENERIC_READ|windows.GENERIC_WRITE, 0, nil,
			windows.OPEN_EXISTING,
			windows.FILE_FLAG_OVERLAPPED|windows.SECURITY_SQOS_PRESENT|windows.SECURITY_ANONYMOUS, 0)
		if err == nil {
			if err := ours(handle); err != nil {
				return nil, errors.Join(err, windows.CloseHandle(handle))
			}
			return newConn(handle, a), nil
		}
		if !errors.Is(err, windows.ERROR_PIPE_BUSY) {
			return nil, failure("dial", a, err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(busyPause):
		}
	}
}

// ours fails unless this user owns a pipe. Only the system makes another user the owner of what a program creates.
func ours(handle windows.Handle) error {
	us, err := thisUser()
	if err != nil {
		return err
	}
	descriptor, err := windows.GetSecurityInfo(handle, windows.SE_KERNEL_OBJECT, windows.OWNER_SECURITY_INFORMATION)
	if err != nil {
		return fmt.Errorf("pipe: read the owner: %w", err)
	}
	owner, _, err := descriptor.Owner()
	if err != nil {
		return fmt.Errorf("pipe: read the owner: %w", err)
	}
	if !owner.Equals(us) {
		return ErrStranger
	}
	return nil
}

func thisUser() (*windows.SID, error) {
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return nil, fmt.Errorf("pipe: find out the user: %w", err)
	}
	return user.User.Sid, nil
}

// instance makes one more end of the pipe, for one client.
func (l *listener) instance(flags uint32) (windows.Handle, error) {
	name, err := windows.UTF16PtrFromString(string(l.addr))
	if err != nil {
		return windows.InvalidHandle, err
	}
	attributes := windows.SecurityAttributes{SecurityDescriptor: l.descriptor}
	attributes.Length = uint32(unsafe.Sizeof(attributes))
	handle, err := windows.CreateNamedPipe(name, windows.PIPE_ACCESS_DUPLEX|windows.FILE_FLAG_OVERLAPPED|flags,
		windows.PIPE_TYPE_BYTE|windows.PIPE_REJECT_REMOTE_CLIENTS, windows.PIPE_UNLIMITED_INSTANCES, bufferSize,
		bufferSize, 0, &attributes)
	if err != nil {
		return windows.InvalidHandle, failure("listen", l.addr, err)
	}
	return handle, nil
}

// failure is an error of the network, as other connections have it.
func failure(operation string, a addr, err error) error {
	if errors.Is(err, os.ErrClosed) {
		err = net.ErrClosed
	}
	return &net.OpError{Op: operation, Net: a.Network(), Addr: a, Err: err}
}
