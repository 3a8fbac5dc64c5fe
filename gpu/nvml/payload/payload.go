// Package payload holds the reader of NVIDIA devices for programs that were built without C linkage, and puts it where
// it can be started. A program with C linkage is its own reader and carries none.
package payload

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/moby/sys/atomicwriter"
)

// ErrNone says that this program neither is nor carries a reader.
var ErrNone = errors.New(
	"this build carries no reader of NVIDIA devices: build it with `make build` where there is a C compiler")

// Extract writes the reader into dir, unless it is there already, and returns its path. The name of the file has the
// digest of its contents, and it appears whole or not at all. Older readers in dir are removed.
func Extract(dir string) (string, error) {
	program, err := bin.ReadFile("bin/slipway-gpu-linux-" + runtime.GOARCH)
	if err != nil {
		return "", ErrNone
	}
	return extract(dir, program)
}

const prefix = "slipway-gpu-"

func extract(dir string, program []byte) (string, error) {
	digest := sha256.Sum256(program)
	path := filepath.Join(dir, prefix+hex.EncodeToString(digest[:8]))
	if there, err := os.ReadFile(path); err == nil && bytes.Equal(there, program) {
		return path, os.Chmod(path, 0o700)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("the reader of NVIDIA devices: %w", err)
	}
	if err := atomicwriter.WriteFile(path, program, 0o700); err != nil {
		return "", fmt.Errorf("the reader of NVIDIA devices: %w", err)
	}
	return path, removeOthers(dir, path)
}

func removeOthers(dir, keep string) error {
	old, err := filepath.Glob(filepath.Join(dir, prefix+"*"))
	if err != nil {
		return err
	}
	for _, path := range old {
		if path == keep {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
