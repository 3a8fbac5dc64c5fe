//go:build linux && !cgo

package payload

import "embed"

// bin holds the reader that `make build` put there; a checkout holds none.
//
//go:embed bin/*-arm64
var bin embed.FS
