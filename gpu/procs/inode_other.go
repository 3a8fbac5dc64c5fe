//go:build !unix

package procs

import "io/fs"

// fileNumber is empty where files have no numbers; there is no such driver there.
func fileNumber(fs.FileInfo) string { return "" }
