package files

import (
	"errors"
	"hash"
	"io"
	"os"
)

const (
	// writeEvery is how many bytes go to the disk at a time while a file arrives, so that the last sync is short.
	writeEvery = 8 << 20
	// blockBytes is the size of a read and a write, blocksHeld the number of blocks between them.
	blockBytes = 256 << 10
	blocksHeld = 6
)

// placed writes to a file from an offset on.
type placed struct {
	file   *os.File
	offset int64
	tell   func(int64) // receives the offset after each write; may be nil
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

// CopyAt copies to a file from an offset on and adds the bytes to sum. It calls tell with the offset after each write.
func CopyAt(file *os.File, offset int64, from io.Reader, sum hash.Hash, tell func(int64)) error {
	return copyAt(&placed{file, offset, tell}, from, &runningSum{hash: sum})
}

// copyAt copies and adds the bytes to sum. It reads the next blocks while one is written, and writes all that it reads.
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

// writeAll writes blocks and returns them to free. It stops at the first failure.
func writeAll(to io.Writer, blocks <-chan []byte, free chan<- []byte) error {
	for block := range blocks {
		if _, err := to.Write(block); err != nil {
			return err
		}
		free <- block[:blockBytes]
	}
	return nil
}

func unlessEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}
