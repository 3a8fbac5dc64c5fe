//go:build !linux

package files

import "os"

func beginWriting(*os.File, int64, int64) {}
