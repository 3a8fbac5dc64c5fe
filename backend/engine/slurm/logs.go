package slurm

import (
	"context"
	"errors"
	"io"

	"slipway/backend/guest/node"
	"slipway/backend/session"
)

// Logs reads the log that the node writes into the folder of the run.
func (e *Engine) Logs(ctx context.Context, id string, opts session.LogOptions) (io.ReadCloser, error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	r, k, err := e.runs.find(id)
	if err != nil {
		return nil, err
	}
	following, cancel := context.WithCancel(ctx)
	log, err := node.OpenLog(following, r.dir, k.Kernel, opts)
	if err != nil {
		cancel()
		return nil, fileFailure("the log of "+k.Name, err)
	}
	if opts.Follow {
		go e.cutLog(following, cancel, id)
	}
	return logReader{log, ctx, cancel}, nil
}

// cutLog ends a log that is followed when its container has ended, also without an exit record, with its node, or when
// its folder is gone. What is left of it is read all the same.
func (e *Engine) cutLog(ctx context.Context, cancel context.CancelFunc, id string) {
	for {
		if err := e.pause(ctx); err != nil {
			return
		}
		r, k, err := e.runs.find(id)
		if err != nil {
			break
		}
		if state, err := e.stateOf(ctx, r, k, e.jobs.view()); err != nil || !state.Running && !state.Created {
			break
		}
	}
	cancel()
}

// logReader is a log that ends what follows it with itself.
type logReader struct {
	io.ReadCloser
	ctx    context.Context //nolint:containedctx // of whoever reads
	cancel context.CancelFunc
}

// Read ends as the log does when its container has ended.
func (r logReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if errors.Is(err, context.Canceled) && r.ctx.Err() == nil {
		err = io.EOF
	}
	return n, err
}

func (r logReader) Close() error {
	r.cancel()
	return r.ReadCloser.Close()
}
