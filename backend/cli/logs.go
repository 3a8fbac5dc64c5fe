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
		ValidArgsFunction: p.completeSessions(allSessions),
	}
	cmd.Flags().BoolVarP(&opts.follow, "follow", "f", false, "follow the log until the session ends")
	cmd.Flags().IntVar(&opts.tail, "tail", -1, "only the last lines, this many")
	cmd.Flags().BoolVarP(&opts.timestamps, "timestamps", "t", false, "start each line with its time")
	cmd.Flags().StringVar(&opts.kernel, "kernel", "", "container of a cluster (default main1)")
	cmd.RunE = p.inSession(func(ctx context.Context, c *caller, s api.Session, _ []string) error {
		return c.copyLogs(ctx, s.ID, opts, p.raw.out)
	})
	return cmd
}

// copyLogs writes a log to w. A log that is followed from its beginning resumes
// after a lost connection. Of any other the rest would be a guess, so the loss is
// an error.
func (c *caller) copyLogs(ctx context.Context, id session.ID, opts logOptions, w io.Writer) error {
	if opts.tail == 0 && !opts.follow {
		return nil
	}
	at := route.Logs.At(string(id)).Flag("follow", opts.follow).Flag("timestamps", opts.timestamps).
		With("kernel", opts.kernel)
	if opts.tail >= 0 {
		at = at.With("tail", strconv.Itoa(opts.tail))
	}
	var written int64
	copyRest := func(ctx context.Context) error {
		response, err := c.Transfer(ctx, at.Method(), at.Target(), nil, nil)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if _, err := io.CopyN(io.Discard, response.Body, written); err != nil {
			return ending(err)
		}
		n, err := io.Copy(w, response.Body)
		written += n
		return ending(err)
	}
	if opts.follow && opts.tail < 0 {
		return c.resume(ctx, copyRest)
	}
	if err := copyRest(ctx); ctx.Err() == nil {
		return err
	}
	return context.Cause(ctx)
}

// ending tells a body that ended from one that broke off.
func ending(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return nil
	}
	return &client.Lost{Err: err}
}
