package node

import (
	"net"
	"os"
	"path/filepath"
)

func dialSocket(path string) (net.Conn, error) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return net.Dial("unix", filepath.Join(held(dir), filepath.Base(path)))
}
