package files

import (
	"errors"
	"hash"
	"io"
	"os"
)

const (
	// writeEvery is how many bytes the disk is told to write at a time, while more of them come. Else all of a large
	// file would be waited for at its end.
	writeEvery = 8 << 20
	// blockBytes is how much is read and written at a time, and blocksHeld how many such blocks are on their way from
	// the one to the other.
	blockBytes = 256 << 10
	blocksHeld = 6
)

// placed writes to a file from an offset on.
type placed struct {
	file   *os.File
	offset int64
	tell   func(int64) // up to where it has written; may be nil
}

func (p *placed) Write(b []byte) (int, error) {
	n, err := p.file.WriteAt(b, p.offset)
	begun := p.offset / writeEvery
	p.offset += int64(n)
	if p.offset/writeEvery > begun {
		beginWriting(p.file, begun*writeEvery, writeEvery)
	}
	if p.tell != nil {
		p.tell(p.offset)
	}
	return n, err
}

// CopyAt copies to a file from an offset on, as an upload is written, and tells again and again up to where it has
// written. It adds what it copies to sum.
func CopyAt(file *os.File, offset int64, from io.Reader, sum hash.Hash, tell func(int64)) error {
	return copyAt(&placed{file, offset, tell}, from, &runningSum{hash: sum})
}

// copyAt copies to a place and adds what it copies to a sum. While a block is written the next ones are read. What came
// before from failed is written.
func copyAt(to *placed, from io.Reader, sum *runningSum) error {
	block := make([]byte, blockBytes)
	n, err := io.ReadFull(from, block)
	if err != nil { // most files are small
		sum.add(block[:n])
		_, failed := to.Write(block[:n])
		return errors.Join(unlessEnd(err), failed)
	}
	free, read, written := make(chan []byte, blocksHeld), make(chan []byte, blocksHeld), make(chan error, 1)
	for range blocksHeld - 1 {
		free <- make([]byte, blockBytes)
	}
	read <- block
	go func() { written <- writeAll(to, summed(read, sum), free) }()
	for err == nil {
		select {
		case block = <-free:
			n, err = io.ReadFull(from, block)
			read <- block[:n]
		case failed := <-written:
			close(read)
			return failed
		}
	}
	close(read)
	return errors.Join(unlessEnd(err), <-written)
}

// summed adds blocks to a sum and passes them on.
func summed(blocks <-chan []byte, sum *runningSum) <-chan []byte {
	if sum == nil {
		return blocks
	}
	on := make(chan []byte, blocksHeld)
	go func() {
		defer close(on)
		for block := range blocks {
			sum.add(block)
			on <- block
		}
	}()
	return on
}

// writeAll writes blocks and gives them back. It stops at the first that fails.
func writeAll(to io.Writer, blocks <-chan []byte, free chan<- []byte) error {
	for block := range blocks {
		if _, err := to.Write(block); err != nil {
			return err
		}
		free <- block[:blockBytes]
	}
	return nil
}

// unlessEnd is a failure to read; that there is no more is none.
func unlessEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}
