//go:build !lean

// Package notebook embeds the page in which notebooks of simulated sessions run Python. A checkout holds none: `make
// ui` builds it into dist. Programs that are built with the tag lean, which machines are given as their agents, leave
// it out.
package notebook

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var dist embed.FS

// Assets returns the files of the built page, those that end with .gz packed, or nil where it was not built.
func Assets() fs.FS {
	if _, err := fs.Stat(dist, "dist/index.html"); err != nil {
		return nil
	}
	assets, err := fs.Sub(dist, "dist")
	if err != nil {
		return nil // Sub fails for an invalid path only
	}
	return assets
}
