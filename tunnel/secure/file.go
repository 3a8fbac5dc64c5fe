package secure

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/moby/sys/atomicwriter"
)

// readLimited reads a file of at most limit bytes.
func readLimited(path string, limit int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("secure: %s is longer than %d bytes", path, limit)
	}
	return data, nil
}

// createFile writes a 0600 file in one step, fs.ErrExist if there is one.
func createFile(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	temporary := path + "." + rand.Text()
	if err := atomicwriter.WriteFile(temporary, content, 0o600); err != nil {
		return err
	}
	err := os.Link(temporary, path)
	if err != nil && !errors.Is(err, fs.ErrExist) { // a file system without links: only this program may race
		if _, missing := os.Lstat(path); missing != nil {
			return os.Rename(temporary, path)
		}
		err = fs.ErrExist
	}
	return errors.Join(err, os.Remove(temporary))
}
