// Package generated brings files that are derived from the source up to date.
package generated

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Update writes the files that differ from the tree at root, by their paths in
// it. With check it writes nothing and fails where there is one.
func Update(root string, files map[string][]byte, check bool) error {
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		return errors.New("run it at the root of the module")
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		at := filepath.Join(root, path)
		have, err := os.ReadFile(at)
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return err
		case bytes.Equal(have, files[path]):
			continue
		case check:
			return fmt.Errorf("%s is out of date; run make gen and commit the result", path)
		}
		if err := os.WriteFile(at, files[path], 0o644); err != nil {
			return err
		}
	}
	return nil
}
