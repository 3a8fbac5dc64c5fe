package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"

	"github.com/spf13/cobra"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/client"
	"slipway/backend/session"
	"slipway/backend/terminal"
)

func (p terminalCommands) execCommand() *cobra.Command {
	var stdin, tty bool
	var env []string
	request := session.ExecRequest{}
	cmd := &cobra.Command{
		Use:   "exec [-i] [-t] [-e NAME=VALUE] [-w DIR] SESSION -- COMMAND…",
		Short: "Run a command in a session",
		Long: `Exec runs a command in a running session as its user, passes its output and errors
through unchanged, and exits with its exit code. It passes signals to the command.`,
	}
	cmd.Flags().BoolVarP(&stdin, "interactive", "i", false, "pass standard input to the command")
	cmd.Flags().BoolVarP(&tty, "tty", "t", false, "run the command in a terminal")
	cmd.Flags().StringArrayVarP(&env, "env", "e", nil, "variable NAME=VALUE, or NAME to pass its value; repeatable")
	cmd.Flags().StringVar(&request.Kernel, "kernel", "", "container of a cluster, such as sub1 (default main1)")
	cmd.Flags().StringVarP(&request.Dir, "workdir", "w", "", "directory to run in (default /home/work)")
	cmd.Flags().SetInterspersed(false)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		request.Command = args[1:]
		if len(request.Command) > 0 && request.Command[0] == "--" {
			request.Command = request.Command[1:]
		}
		if len(request.Command) == 0 {
			return usagef("missing command: add it after --")
		}
		var spec session.Spec
		for _, entry := range env {
			if err := runCommands(p).addEnv(&spec, entry); err != nil {
				return err
			}
		}
		request.Env, request.Stdin = spec.Env, stdin
		if tty && (len(env) > 0 || request.Dir != "") {
			return usagef("--env and --workdir do not work with --tty: run env or a shell in the session")
		}
		if tty && !p.hasTerminal() {
			return usagef("--tty needs a terminal: remove it")
		}
		return p.besideSession(func(ctx context.Context, c *caller, s api.Session, _ []string) error {
			if tty {
				return exitWith(p.openTerminal(ctx, c, s, request.Kernel, request.Command))
			}
			return exitWith(p.execute(ctx, c, s, request))
		})(cmd, args)
	}
	return cmd
}

// impatience is how many interrupts a command may ignore before exec leaves,
// which ends it.
const impatience = 3

// execute runs a command and returns its exit code. It passes signals on.
func (p terminalCommands) execute(ctx context.Context, c *caller, s api.Session,
	request session.ExecRequest) (int, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	received := make(chan os.Signal, 8)
	signal.Notify(received, forwarded()...)
	defer signal.Stop(received)
	numbers := make(chan int)
	go func() {
		interrupts := 0
		for {
			select {
			case sig := <-received:
				if sig == os.Interrupt {
					interrupts++
				}
				if interrupts > impatience {
					cancel(context.Canceled)
				}
				select {
				case numbers <- signalNumber(sig):
				case <-ctx.Done():
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	conn, err := c.Frames(ctx, route.Exec.At(string(s.ID)).Target(), request)
	if err != nil {
		return 0, err
	}
	streams := terminal.ExecIO{Stdout: p.raw.out, Stderr: p.raw.err, Signals: numbers}
	if request.Stdin {
		streams.Stdin = p.Stdin
	}
	code, err := terminal.RunExec(ctx, conn, streams)
	if err != nil && client.IsLost(err) {
		return 0, errors.Join(fail(session.CodeSessionUnavailable, "The connection was lost, which ended the command.",
			"A terminal outlives lost connections: slipway attach "+s.Name+"."), err)
	}
	return code, err
}
