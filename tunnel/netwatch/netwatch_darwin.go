package netwatch

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// listen calls notice whenever the kernel sends anything on a routing socket.
func listen(ctx context.Context, notice func()) error {
	socket, err := unix.Socket(unix.AF_ROUTE, unix.SOCK_RAW, unix.AF_UNSPEC)
	if err != nil {
		return fmt.Errorf("netwatch: open routing socket: %w", err)
	}
	unix.CloseOnExec(socket)
	if err := unix.SetNonblock(socket, true); err != nil {
		return errors.Join(fmt.Errorf("netwatch: routing socket: %w", err), unix.Close(socket))
	}
	file := os.NewFile(uintptr(socket), "route")
	defer file.Close()
	return hear(ctx, file, "routing socket", notice)
}
