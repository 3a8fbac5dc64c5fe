package layers

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Inflate returns the content of a layer that may be compressed by gzip or zstd. Closing it closes r, and so does a
// failure.
func Inflate(r io.ReadCloser) (io.ReadCloser, error) {
	buffered := bufio.NewReaderSize(r, 64<<10)
	magic, err := buffered.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(err, r.Close())
	}
	content := io.NopCloser(buffered)
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		content, err = gzip.NewReader(buffered)
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		var decoder *zstd.Decoder
		if decoder, err = zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1)); err == nil {
			content = decoder.IOReadCloser()
		}
	default:
		err = nil
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return &inflated{content, r}, nil
}

// inflated is the content of a compressed stream.
type inflated struct {
	io.ReadCloser
	from io.Closer
}

func (i *inflated) Close() error { return errors.Join(i.ReadCloser.Close(), i.from.Close()) }
