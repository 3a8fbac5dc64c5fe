package engine

import (
	"context"
	"errors"
	"os"
	"time"

	"slipway/backend/session"
)

// Unavailable reports whether a call failed because the engine does not answer.
func Unavailable(err error) bool { return session.CodeOf(err) == session.CodeEngineUnavailable }

// Within calls fn with a time limit of its own. If the limit ends the call, the error is engine_call_timeout.
func Within(ctx context.Context, limit time.Duration, what string, fn func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := fn(limited)
	if err != nil && ctx.Err() == nil && (errors.Is(limited.Err(), context.DeadlineExceeded) ||
		errors.Is(err, context.DeadlineExceeded)) {
		return session.WrapError(err, session.CodeEngineTimeout,
			"The container engine did not finish within "+limit.String()+" ("+what+").",
			"Look at the engine's log; it may be overloaded.")
	}
	return err
}

// Ask is [Within] for a call that answers with a value.
func Ask[T any](ctx context.Context, limit time.Duration, what string,
	fn func(context.Context) (T, error)) (value T, err error) {
	err = Within(ctx, limit, what, func(ctx context.Context) (err error) {
		value, err = fn(ctx)
		return err
	})
	return value, err
}

// ReplaceFile replaces a file atomically. It does not sync: launches would wait, and a crash is reconciled anyway.
func ReplaceFile(path string, data []byte) error {
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
