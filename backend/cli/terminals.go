package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/client"
	"slipway/backend/pace"
	"slipway/backend/session"
	"slipway/backend/terminal"
)

func (p terminalCommands) attachCommand() *cobra.Command {
	var id, kernel string
	var fresh bool
	cmd := &cobra.Command{Use: "attach [--new | --terminal ID] SESSION [-- COMMAND…]",
		Short: "Open a terminal of a session, or return to one",
		Long: `Attach opens the newest shell of a session, or starts one. Press Ctrl-P Ctrl-Q to leave it
running. When the shell ends, attach exits with its exit code. After a lost connection,
attach resumes where it stopped.`}
	cmd.Flags().StringVar(&id, "terminal", "", "return to this shell")
	cmd.Flags().StringVar(&kernel, "kernel", "",
		"join or open a shell in this container of a cluster, such as sub1 (default main1)")
	cmd.Flags().BoolVar(&fresh, "new", false, "open a new shell")
	cmd.Flags().SetInterspersed(false)
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if !p.hasTerminal() {
			return usagef("attach needs a terminal: use slipway exec without one")
		}
		if id != "" && kernel != "" {
			return usagef("--terminal already names a shell: remove --kernel")
		}
		return nil
	}
	return runs(cmd, p.besideSession(func(ctx context.Context, c *caller, s api.Session, args []string) error {
		words := withoutDashes(args)
		choice := shellChoice{id: id, kernel: kernel, fresh: fresh || len(words) > 0}
		return exitWith(p.attach(ctx, c, s, choice, words))
	}))
}

// withoutDashes removes the -- before a command.
func withoutDashes(args []string) []string {
	if len(args) > 0 && args[0] == "--" {
		return args[1:]
	}
	return args
}

// shellChoice says which shell to join: if it is neither named nor fresh, the newest one of a kernel.
type shellChoice struct {
	id, kernel string
	fresh      bool
}

func (p terminalCommands) attach(ctx context.Context, c *caller, s api.Session, choice shellChoice,
	words []string) (int, error) {
	if !choice.fresh {
		shells, err := route.Terminals.At(string(s.ID)).Ask(ctx, c)
		if err != nil {
			return 0, err
		}
		if shell, found := choice.among(shells); found {
			return p.join(ctx, c, s, shell)
		}
	}
	if choice.id != "" {
		return 0, fail(session.CodeUseNotFound, fmt.Sprintf("%s has no live terminal %q.", s.Name, choice.id),
			"Omit --terminal to open one.")
	}
	return p.openTerminal(ctx, c, s, choice.kernel, words)
}

// among returns the newest shell of the kernel that has not ended, or the one named.
func (o shellChoice) among(shells []session.Terminal) (best session.Terminal, found bool) {
	for _, shell := range shells {
		here := cmp.Or(shell.Kernel, session.MainKernel) == cmp.Or(o.kernel, session.MainKernel)
		if shell.ExitCode == nil && (o.id == shell.ID || o.id == "" && here &&
			(!found || shell.CreatedAt.After(best.CreatedAt))) {
			best, found = shell, true
		}
	}
	return best, found
}

// openTerminal opens a shell in a kernel, or a terminal that runs words, joins it, and returns its exit code.
func (p terminalCommands) openTerminal(ctx context.Context, c *caller, s api.Session, kernel string,
	words []string) (int, error) {
	cols, rows := p.terminalSize()
	request := session.TerminalRequest{Kernel: kernel, Command: words, Cols: cols, Rows: rows}
	shell, err := route.TerminalOpen.At(string(s.ID)).Body(request).Ask(ctx, c)
	if err != nil {
		return 0, err
	}
	return p.join(ctx, c, s, shell)
}

// replay is how much of the past output of a shell is shown, in bytes.
const replay = 64 << 10

// join sets the terminal to raw mode and joins a shell.
func (p terminalCommands) join(ctx context.Context, c *caller, s api.Session, shell session.Terminal) (int, error) {
	in := p.Stdin.(*os.File) // as hasTerminal has checked
	state, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return 0, err
	}
	restore := func() { _ = term.Restore(int(in.Fd()), state) }
	defer restore()
	ctx, cancel := interruptible(ctx) // for kill: Ctrl-C is a byte now
	defer cancel()
	resized := make(chan os.Signal, 1)
	notifyResize(resized)
	defer signal.Stop(resized)
	offset := shell.Start
	if shell.End > replay {
		offset = max(offset, shell.End-replay)
	}
	a := &attachment{in: in, out: p.raw.out, size: p.terminalSize, resized: resized, offset: offset,
		dial: func(ctx context.Context, first bool, offset uint64, viewer string) (terminal.Conn, error) {
			at := route.TerminalAttach.At(string(s.ID), shell.ID).With("offset", strconv.FormatUint(offset, 10)).
				With("client", viewer).Target()
			if !first {
				if err := c.reconnect(ctx); err != nil {
					return nil, err
				}
			}
			return c.Frames(ctx, at, nil)
		},
		lost: func() {
			fmt.Fprint(p.raw.err, "\r\n[the connection is lost; trying again, Ctrl-P Ctrl-Q leaves]\r\n")
		},
	}
	code, err := a.run(ctx)
	restore()
	if errors.Is(err, errDetached) {
		p.notice("\nThe terminal keeps running. Return with slipway attach %s.", s.Name)
		return 0, nil
	}
	return code, err
}

func (p terminalCommands) hasTerminal() bool { return isTerminal(p.Stdin) && isTerminal(p.raw.out) }

func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// terminalSize returns the size of the terminal, or a default.
func (p terminalCommands) terminalSize() (cols, rows int) {
	if file, ok := p.raw.out.(*os.File); ok {
		if cols, rows, err := term.GetSize(int(file.Fd())); err == nil && cols > 0 && rows > 0 {
			return cols, rows
		}
	}
	return 80, 24
}

// attachment joins one shell and reconnects as often as necessary.
type attachment struct {
	in      io.Reader
	out     io.Writer
	size    func() (cols, rows int)
	resized <-chan os.Signal
	offset  uint64 // of the first byte of output
	dial    func(ctx context.Context, first bool, offset uint64, client string) (terminal.Conn, error)
	lost    func() // called once in each longer outage
}

// errDetached means that the user left the shell, which keeps running.
var errDetached = errors.New("detached")

const (
	outageShown = time.Second     // until an outage is shown
	outageMost  = 5 * time.Minute // until an outage is an error
)

// run returns the exit code of the shell after its end, errDetached if the user left it, or another error.
func (a *attachment) run(ctx context.Context) (int, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	id := rand.Text()
	viewer := terminal.NewViewer(terminal.ViewerConfig{Client: id, Offset: a.offset, Output: a.out, Gap: a.gap})
	defer viewer.Close()
	viewer.Resize(a.size())
	go a.feed(viewer, cancel)
	go func() {
		for {
			select {
			case <-a.resized:
				viewer.Resize(a.size())
			case <-ctx.Done():
				return
			}
		}
	}()
	var pause time.Duration // before the next connection; grows while connections end without output
	for first := true; ; first = false {
		conn, err := a.connect(ctx, first, pause, viewer, id)
		if err != nil {
			return 0, cmp.Or(context.Cause(ctx), err)
		}
		shown := viewer.Offset()
		code, err := viewer.Run(ctx, conn)
		if pause = longer(pause); viewer.Offset() != shown {
			pause = 0
		}
		switch {
		case err == nil:
			return code, nil
		case ctx.Err() != nil || !client.IsLost(err):
			return 0, cmp.Or(context.Cause(ctx), err)
		}
	}
}

// gap prints that output is missing because more was written than is stored.
func (a *attachment) gap(from, to uint64) {
	fmt.Fprintf(a.out, "\r\n[%s of older output is no longer available]\r\n", size(int64(to-from)))
}

// connect dials after a pause until it succeeds or another attempt would not help.
func (a *attachment) connect(ctx context.Context, first bool, pause time.Duration, viewer *terminal.Viewer,
	client string) (terminal.Conn, error) {
	start, said := time.Now(), false
	for ; ; pause = longer(pause) {
		if err := pace.Wall().Pause(ctx, pause); err != nil {
			return nil, err
		}
		conn, err := a.dial(ctx, first, viewer.Offset(), client)
		if err == nil {
			return conn, nil
		}
		away := time.Since(start)
		retry := worthTrying(err) || session.CodeOf(err).Detail() == session.DetailUnavailable // its agent is away
		if first || ctx.Err() != nil || away > outageMost || !retry {
			return nil, err
		}
		if away > outageShown && !said {
			said = true
			a.lost()
		}
	}
}

// feed passes on the keyboard until its end or the detach keys. It may be blocked in a read when the attachment ends.
func (a *attachment) feed(viewer *terminal.Viewer, cancel context.CancelCauseFunc) {
	keys := detachKeys{}
	buffer := make([]byte, 4<<10)
	for {
		n, err := a.in.Read(buffer)
		input, leave := keys.filter(buffer[:n])
		if leave {
			cancel(errDetached)
			return
		}
		if len(input) > 0 {
			if _, err := viewer.Write(input); err != nil {
				return // the shell has ended
			}
		}
		if err != nil {
			cancel(errDetached)
			return
		}
	}
}

// detachKeys finds Ctrl-P Ctrl-Q in the input. It holds back Ctrl-P until the next byte.
type detachKeys struct{ held bool }

const ctrlP, ctrlQ = 0x10, 0x11

func (k *detachKeys) filter(typed []byte) (input []byte, leave bool) {
	for _, b := range typed {
		if k.held {
			k.held = false
			if b == ctrlQ {
				return input, true
			}
			input = append(input, ctrlP)
		}
		if b == ctrlP {
			k.held = true
			continue
		}
		input = append(input, b)
	}
	return input, false
}

func (p terminalCommands) execCommand() *cobra.Command {
	var stdin, tty bool
	var env []string
	request := session.ExecRequest{}
	cmd := &cobra.Command{Use: "exec [-i] [-t] [-e NAME=VALUE] [-w DIR] SESSION -- COMMAND…",
		Short: "Run a command in a session",
		Long: `Exec runs a command in a running session as its user, passes its output and errors
through unchanged, and exits with its exit code. It passes signals to the command.`}
	cmd.Flags().BoolVarP(&stdin, "interactive", "i", false, "pass standard input to the command")
	cmd.Flags().BoolVarP(&tty, "tty", "t", false, "run the command in a terminal")
	cmd.Flags().StringArrayVarP(&env, "env", "e", nil, "variable NAME=VALUE, or NAME to pass its value; repeatable")
	cmd.Flags().StringVar(&request.Kernel, "kernel", "", "container of a cluster, such as sub1 (default main1)")
	cmd.Flags().StringVarP(&request.Dir, "workdir", "w", "", "directory to run in (default /home/work)")
	cmd.Flags().SetInterspersed(false)
	cmd.PreRunE = func(_ *cobra.Command, args []string) error {
		if request.Command = withoutDashes(args[1:]); len(request.Command) == 0 {
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
		return nil
	}
	return runs(cmd, p.besideSession(func(ctx context.Context, c *caller, s api.Session, _ []string) error {
		if tty {
			return exitWith(p.openTerminal(ctx, c, s, request.Kernel, request.Command))
		}
		return exitWith(p.execute(ctx, c, s, request))
	}))
}

// impatience is how many interrupts a command may ignore before exec ends, which ends the command.
const impatience = 3

// execute runs a command, passes on signals, and returns its exit code.
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
