package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/session"
)

func (p serviceCommands) logsCommand() *cobra.Command {
	var on, replica string
	opts := logOptions{}
	cmd := &cobra.Command{Use: "logs [-f] [--tail N] [-t] SERVICE", Short: "Print the logs of a service",
		Long: `Prints the logs of all live replicas, each line after the name of its replica. If none is
live, it prints the log of the one that ended last, which says why a service failed. With -f
it also follows replicas that start later.`,
		Example: "  slipway service logs llama --tail 50\n  slipway service logs llama --replica 3 -f"}
	f := cmd.Flags()
	p.onFlag(cmd, &on, onService)
	f.StringVar(&replica, "replica", "", "only this one, by its number, name or session; also one that has ended")
	f.BoolVarP(&opts.follow, "follow", "f", false, "follow the logs until you press Ctrl-C")
	f.IntVar(&opts.tail, "tail", -1, "only the last lines of each replica, this many")
	f.BoolVarP(&opts.timestamps, "timestamps", "t", false, "start each line with its time")
	return runs(cmd, p.command(func(ctx context.Context, c *caller, args []string) error {
		s, err := route.Service.At(args[0]).With("agent", on).Ask(ctx, c)
		if err != nil {
			return err
		}
		all, err := c.replicas(ctx, s)
		if err != nil {
			return err
		}
		one := func(r api.Session) bool {
			return replica == string(r.ID) || replica == r.Name || s.Name+"-"+replica == r.Name
		}
		live := slices.DeleteFunc(slices.Clone(all), ended)
		switch {
		case replica != "":
			if all = slices.DeleteFunc(all, func(r api.Session) bool { return !one(r) }); len(all) == 0 {
				return fail(session.CodeSessionNotFound, fmt.Sprintf("%s has no replica %q.", s.Name, replica),
					"slipway service show "+s.Name+" lists them.")
			}
			return c.copyLogs(ctx, all[0].ID, opts, p.raw.out)
		case opts.follow:
			return p.followLogs(ctx, c, s, opts)
		case len(live) > 0:
			return p.printLogs(ctx, c, live, opts)
		case len(all) == 0:
			p.notice("%s has no replica yet. %s", s.Name, s.Why)
			return nil
		}
		p.notice("No replica is live. This is the log of %s, which ended last.", all[0].Name)
		return c.copyLogs(ctx, all[0].ID, opts, p.raw.out)
	}))
}

// replicas returns the sessions of a service that started, the newest first.
func (c *caller) replicas(ctx context.Context, s api.Service) ([]api.Session, error) {
	all, err := route.Sessions.With("state", allSessions).With("agent", s.Agent).Ask(ctx, c)
	return slices.DeleteFunc(all, func(one api.Session) bool {
		serves := one.Spec.Serving
		return serves == nil || serves.Service != s.Name || one.StartedAt == nil || one.CreatedAt.Before(s.CreatedAt)
	}), err
}

// printLogs prints the logs of replicas, one after the other.
func (p serviceCommands) printLogs(ctx context.Context, c *caller, replicas []api.Session, opts logOptions) error {
	var lock sync.Mutex
	for _, r := range slices.Backward(replicas) {
		w := &prefixed{to: p.raw.out, lock: &lock, prefix: r.Name + " | "}
		if err := c.copyLogs(ctx, r.ID, opts, w); err != nil {
			return err
		}
		w.flush()
	}
	return nil
}

// followLogs prints the logs of all live replicas as they grow, also of those that start meanwhile.
func (p serviceCommands) followLogs(ctx context.Context, c *caller, s api.Service, opts logOptions) error {
	var lock sync.Mutex
	var following sync.WaitGroup
	defer following.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	begun := map[session.ID]bool{}
	for {
		all, err := c.replicas(ctx, s)
		if ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			return err
		}
		for _, r := range slices.Backward(all) {
			if ended(r) || begun[r.ID] {
				continue
			}
			begun[r.ID] = true
			own := *c
			following.Go(func() {
				w := &prefixed{to: p.raw.out, lock: &lock, prefix: r.Name + " | "}
				defer w.flush()
				if err := own.copyLogs(ctx, r.ID, opts, w); err != nil && ctx.Err() == nil {
					p.notice("The log of %s is not followed: %v", r.Name, err)
				}
			})
		}
		select {
		case <-time.After(watchEvery):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// prefixed writes whole lines, each after a prefix.
type prefixed struct {
	to     io.Writer
	lock   *sync.Mutex // shared by the writers of one screen
	prefix string
	rest   []byte
}

func (w *prefixed) Write(data []byte) (int, error) {
	w.rest = append(w.rest, data...)
	end := bytes.LastIndexByte(w.rest, '\n') + 1
	lines := w.prefix + strings.ReplaceAll(string(w.rest[:max(0, end-1)]), "\n", "\n"+w.prefix) + "\n"
	w.rest = bytes.Clone(w.rest[end:])
	if end == 0 {
		return len(data), nil
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	if _, err := io.WriteString(w.to, lines); err != nil {
		return 0, err
	}
	return len(data), nil
}

// flush writes a last line without its end.
func (w *prefixed) flush() {
	if len(w.rest) > 0 {
		_, _ = w.Write([]byte("\n"))
	}
}
