package guest

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
)

// Where others have the network too, a port leads to the socket of a service, or to a program of this container.
func TestPortsInASharedNetwork(t *testing.T) {
	c := &container{uid: os.Getuid(), gid: os.Getgid()}
	if err := c.makeSockets(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(c.sockets) }) //nolint:errcheck // a leftover in the temporary directory
	if info, err := os.Stat(c.sockets); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder is %v, %v", info.Mode(), err)
	}
	says := func(listener net.Listener, text string) {
		t.Cleanup(func() { listener.Close() }) //nolint:errcheck // of a test
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				fmt.Fprint(conn, text)
				conn.Close() //nolint:errcheck // of a test
			}
		}()
	}
	hears := func(port int) string {
		conn, err := c.DialPort(t.Context(), port)
		if err != nil {
			return err.Error()
		}
		defer conn.Close() //nolint:errcheck // of a test
		said := make([]byte, 100)
		n, _ := conn.Read(said) //nolint:errcheck // what it says counts
		return string(said[:n])
	}
	tcp, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	says(tcp, "a port")
	port := tcp.Addr().(*net.TCPAddr).Port
	if said := hears(port); said != "a port" || !slices.Contains(ownListeners(), port) {
		t.Errorf("the port says %q", said)
	}
	socket, err := net.Listen("unix", socketOf(c.sockets, port))
	if err != nil {
		t.Fatal(err)
	}
	says(socket, "a socket")
	if said := hears(port); said != "a socket" {
		t.Errorf("the socket says %q", said)
	}
	tcp.Close()    //nolint:errcheck // of a test
	socket.Close() //nolint:errcheck // of a test
	if said := hears(port); !strings.Contains(said, "no program of this container") {
		t.Errorf("nothing says %q", said)
	}
}
