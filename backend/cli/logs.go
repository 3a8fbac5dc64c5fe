package cli

import (
	"context"
	"errors"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/client"
	"slipway/backend/session"
)

// logOptions says which part of a log is wanted.
type logOptions struct {
	follow, timestamps bool
	tail               int // -1: all
	kernel             string
}

func (p sessionCommands) logsCommand() *cobra.Command {
	opts := logOptions{}
	cmd := &cobra.Command{
		Use:               "logs [-f] [--tail N] [-t] SESSION",
		Short:             "Print the log of a session",
		Args:              exactly(1, "one session"),
		ValidArgsFunction: p.completeSessions(allSessions),
	}
	cmd.Flags().BoolVarP(&opts.follow, "follow", "f", false, "follow the log until the session ends")
	cmd.Flags().IntVar(&opts.tail, "tail", -1, "only the last lines, this many")
	cmd.Flags().BoolVarP(&opts.timestamps, "timestamps", "t", false, "start each line with its time")
	cmd.Flags().StringVar(&opts.kernel, "kernel", "", "container of a cluster (default main1)")
	cmd.RunE = p.inSession(func(ctx context.Context, c *caller, s api.Session, _ []string) error {
		return p.copyLogs(ctx, c, s.ID, opts, p.raw.out)
	})
	return cmd
}

// copyLogs writes a log to w. A log that is followed from its beginning goes on
// after a lost connection where it stopped; of one that is not, the rest would
// be a guess, so that the loss is an error.
func (p sessionCommands) copyLogs(ctx context.Context, c *caller, id session.ID, opts logOptions, w io.Writer) error {
	var written int64
	err := c.copyLogs(ctx, string(id), opts, 0, w, &written)
	for opts.follow && opts.tail < 0 && client.IsLost(err) && ctx.Err() == nil {
		err = p.again(ctx, func(ctx context.Context, again *caller) error {
			return again.copyLogs(ctx, string(id), opts, written, w, &written)
		})
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// copyLogs copies from one answer what follows the first skip bytes and adds
// what it wrote to written.
func (c *caller) copyLogs(ctx context.Context, id string, opts logOptions, skip int64, w io.Writer,
	written *int64) error {
	if opts.tail == 0 && !opts.follow {
		return nil
	}
	at := route.Logs.At(id).Flag("follow", opts.follow).Flag("timestamps", opts.timestamps).With("kernel", opts.kernel)
	if opts.tail >= 0 {
		at = at.With("tail", strconv.Itoa(opts.tail))
	}
	response, err := c.Transfer(ctx, at.Method(), at.Target(), nil, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.CopyN(io.Discard, response.Body, skip); err != nil {
		return ending(err)
	}
	n, err := io.Copy(w, response.Body)
	*written += n
	return ending(err)
}

// ending tells a body that ended from one that broke off.
func ending(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return nil
	}
	return &client.Lost{Err: err}
}
