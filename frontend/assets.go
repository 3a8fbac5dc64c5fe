// Package frontend embeds the built user interface. A checkout holds none: `make ui` builds it into dist.
package frontend

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var dist embed.FS

// Assets returns the files of the built interface, index.html at the top, or nothing but a placeholder where it was not
// built.
func Assets() fs.FS {
	assets, err := fs.Sub(dist, "dist")
	if err != nil {
		return dist // Sub fails for an invalid path only
	}
	return assets
}
