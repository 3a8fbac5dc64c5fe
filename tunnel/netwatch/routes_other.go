//go:build !linux

package netwatch

import "errors"

// routes are not read here: when they change, addresses mostly change too.
func routes(map[int]string) ([]string, error) { return nil, errors.ErrUnsupported }
