package keeper

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// Main is the program: keep SERVER OWN. Each is a port of the loopback; or OWN is the path of a unix socket, and SERVER
// the name of that of the server, in the same folder. It returns the exit code.
func Main(args []string) int {
	if len(args) != 2 {
		fmt.Fprintln(os.Stderr, "slipway-guest keep SERVER OWN")
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer stop()
	network, address, own := "tcp", net.JoinHostPort("127.0.0.1", args[0]), net.JoinHostPort("127.0.0.1", args[1])
	if filepath.IsAbs(args[1]) {
		network, address, own = "unix", filepath.Join(filepath.Dir(args[1]), args[0]), args[1]
		_ = os.Remove(own) // of one that was killed
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, network, own)
	if err != nil {
		fmt.Fprintln(os.Stderr, "slipway-guest keep:", err)
		return 1
	}
	k := New(network, address, os.Getenv)
	go k.Serve(ctx, listener)
	k.Run(ctx)
	return 0
}
