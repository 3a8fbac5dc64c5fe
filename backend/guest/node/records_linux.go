package node

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// replace writes a record durably in place of the one that is there. Readers see one or the other.
func replace(path string, record any) error {
	return put(path, record, os.Rename)
}

// create writes a record durably. It fails with fs.ErrExist if there is one, also where several create it at once.
func create(path string, record any) error {
	return put(path, record, os.Link)
}

// put writes a record to a file of its own and then gives it its name.
func put(path string, record any, name func(from, to string) error) error {
	data, err := json.Marshal(record)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	_, err = file.Write(data)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := name(file.Name(), path); err != nil {
		return err
	}
	return syncFolder(path)
}

// syncFolder makes the names in a folder durable, where its file system can.
func syncFolder(path string) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := dir.Sync(); err != nil && !errors.Is(err, unix.EINVAL) {
		return err
	}
	return nil
}
