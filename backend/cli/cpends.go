package cli

import (
	"errors"
	"io"
	"os"
	"syscall"

	"slipway/backend/files"
)

// incoming is a local file that grows by what comes, with its checksum so far.
type incoming struct {
	file *os.File
	at   int64 // what is there
	sum  *sumBehind
}

func newIncoming(file *os.File) (*incoming, error) {
	at, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	return &incoming{file: file, at: at, sum: newSumBehind(file, at)}, nil
}

// restart throws away what is there.
func (i *incoming) restart() error {
	i.sum.end(false)
	i.at, i.sum = 0, newSumBehind(i.file, 0)
	return i.file.Truncate(0)
}

// take adds what comes. It tells apart that no more came and that the file could
// not be written.
func (i *incoming) take(from io.Reader) (lost, err error) {
	source := &failing{Reader: from}
	err = files.CopyAt(i.file, i.at, source, func(at int64) {
		i.at = at
		i.sum.reached(at)
	})
	if source.err != nil {
		return source.err, nil
	}
	return nil, err
}

// failing keeps why no more could be read.
type failing struct {
	io.Reader
	err error
}

func (f *failing) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		f.err = err
	}
	return n, err
}

// outgoing is the rest of a file as the body of a request. It has a file of its
// own, which whoever sends it closes, and where that stands is how much was
// taken: the system sends most of it without asking for it here.
type outgoing struct {
	fileOnDisk
	size int64
}

type fileOnDisk interface {
	io.ReadSeekCloser
	syscall.Conn
}

func newOutgoing(name string, at, size int64) (*outgoing, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, noLocal(name, err)
	}
	if _, err := file.Seek(at, io.SeekStart); err != nil {
		file.Close()
		return nil, noLocal(name, err)
	}
	return &outgoing{file, size}, nil
}

// Read ends where the file did when it was first looked at.
func (o *outgoing) Read(p []byte) (int, error) {
	at, err := o.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, err
	}
	if at >= o.size {
		return 0, io.EOF
	}
	return o.fileOnDisk.Read(p[:min(o.size-at, int64(len(p)))])
}
