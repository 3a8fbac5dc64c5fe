// Package pipe connects programs of one user on one computer: by a Unix socket, on Windows by a named pipe.
package pipe

import "errors"

// ErrStranger means that another user listens at a path.
var ErrStranger = errors.New("pipe: another user listens there")
