package pipe

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/windows"
)

// conn is one end of a connection. A pipe has no halves: closing it ends both directions.
type conn struct {
	*os.File
	addr addr
}

func newConn(handle windows.Handle, a addr) net.Conn {
	return conn{os.NewFile(uintptr(handle), string(a)), a}
}

func (c conn) LocalAddr() net.Addr  { return c.addr }
func (c conn) RemoteAddr() net.Addr { return c.addr }

func (c conn) Read(p []byte) (int, error) {
	n, err := c.File.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // it comes as it is
		err = failure("read", c.addr, err)
	}
	return n, err
}

func (c conn) Write(p []byte) (int, error) {
	n, err := c.File.Write(p)
	if err != nil {
		err = failure("write", c.addr, err)
	}
	return n, err
}

// listener has always one instance that a client can connect to, so that no other program gets the name in between.
type listener struct {
	addr       addr
	descriptor *windows.SECURITY_DESCRIPTOR
	stop       windows.Handle // an event: the listener is closed

	mu     sync.Mutex     // held while a client is awaited
	next   windows.Handle // the instance for the next client; InvalidHandle: closed
	closed sync.Once
}

func (l *listener) Addr() net.Addr { return l.addr }

// Accept waits for the next client.
func (l *listener) Accept() (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.next != windows.InvalidHandle {
		switch err := l.await(); {
		case errors.Is(err, windows.ERROR_NO_DATA): // the client is gone again
			if err := windows.DisconnectNamedPipe(l.next); err != nil {
				return nil, failure("accept", l.addr, err)
			}
			continue
		case err != nil:
			return nil, failure("accept", l.addr, err)
		}
		next, err := l.instance(0)
		if err != nil {
			return nil, errors.Join(err, windows.DisconnectNamedPipe(l.next))
		}
		client := l.next
		l.next = next
		return newConn(client, l.addr), nil
	}
	return nil, failure("accept", l.addr, net.ErrClosed)
}

// await returns when a client is connected to the next instance, or the listener is closed.
func (l *listener) await() error {
	event, err := windows.CreateEvent(nil, 1, 0, nil)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(event) //nolint:errcheck // nothing waits for it
	pending := &windows.Overlapped{HEvent: event}
	err = windows.ConnectNamedPipe(l.next, pending)
	switch {
	case errors.Is(err, windows.ERROR_PIPE_CONNECTED):
		return nil
	case !errors.Is(err, windows.ERROR_IO_PENDING):
		return err
	}
	which, err := windows.WaitForMultipleObjects([]windows.Handle{l.stop, event}, false, windows.INFINITE)
	if err == nil && which == windows.WAIT_OBJECT_0 {
		err = net.ErrClosed
	}
	if err != nil {
		_ = windows.CancelIoEx(l.next, pending)
	}
	var none uint32
	ended := windows.GetOverlappedResult(l.next, pending, &none, true) // only then is pending free
	if err != nil {
		return err
	}
	return ended
}

// Close ends Accept and removes the pipe. Connections stay open.
func (l *listener) Close() error {
	err := net.ErrClosed
	l.closed.Do(func() {
		err = windows.SetEvent(l.stop)
		l.mu.Lock()
		defer l.mu.Unlock()
		err = errors.Join(err, windows.CloseHandle(l.next), windows.CloseHandle(l.stop))
		l.next = windows.InvalidHandle
	})
	return err
}
