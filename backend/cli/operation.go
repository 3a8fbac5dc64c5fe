package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/client"
	"slipway/backend/hub"
	"slipway/backend/pace"
	"slipway/backend/session"
)

// begin starts an operation. If ctx ends meanwhile, it still waits a moment for the answer, so that the operation can
// be cancelled.
func begin[In any](ctx context.Context, c *caller, at route.Route[In, api.Operation]) (api.Operation, error) {
	if ctx.Err() != nil {
		return api.Operation{}, ctx.Err()
	}
	asking, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(cancelPatience, stop) })()
	begun, err := at.Ask(asking, c)
	if asking.Err() != nil { // the control plane cancels an operation that it could not report
		return begun, ctx.Err()
	}
	return begun, err
}

// operates starts an operation, shows its progress, answers its prompts, and returns its result. Ctrl-C cancels it.
func (p *program) operates(begin func(context.Context, *caller, []string) (api.Operation, error),
	done func(io.Writer, api.Operation)) runE {
	return p.command(func(ctx context.Context, c *caller, args []string) error {
		ended, err := c.operate(ctx, func() (api.Operation, error) { return begin(ctx, c, args) })
		if ended.ID != "" && p.output != outputTable {
			err = cmp.Or(p.printObject(ended), err)
		}
		if err == nil && p.output == outputTable {
			done(p.Stdout, ended)
		}
		return err
	})
}

// operate starts an operation and returns it after its end, with an error unless it succeeded. If that is unknown, it
// returns no operation.
func (c *caller) operate(ctx context.Context, begin func() (api.Operation, error)) (api.Operation, error) {
	begun, err := begin()
	if err != nil {
		return api.Operation{}, err
	}
	show := &operationView{statusLine: c.program.newStatusLine(), shown: map[string]hub.StepState{}}
	ended, err := c.program.watchOperation(ctx, c, begun, show)
	if ctx.Err() != nil {
		ended, err = c.program.cancelled(ctx, c, begun, show)
	}
	switch {
	case err != nil:
		return api.Operation{}, err
	case ended.State == "cancelled":
		err = failAs(ExitInterrupted, session.CodeOperationCancelled, "It was cancelled.", "")
	case ended.State == "failed" && ended.Error != nil:
		err = &client.Refused{Problem: *ended.Error}
	case ended.State == "failed":
		err = &exitError{ExitFailure}
	}
	return ended, err
}

// cancelPatience is how long to wait for the end of a cancelled operation.
const cancelPatience = 3 * time.Second

// cancelled cancels an operation and returns it after its end, because it may have succeeded before. It fails as ctx
// does if the operation does not end soon.
func (p *program) cancelled(ctx context.Context, c *caller, begun api.Operation,
	show *operationView) (api.Operation, error) {
	p.cancelOperation(ctx, c, begun.ID)
	waiting, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelPatience)
	defer cancel()
	show.left = true
	ended, err := p.watchOperation(waiting, c, begun, show)
	if err != nil {
		return begun, ctx.Err()
	}
	return ended, nil
}

// cancelOperation cancels an operation, even if ctx has ended.
func (p *program) cancelOperation(ctx context.Context, c *caller, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelPatience)
	defer cancel()
	if _, err := route.OperationCancel.At(id).Ask(ctx, c); err != nil {
		p.notice("The operation %s could not be cancelled: %v", id, err)
	}
}

// watchOperation shows an operation until it has ended.
func (p *program) watchOperation(ctx context.Context, c *caller, now api.Operation,
	show *operationView) (api.Operation, error) {
	defer show.clear()
	asked := ""
	see := func(o api.Operation) (done bool, err error) {
		now = o
		show.show(now)
		if now.EndedAt == nil && now.Prompt != nil && now.Prompt.ID != asked && !show.left {
			asked = now.Prompt.ID
			show.clear()
			if err = p.answerPrompt(ctx, c, now.ID, *now.Prompt); err != nil {
				p.cancelOperation(ctx, c, now.ID)
			}
		}
		return now.EndedAt != nil, err
	}
	err := c.events(ctx, func() (bool, error) {
		o, err := route.Operation.At(now.ID).Ask(ctx, c)
		if err != nil {
			return false, err
		}
		return see(o)
	}, func(event api.Event) (bool, error) {
		if o, newer := newerOperation(event, now); newer {
			return see(o)
		}
		return false, nil
	})
	return now, err
}

// newerOperation returns a newer revision of an operation from an event.
func newerOperation(event api.Event, now api.Operation) (newer api.Operation, found bool) {
	var all []api.Operation
	if event.Operation != nil {
		all = []api.Operation{*event.Operation}
	} else if event.Snapshot != nil {
		all = event.Snapshot.Operations
	}
	at := slices.IndexFunc(all, func(o api.Operation) bool { return o.ID == now.ID && o.Revision > now.Revision })
	if at < 0 {
		return now, false
	}
	return all[at], true
}

// answerPrompt asks at the terminal and sends the answer.
func (p *program) answerPrompt(ctx context.Context, c *caller, id string, prompt api.Prompt) error {
	if prompt.Kind == "notice" {
		p.notice("%s", session.Printable(prompt.Text))
		return nil
	}
	prompt.Text = question(prompt)
	answer := "yes"
	var err error
	if !p.yes || prompt.Kind != hub.PromptConfirm {
		answer, err = p.ask(ctx, prompt)
	}
	if err != nil {
		return err
	}
	_, err = route.OperationAnswer.At(id).Body(api.PromptAnswer{Prompt: prompt.ID, Text: answer}).Ask(ctx, c)
	var told *client.Refused
	if errors.As(err, &told) && told.Problem.Code == session.CodeOperationConflict {
		return nil // it was answered elsewhere, or has expired
	}
	return err
}

// question returns the text of a prompt, with the answers that it accepts.
func question(prompt api.Prompt) string {
	switch {
	case prompt.Kind == hub.PromptKeep && len(prompt.Sides) == 2:
		text := fmt.Sprintf("%s Keep this (%s), that (%s) or both?", prompt.Text, prompt.Sides[0], prompt.Sides[1])
		if prompt.Remaining > 0 {
			text += fmt.Sprintf(" Write, for example, \"both all\" for this and %d more.", prompt.Remaining)
		}
		return text
	case prompt.Kind == hub.PromptConfirm && !strings.Contains(prompt.Text, "yes/no"):
		return prompt.Text + " (yes/no)"
	}
	return prompt.Text
}

// ask reads an answer from standard input or, if that is not a terminal, from the controlling terminal.
func (p *program) ask(ctx context.Context, prompt api.Prompt) (string, error) {
	in, ok := p.Stdin.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
		if err != nil {
			return "", fail(session.CodeCommandFailed, "It asks: "+session.Printable(prompt.Text),
				"Run this where you can type, or answer in the user interface.")
		}
		defer tty.Close()
		in = tty
	}
	text := strings.TrimRight(session.Printable(prompt.Text), " \n")
	if prompt.Again {
		text = "That was not accepted. " + text
	}
	if state, err := term.GetState(int(in.Fd())); err == nil {
		defer term.Restore(int(in.Fd()), state) //nolint:errcheck // the terminal may be gone
	}
	if prompt.Secret {
		_ = hide(int(in.Fd())) // before the question, for fast typists; readAnswer reports errors
	}
	fmt.Fprint(p.Stderr, text+" ")
	var answer string
	answered := make(chan error, 1)
	go func() {
		var err error
		answer, err = readAnswer(in, prompt.Secret)
		answered <- err
	}()
	select {
	case err := <-answered:
		if errors.Is(err, io.EOF) {
			return "", failAs(ExitInterrupted, session.CodeOperationCancelled, "Nothing was answered.", "")
		}
		return answer, err
	case <-ctx.Done():
		fmt.Fprintln(p.Stderr)
		return "", ctx.Err()
	}
}

func readAnswer(in *os.File, secret bool) (string, error) {
	if secret {
		data, err := term.ReadPassword(int(in.Fd()))
		fmt.Fprintln(os.Stderr)
		return string(data), err
	}
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && line == "" {
		return "", err
	}
	return strings.TrimRight(line, "\r\n"), nil
}

// yesFlag adds the flag --yes, with which [program.confirm] does not ask.
func (p *program) yesFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&p.yes, "yes", "y", false, "do not ask for confirmation")
}

// confirm asks for confirmation. It fails if the answer is not yes.
func (p *program) confirm(ctx context.Context, question string) error {
	if p.yes {
		return nil
	}
	answer, err := p.ask(ctx, api.Prompt{Text: question + " (yes/no)"})
	if err != nil {
		return err
	}
	if !slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(answer))) {
		return failAs(ExitInterrupted, session.CodeOperationCancelled, "Nothing was changed.", "")
	}
	return nil
}

const (
	reconnectFirst = 50 * time.Millisecond
	reconnectMost  = 2 * time.Second
	reconnectFor   = 30 * time.Second // until a lost control plane is an error
)

// longer returns the next, longer pause between attempts.
func longer(pause time.Duration) time.Duration {
	return min(max(2*pause, reconnectFirst), reconnectMost)
}

// again reconnects and calls try until it succeeds, fails for another reason than a lost connection, or reconnectFor
// has passed.
func (c *caller) again(ctx context.Context, try func(context.Context) error) error {
	start := time.Now()
	for pause := reconnectFirst; ; pause = longer(pause) {
		err := c.reconnect(ctx)
		if err == nil {
			err = try(ctx)
		}
		if err == nil || !worthTrying(err) || time.Since(start) > reconnectFor {
			return err
		}
		if err := pace.Wall().Pause(ctx, pause); err != nil {
			return err
		}
	}
}

// resume calls try, which starts where it stopped, until the connection lasts.
func (c *caller) resume(ctx context.Context, try func(context.Context) error) error {
	err := try(ctx)
	for client.IsLost(err) && ctx.Err() == nil {
		err = c.again(ctx, try)
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// askAgain calls a route, and again if the connection was lost. The route must be idempotent.
func askAgain[In, Out any](ctx context.Context, c *caller, at route.Route[In, Out]) (answer Out, err error) {
	ask := func(ctx context.Context) error { answer, err = at.Ask(ctx, c); return err }
	if err = ask(ctx); err != nil && worthTrying(err) && ctx.Err() == nil {
		err = c.again(ctx, ask)
	}
	return answer, err
}

// follow calls fn with the session now and after each change until fn returns true. It survives lost connections.
func (c *caller) follow(ctx context.Context, id session.ID, fn func(api.Session) bool) error {
	var now api.Session
	read := func() (done bool, err error) {
		now, err = route.Session.At(string(id)).Ask(ctx, c)
		return err == nil && fn(now), err
	}
	changed := func(event api.Event) (bool, error) {
		if event.Removed == string(id) {
			const message = "The session's record was removed while it was watched."
			return false, fail(session.CodeSessionNotFound, message, "")
		}
		var all []api.Session
		if event.Session != nil {
			all = []api.Session{*event.Session}
		} else if event.Snapshot != nil {
			all = event.Snapshot.Sessions
		}
		at := slices.IndexFunc(all, func(s api.Session) bool { return s.ID == id && s.Revision >= now.Revision })
		return at >= 0 && fn(all[at]), nil
	}
	return c.resume(ctx, func(ctx context.Context) error { return c.events(ctx, read, changed) })
}

// events calls read and then fn with each event until one is done. It opens the stream before it calls read, so that no
// change is missed.
func (c *caller) events(ctx context.Context, read func() (done bool, err error),
	fn func(api.Event) (done bool, err error)) error {
	conn, err := c.Dial(ctx, route.Events.Target())
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	done, err := read()
	for err == nil && !done {
		var event api.Event
		if err := conn.ReadJSON(&event); err != nil {
			return &client.Lost{Err: err}
		}
		done, err = fn(event)
	}
	return err
}

// limited cancels ctx after timeout with an error about what. 0 means no timeout.
func limited(ctx context.Context, timeout time.Duration, what string) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, timeout, failAs(ExitTimeout, session.CodeOperationTimeout,
		fmt.Sprintf("%s did not happen within %s.", what, span(timeout)),
		"slipway show and slipway history show the state of the session."))
}

// progress shows the status of a session on one line of a terminal, or a line for each status if standard error is not
// a terminal.
type progress struct {
	statusLine
	program *program
	last    string
}

func (g *progress) show(s api.Session) {
	oneLine, text := g.terminal, s.Name+": "+string(s.Status)
	if detail := g.program.stateDetail(s); detail != "" && !ended(s) && (oneLine || s.Status == session.Pending) {
		text += ", " + detail
	}
	g.say(text)
}

// say shows one line.
func (g *progress) say(text string) {
	if text = inLine(text); g.terminal {
		g.statusLine.show(text)
	} else if text != g.last {
		g.last = text
		fmt.Fprintln(g.w, text)
	}
}

// stateDetail returns the reason for the status of a session in a few words.
func (p *program) stateDetail(s api.Session) string {
	switch {
	case ended(s) && s.Error != nil && s.Status == "ERROR":
		return s.Error.Message
	case ended(s):
		if s.ExitCode != nil && s.Type == typeBatch && s.Reason != "task-finished" {
			return fmt.Sprintf("%s, exit code %d", s.Reason, *s.ExitCode)
		}
		return string(s.Reason)
	case s.Wait != nil:
		return p.reader(s.Agent).Wait(*s.Wait)
	case s.Pull != nil && s.Pull.Total > 0:
		text := percent(s.Pull.Current, s.Pull.Total) + " of " + size(s.Pull.Total)
		if s.Pull.Rate > 0 {
			text += ", " + size(s.Pull.Rate) + "/s"
		}
		return text
	case s.Pull != nil:
		return fmt.Sprintf("%d of %s", s.Pull.LayersDone, plural(s.Pull.Layers, "layer", "layers"))
	}
	deadline, announced := s.Deadline()
	switch {
	case announced:
		return "ends in " + span(deadline.ExpiresAt.Sub(p.Now())) + " unless kept: slipway keep " + s.Name + " 4h"
	case len(s.Warnings) > 0:
		return s.Warnings[len(s.Warnings)-1].Title
	case deadline != nil:
		return "ends in " + span(deadline.ExpiresAt.Sub(p.Now()))
	}
	return ""
}
