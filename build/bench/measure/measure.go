// Package measure is shared by the measuring programs. A measurement ends at its first failure, like a test: see [Run].
package measure

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

type failure struct{ err error }

// Run calls do and returns its failure. [OK] and [Get] are for the same goroutine.
func Run(do func()) (err error) {
	defer func() {
		switch cause := recover().(type) {
		case nil:
		case failure:
			err = cause.err
		default:
			panic(cause)
		}
	}()
	do()
	return nil
}

// OK ends the measurement if one of errs is not nil, with the place.
func OK(errs ...error) { check(errors.Join(errs...)) }

// Get returns the value of a call that must not fail; see [OK].
func Get[T any](value T, err error) T {
	check(err)
	return value
}

// Fail ends the measurement.
func Fail(format string, args ...any) { check(fmt.Errorf(format, args...)) }

func check(err error) {
	if err == nil {
		return
	}
	if _, file, line, ok := runtime.Caller(2); ok {
		err = fmt.Errorf("%s:%d: %w", filepath.Base(file), line, err)
	}
	panic(failure{err})
}

// Quantile returns the value below which the share q of all values lies, 0 for none.
func Quantile[T cmp.Ordered](values []T, q float64) (of T) {
	if len(values) == 0 {
		return of
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// Median is [Quantile] of one half.
func Median[T cmp.Ordered](values []T) T { return Quantile(values, 0.5) }

// Memory reads a figure of /proc/PID/status, such as VmRSS, in bytes.
func Memory(pid int, which string) (int64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, found := strings.Cut(string(data), which+":")
	kib, _, _ := strings.Cut(rest, "kB")
	if !found {
		return 0, fmt.Errorf("process %d has no %s", pid, which)
	}
	n, err := strconv.ParseInt(strings.TrimSpace(kib), 10, 64)
	return n << 10, err
}
