package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"mvdan.cc/sh/v3/syntax"
)

// What a session may use of the process that simulates it. A script that goes
// further fails; the process lives.
const (
	maxFrames     = 5_000     // depth of the Go stack, some hundreds of nested function calls
	maxGoroutines = 20_000    // of the whole process
	maxSource     = 256 << 10 // bytes of one script
	maxHeld       = 16 << 20  // bytes that a utility such as sort holds
)

var (
	errNested  = errors.New("maximum function nesting level exceeded")
	errForks   = errors.New("fork: Resource temporarily unavailable")
	errSource  = errors.New("the script is longer than 256 KiB")
	errTooMuch = errors.New("Cannot allocate memory") //nolint:staticcheck // the words of the C library
)

// bounded fails when the shell has gone too deep or too wide.
func bounded() error {
	var frame [1]uintptr
	if runtime.Callers(maxFrames, frame[:]) > 0 {
		return errNested
	}
	if runtime.NumGoroutine() > maxGoroutines {
		return errForks
	}
	return nil
}

// interpret runs a node. A defect of the interpreter ends the command and not
// the process.
func (s *Shell) interpret(ctx context.Context, node syntax.Node) (err error) {
	defer func() {
		if defect := recover(); defect != nil {
			err = fmt.Errorf("this shell cannot do that: %v", defect)
		}
	}()
	return s.runner.Run(ctx, node)
}

// slurp reads all of r, up to what a utility may hold.
func slurp(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxHeld+1))
	if len(data) > maxHeld {
		return nil, errTooMuch
	}
	return data, err
}
