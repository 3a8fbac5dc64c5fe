package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/client"
	"slipway/backend/session"
	"slipway/gpu"
)

func (p sessionCommands) queueCommand() *cobra.Command {
	return usesMachine(asks(p.program, &cobra.Command{Use: "queue [--on AGENT]",
		Short: "List waiting sessions in order, and why they wait"}, "only sessions of this agent", route.Queue,
		p.queueTable))
}

func (p sessionCommands) queueTable(w io.Writer, waiting []api.Session) {
	if len(waiting) == 0 {
		fmt.Fprintln(w, "No session waits.")
		return
	}
	table(w, "TURN,ID,NAME, PRIORITY,NEEDS, WAITED,START,WHY", waiting, func(s api.Session) []string {
		wait, why := cmp.Or(s.Wait, &session.Wait{}), "not planned yet"
		reader := p.reader(s.Agent)
		if s.Wait != nil {
			why = reader.Wait(*wait)
		}
		return []string{turnText(*wait, s.Agent), string(s.ID), s.Name, strconv.Itoa(s.Priority), needs(s.Spec),
			span(p.Now().Sub(s.CreatedAt)), reader.Estimate(*wait), why}
	})
}

// reader is the person at the terminal, who knows a machine by this name.
func (p *program) reader(machine string) session.Reader {
	return session.Reader{Now: p.Now(), Machine: machine}
}

// turnText formats the position in the queue of an agent: "#1 on lab".
func turnText(wait session.Wait, agent string) string {
	if wait.Position == 0 {
		return "on " + agent
	}
	return fmt.Sprintf("#%d on %s", wait.Position, agent)
}

// needs formats the requested resources in one line: "2 CPUs, 4 GiB, 0.5 GPU".
func needs(spec session.Spec) string {
	parts := []string{session.CPUs(max(1, spec.Resources.CPU)), size(spec.Resources.Memory)}
	if !spec.Accelerator.IsZero() {
		parts = append(parts, gpuCount(spec.Accelerator))
	}
	text := strings.Join(parts, ", ")
	if spec.Cluster > 1 {
		text = fmt.Sprintf("%d × (%s)", spec.Cluster, text)
	}
	return text
}

// gpuCount formats a request for devices with its unit: "1 GPU", "2 GPUs", "0.5 GPU", "GPU vram:12g".
func gpuCount(r gpu.Request) string {
	switch {
	case r.Devices > 0:
		return plural(r.Devices, "GPU", "GPUs")
	case r.Shares > gpu.WholeDevice:
		return r.String() + " GPUs"
	case r.Shares > 0:
		return r.String() + " GPU"
	}
	return "GPU " + r.String()
}

func (p sessionCommands) priorityCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "priority SESSION N", Short: "Change the priority of a waiting session, 0 to 100"}
	var priority int
	cmd.PreRunE = func(_ *cobra.Command, args []string) (err error) {
		if priority, err = strconv.Atoi(args[1]); err != nil {
			return usagef("invalid priority %q: use a whole number from 0 to 100", args[1])
		}
		return nil
	}
	return changes(p.program, cmd, route.SessionUpdate,
		func(string) api.SessionUpdate { return api.SessionUpdate{Priority: &priority} },
		func(w io.Writer, s api.Session) { fmt.Fprintf(w, "%s has priority %d.\n", s.Name, s.Priority) })
}

func (p sessionCommands) resizeCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "resize SESSION GPU", Short: "Change the devices that a waiting session asks for",
		Long:    "Resize changes what a waiting session asks for. It keeps its place in the queue.",
		Example: "  slipway resize train-a 0.5\n  slipway resize train-a vram:8g\n  slipway resize train-a none"}
	var asked gpu.Request
	cmd.PreRunE = func(_ *cobra.Command, args []string) error {
		if err := asked.UnmarshalText([]byte(args[1])); err != nil {
			return usagef("%s", err)
		}
		return nil
	}
	return changes(p.program, cmd, route.SessionUpdate,
		func(string) api.SessionUpdate { return api.SessionUpdate{Accelerator: &asked} },
		func(w io.Writer, s api.Session) { fmt.Fprintf(w, "%s asks for %s.\n", s.Name, needs(s.Spec)) })
}

func (p sessionCommands) remindCommand() *cobra.Command {
	var off bool
	cmd := &cobra.Command{Use: "remind SESSION [--off]",
		Short: "Get a desktop notification when a waiting session starts"}
	cmd.Flags().BoolVar(&off, "off", false, "remove the reminder")
	return runs(cmd, p.inSession(func(ctx context.Context, c *caller, s api.Session, _ []string) error {
		on := !off
		s, err := route.SessionUpdate.At(string(s.ID)).Body(api.SessionUpdate{Reminder: &on}).Ask(ctx, c)
		if err != nil {
			return err
		}
		return p.print(s, func(w io.Writer) {
			if on {
				fmt.Fprintf(w, "You are notified when %s starts.\n", s.Name)
			} else {
				fmt.Fprintf(w, "The reminder for %s is removed.\n", s.Name)
			}
		})
	}))
}

func (p sessionCommands) keepCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "keep SESSION TIME", Short: "Keep an idle session, for example for 4h",
		Long: `Keep protects a session from its idle checks and its maximum lifetime. TIME is a length of
time from 1m to 30d, or tomorrow: until 9 o'clock in the morning. 0 removes the protection.
A time limit of Slurm that ends the session earlier is extended, if the site allows it.`}
	return changes(p.program, cmd, route.Keep,
		func(length string) api.KeepRequest {
			if length == "tomorrow" {
				length = p.untilTomorrow().String()
			}
			return api.KeepRequest{For: length}
		},
		func(w io.Writer, s api.Session) {
			if s.KeepUntil == nil {
				fmt.Fprintf(w, "%s is no longer kept.\n", s.Name)
				return
			}
			fmt.Fprintf(w, "%s is kept until %s.\n", s.Name, p.moment(s.KeepUntil))
		})
}

// untilTomorrow is how long it is until 9 o'clock of the next day, in whole seconds.
func (p *program) untilTomorrow() session.Duration {
	now := p.Now()
	morning := time.Date(now.Year(), now.Month(), now.Day()+1, 9, 0, 0, 0, now.Location())
	return session.Duration((morning.Sub(now) + time.Second - 1).Truncate(time.Second))
}

func (p sessionCommands) idleCommand() *cobra.Command {
	flags := idleFlags{}
	cmd := &cobra.Command{Use: "idle SESSION [--idle-…]",
		Short: "Show the idle checks of a session, or simulate others",
		Long: `Idle shows the latest results of the idle checks. With --idle flags it simulates these
checks with the recorded data of the session. It changes nothing.`,
		ValidArgsFunction: p.completeSessions(allSessions)}
	flags.add(cmd)
	var policy *session.IdlePolicy
	cmd.PreRunE = func(*cobra.Command, []string) error {
		read, wrong, err := flags.policy()
		for i := range wrong {
			wrong[i].Field = strings.TrimPrefix(wrong[i].Field, "idle.")
		}
		policy = read
		return errors.Join(err, invalid(session.CodeSessionInvalid, wrong))
	}
	return runs(cmd, p.inSession(func(ctx context.Context, c *caller, s api.Session, _ []string) error {
		if policy == nil {
			return p.print(s, func(w io.Writer) { p.idleTable(w, s.Idle, s.KeepUntil) })
		}
		return show(ctx, c, route.IdleSimulation.At(string(s.ID)).Body(*policy), p.simulationFields)
	}))
}

func (p sessionCommands) simulationFields(w io.Writer, s session.IdleSimulation) {
	verdict := "It would not have been reclaimed."
	if s.Unknown {
		verdict = "Unknown."
	} else if s.Ended {
		verdict = "It would have been reclaimed: " + p.moment(s.At) + ", by the check of " + string(s.Checker) + "."
	}
	fields(w, "Verdict", verdict, "Because", s.Message, "Judged since", p.moment(&s.Since))
}

func (p sessionCommands) idleTable(w io.Writer, checks []session.IdleCheck, keep *time.Time) {
	if keep != nil && keep.After(p.Now()) {
		fmt.Fprintf(w, "It is kept until %s.\n", p.moment(keep))
	}
	if len(checks) == 0 {
		fmt.Fprintln(w, "No idle check watches this session.")
		return
	}
	table(w, "CHECK,STATE,RECLAIMED,USE,MESSAGE", checks, func(check session.IdleCheck) []string {
		at := "-"
		if check.ExpiresAt != nil {
			at = "in " + span(check.ExpiresAt.Sub(p.Now()))
		}
		if check.JudgedFrom != nil {
			at = "judged in " + span(check.JudgedFrom.Sub(p.Now()))
		}
		var metrics []string
		for _, m := range check.Metrics {
			metrics = append(metrics, fmt.Sprintf("%s %.1f of %g %%", m.Name, m.Average, m.Threshold))
		}
		return []string{string(check.Checker), string(check.State), at, strings.Join(metrics, ", "), check.Message}
	})
}

// logOptions selects a part of a log.
type logOptions struct {
	follow, timestamps bool
	tail               int // -1: all
	kernel             string
}

func (p sessionCommands) logsCommand() *cobra.Command {
	opts := logOptions{}
	cmd := &cobra.Command{Use: "logs [-f] [--tail N] [-t] SESSION", Short: "Print the log of a session",
		ValidArgsFunction: p.completeSessions(allSessions)}
	cmd.Flags().BoolVarP(&opts.follow, "follow", "f", false, "follow the log until the session ends")
	cmd.Flags().IntVar(&opts.tail, "tail", -1, "only the last lines, this many")
	cmd.Flags().BoolVarP(&opts.timestamps, "timestamps", "t", false, "start each line with its time")
	cmd.Flags().StringVar(&opts.kernel, "kernel", "", "container of a cluster (default main1)")
	return runs(cmd, p.about(func(ctx context.Context, c *caller, args []string) error {
		return c.copyLogs(ctx, session.ID(args[0]), opts, p.raw.out)
	}))
}

// copyLogs writes a log to w. After a lost connection it resumes a log that it follows from the beginning. Otherwise it
// cannot know where to resume and fails.
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

// ending returns the error of an incomplete body as a [client.Lost].
func ending(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return nil
	}
	return &client.Lost{Err: err}
}
