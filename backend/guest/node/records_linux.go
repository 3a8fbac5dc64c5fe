package node

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// replace writes a record durably in place of the one that is there.
func replace(path string, record any) error {
	fresh, err := writeRecord(path, record)
	if err == nil {
		err = os.Rename(fresh, path)
	}
	return errors.Join(err, syncFolder(path))
}

// create writes a record durably. It fails with fs.ErrExist if there is one, also where several create it at once.
func create(path string, record any) error {
	data, err := json.Marshal(record)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Sync(), file.Close(), syncFolder(path))
}

func writeRecord(path string, record any) (fresh string, err error) {
	data, err := json.Marshal(record)
	if err != nil {
		return "", err
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*")
	if err != nil {
		return "", err
	}
	_, err = file.Write(data)
	return file.Name(), errors.Join(err, file.Sync(), file.Close())
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
