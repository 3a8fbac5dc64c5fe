package pipe

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// listen listens at a path that is short enough for a socket.
func listen(t *testing.T) (net.Listener, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "pipe")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	listener, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener, path
}

func dial(t *testing.T, path string) net.Conn {
	t.Helper()
	conn, err := Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestManyTalkAtOnce(t *testing.T) {
	listener, path := listen(t)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(conn, conn); _ = conn.Close() }()
		}
	}()
	sent := bytes.Repeat([]byte("carried "), 100_000)
	for range 3 {
		conn := dial(t, path)
		go func() { _, _ = conn.Write(sent) }()
		got := make([]byte, len(sent))
		if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, sent) {
			t.Errorf("it does not come back: %v", err)
		}
	}
}

func TestTheEndOfOneSideIsToldToTheOther(t *testing.T) {
	listener, path := listen(t)
	here := dial(t, path)
	there, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if err := here.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	var late net.Error
	if _, err := here.Read(make([]byte, 1)); !errors.As(err, &late) || !late.Timeout() {
		t.Errorf("with a deadline, reading ends with %v", err)
	}
	if err := here.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, err := there.Write([]byte("bye")); err != nil {
		t.Fatal(err)
	}
	read := make(chan error, 1)
	go func() {
		said, err := io.ReadAll(here)
		if err == nil && string(said) != "bye" {
			err = errors.New(string(said))
		}
		read <- err
	}()
	if there.Close() != nil {
		t.Error("it cannot be closed")
	}
	if err := <-read; err != nil {
		t.Error(err)
	}
	if _, err := there.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after its end, reading gives %v", err)
	}
}

func TestAClosedListenerEndsAccept(t *testing.T) {
	listener, path := listen(t)
	ended := make(chan error, 1)
	go func() {
		_, err := listener.Accept()
		ended <- err
	}()
	if err := listener.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("it ends with %v", err)
	}
	if conn, err := Dial(t.Context(), path); err == nil {
		_ = conn.Close()
		t.Error("somebody answers after the end")
	}
	again, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}
