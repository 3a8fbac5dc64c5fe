//go:build !linux

package node

// Programs is empty, because compute nodes are Linux.
func Programs() map[string]func(args []string) int { return nil }
