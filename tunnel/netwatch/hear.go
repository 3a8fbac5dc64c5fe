//go:build linux || darwin

package netwatch

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// hear calls notice at once and for everything that comes from a socket, until ctx ends. name is for errors.
func hear(ctx context.Context, file *os.File, name string, notice func()) error {
	stop := context.AfterFunc(ctx, func() { file.Close() })
	defer stop()
	notice() // something may have changed before
	buffer := make([]byte, 64<<10)
	for {
		_, err := file.Read(buffer)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !errors.Is(err, unix.ENOBUFS): // too much at once is a change too
			return fmt.Errorf("netwatch: read %s: %w", name, err)
		}
		notice()
	}
}
