package python

import (
	"context"
	"io"
)

// input is read until ctx ends, whatever it is of.
type input struct {
	ctx  context.Context //nolint:containedctx // it is the life of one run, which is all that reads
	from io.Reader       // nil: there is nothing
	load *load
}

func (i *input) Read(p []byte) (n int, err error) {
	if i.from == nil {
		return 0, io.EOF
	}
	type result struct {
		data []byte
		err  error
	}
	read := make(chan result, 1)
	go func() {
		data := make([]byte, len(p))
		n, err := i.from.Read(data)
		read <- result{data[:n], err}
	}()
	i.load.rest(func() {
		select {
		case r := <-read:
			n, err = copy(p, r.data), r.err
		case <-i.ctx.Done():
			err = i.ctx.Err()
		}
	})
	return n, err
}
