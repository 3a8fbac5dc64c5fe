//go:build !linux || cgo || !(amd64 || arm64)

package payload

import "embed"

// bin is empty: a program with C linkage reads devices itself, and for the other machines there is no reader.
var bin = embed.FS{}
