//go:build !windows

package autostart

import "errors"

// setRun fails: only Windows has such a key.
func setRun(string, bool) error { return errors.ErrUnsupported }
