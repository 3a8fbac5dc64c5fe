package guest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"slipway/backend/guest/link"
	"slipway/backend/session"
	"slipway/backend/terminal"
)

const (
	maxTerminals = 64 // running at a time
	maxExited    = 16 // kept after their end until they are closed
	maxSide      = 4096
	defaultCols  = 80
	defaultRows  = 24
	maxNotice    = 500 // bytes of a notice
	// exitDelivery is how long viewers of a closed terminal have to receive the remaining output and its exit code.
	exitDelivery = 2 * time.Second
)

type heldTerminal struct {
	id      string
	title   string
	created time.Time
	tty     terminal.TTY
	spool   *terminal.Spool
	shell   *terminal.Shell
}

func (t *heldTerminal) running() bool { return t.shell.State().ExitCode == nil }

func (t *heldTerminal) describe() session.Terminal {
	state := t.shell.State()
	return session.Terminal{
		ID: t.id, Title: t.title, Cols: state.Cols, Rows: state.Rows,
		Start: state.Start, End: state.End, ExitCode: state.ExitCode, CreatedAt: t.created,
	}
}

func (g *Guest) openTerminal(req session.TerminalRequest) (session.Terminal, error) {
	if req.Cols == 0 && req.Rows == 0 {
		req.Cols, req.Rows = defaultCols, defaultRows
	}
	if req.Cols < 1 || req.Rows < 1 || req.Cols > maxSide || req.Rows > maxSide {
		return session.Terminal{}, session.NewError(session.CodeSessionInvalid,
			fmt.Sprintf("Invalid terminal size: %d columns, %d rows.", req.Cols, req.Rows), "Use 1 to 4096 of each.")
	}
	running := 0
	for _, held := range g.terminals.all() {
		if held.running() {
			running++
		}
	}
	if running >= maxTerminals {
		return session.Terminal{}, session.NewError(session.CodeUseTooMany,
			fmt.Sprintf("The session already has %d open terminals, the maximum.", running), "Close some of them.")
	}
	tty, err := g.cfg.Processes.OpenTerminal(Command{Argv: req.Command}, req.Cols, req.Rows)
	if err != nil {
		return session.Terminal{}, session.AsError(err, session.CodeGuestInternal)
	}
	held := g.hold(req, tty)
	go func() {
		held.shell.Run()
		g.prune()
	}()
	return held.describe(), nil
}

func (g *Guest) hold(req session.TerminalRequest, tty terminal.TTY) *heldTerminal {
	held := &heldTerminal{id: strings.ToLower(rand.Text()[:10]), title: req.Title, created: time.Now().UTC(), tty: tty}
	if held.title == "" && len(req.Command) > 0 {
		held.title = req.Command[0]
	}
	spool := terminal.SpoolConfig{Cap: g.cfg.SpoolCap}
	if g.cfg.SpoolDir != "" {
		spool.Path = filepath.Join(g.cfg.SpoolDir, held.id)
	}
	held.spool = terminal.NewSpool(spool)
	held.shell = terminal.NewShell(terminal.ShellConfig{TTY: tty, Spool: held.spool, Cols: req.Cols, Rows: req.Rows})
	g.terminals.add(held)
	return held
}

// findTerminal returns a terminal, or fails with session_use_not-found.
func (g *Guest) findTerminal(id string) (*heldTerminal, error) {
	for _, held := range g.terminals.all() {
		if held.id == id {
			return held, nil
		}
	}
	return nil, session.NewError(session.CodeUseNotFound, fmt.Sprintf("The session has no terminal %q.", id),
		"It was closed. Open a new one.")
}

// prune closes the oldest of too many exited terminals.
func (g *Guest) prune() {
	exited := slices.DeleteFunc(g.terminals.all(), (*heldTerminal).running)
	for _, held := range exited[:max(0, len(exited)-maxExited)] {
		if g.terminals.remove(held) {
			_ = held.spool.Close()
		}
	}
}

func (g *Guest) listTerminals() []session.Terminal {
	list := []session.Terminal{}
	for _, held := range g.terminals.all() {
		list = append(list, held.describe())
	}
	return list
}

func (g *Guest) attachTerminal(ctx context.Context, stream net.Conn, req session.AttachRequest) error {
	held, err := g.findTerminal(req.Terminal)
	if err != nil {
		return err
	}
	if err := link.ReplyOK(stream, struct{}{}); err != nil {
		return nil
	}
	attach := terminal.Attach{Offset: req.Offset, Client: req.Client}
	_ = held.shell.Serve(context.WithoutCancel(ctx), stream, attach) // the viewer received the reason
	return nil
}

// closeTerminal ends a shell and removes it from the list. Viewers receive its exit code.
func (g *Guest) closeTerminal(id string) error {
	held, err := g.findTerminal(id)
	if err != nil {
		return err
	}
	if !g.terminals.remove(held) {
		return nil
	}
	_ = held.tty.Close() // hangs up, which ends the shell's Run
	go func() {
		<-held.shell.Done()
		time.Sleep(exitDelivery)
		_ = held.spool.Close()
	}()
	return nil
}

// closeTerminals hangs up every shell and waits for their ends.
func (g *Guest) closeTerminals(ctx context.Context) error {
	list := g.terminals.all()
	for _, held := range list {
		_ = held.tty.Close()
	}
	for _, held := range list {
		select {
		case <-held.shell.Done():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Foregrounder is implemented by a [terminal.TTY] that knows its foreground program.
type Foregrounder interface {
	// Foreground returns the program in the foreground of the terminal; "" if that is the shell.
	Foreground() (program string, known bool)
}

// foregrounds returns the foreground program of each running terminal.
func (g *Guest) foregrounds() []link.Foreground {
	list := []link.Foreground{}
	for _, held := range g.terminals.all() {
		if !held.running() {
			continue
		}
		f := link.Foreground{Terminal: held.id}
		if tty, ok := held.tty.(Foregrounder); ok {
			f.Program, f.Known = tty.Foreground()
		}
		list = append(list, f)
	}
	return list
}

// notice shows a line in every running terminal.
func (g *Guest) notice(text string) error {
	if text == "" || len(text) > maxNotice || strings.ContainsFunc(text, unicode.IsControl) {
		return session.NewError(session.CodeGuestInvalid, "A notice is one line of at most 500 bytes.",
			"Use a shorter text.")
	}
	for _, held := range g.terminals.all() {
		if held.running() {
			_, _ = held.spool.Notice(text) // fails only if it was closed meanwhile
		}
	}
	return nil
}
