//go:build lean

package notebook

import "io/fs"

// Assets returns nil: programs that machines are given as their agents leave the page out.
func Assets() fs.FS { return nil }
