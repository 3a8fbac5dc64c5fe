package daemon

import (
	"context"
	"errors"
	"io"
)

// lockFile is not needed here: daemons run on Linux.
func lockFile(context.Context, string) (io.Closer, error) {
	return nil, errors.ErrUnsupported
}
