package guest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"slipway/backend/session"
	"slipway/backend/terminal"
)

const (
	// hangupPause is how long programs that a terminal's program left in the background may still print after its end.
	hangupPause  = 500 * time.Millisecond
	maxVariables = 256 // of one caller
	// Exit codes of a shell for a program that cannot be executed or does not exist.
	codeUnstarted = 126
	codeMissing   = 127
)

// sshSession is one shell, command or transfer of a caller.
type sshSession struct {
	server  *sshServer
	channel ssh.Channel
	env     []session.EnvVar
	tty     *ttyRequest

	program *running      // nil until it is started; used by run's goroutine only
	done    chan struct{} // closed when the caller has received the exit code
}

// running has the functions of a started program for requests.
type running struct {
	signal func(number int) error
	resize func(cols, rows int) error
	hangUp func()
}

type ttyRequest struct {
	term       string
	cols, rows int
}

// run handles requests until the caller disconnects, and hangs up a program that still runs then.
func (c *sshSession) run(requests <-chan *ssh.Request) {
	for request := range requests {
		ok := c.handle(request)
		if request.WantReply {
			_ = request.Reply(ok, nil)
		}
	}
	if c.program != nil {
		select {
		case <-c.done:
		default:
			c.program.hangUp()
		}
	}
	_ = c.channel.Close()
}

// handle handles a request. See RFC 4254, section 6.
func (c *sshSession) handle(request *ssh.Request) bool {
	switch request.Type {
	case "env":
		var v struct{ Name, Value string }
		if ssh.Unmarshal(request.Payload, &v) != nil || len(c.env) >= maxVariables {
			return false
		}
		if allowed := c.server.variables; allowed != nil && !allowed(v.Name) {
			return false
		}
		c.env = append(c.env, session.EnvVar{Name: v.Name, Value: v.Value})
		return true
	case "pty-req":
		var v struct {
			Term                      string
			Cols, Rows, Width, Height uint32
			Modes                     string
		}
		if ssh.Unmarshal(request.Payload, &v) != nil {
			return false
		}
		c.tty = &ttyRequest{term: v.Term, cols: side(v.Cols, defaultCols), rows: side(v.Rows, defaultRows)}
		return true
	case "window-change":
		if len(request.Payload) < 8 || c.program == nil {
			return false
		}
		cols, rows := binary.BigEndian.Uint32(request.Payload), binary.BigEndian.Uint32(request.Payload[4:])
		_ = c.program.resize(side(cols, defaultCols), side(rows, defaultRows)) // it may have ended
		return true
	case "signal":
		var v struct{ Name string }
		number := 0
		if ssh.Unmarshal(request.Payload, &v) == nil {
			number = signals[v.Name]
		}
		if number == 0 || c.program == nil {
			return false
		}
		_ = c.program.signal(number) // it may have ended
		return true
	case "shell", "exec", "subsystem":
		return c.begin(request)
	}
	return false
}

// signals are the signals of RFC 4254 by their numbers on Linux.
var signals = map[string]int{
	"HUP": 1, "INT": 2, "QUIT": 3, "ILL": 4, "ABRT": 6, "FPE": 8, "KILL": 9,
	"USR1": 10, "SEGV": 11, "USR2": 12, "PIPE": 13, "ALRM": 14, "TERM": 15,
}

// side returns a side of a terminal, or fallback if the caller sent nonsense.
func side(asked uint32, fallback int) int {
	if asked == 0 || asked > maxSide {
		return fallback
	}
	return int(asked)
}

// begin starts the requested program, once.
func (c *sshSession) begin(request *ssh.Request) bool {
	if c.program != nil {
		return false
	}
	var v struct{ Text string }
	if request.Type != "shell" && ssh.Unmarshal(request.Payload, &v) != nil {
		return false
	}
	if request.Type == "subsystem" && v.Text != "sftp" {
		return false
	}
	if request.WantReply { // first: a short program could end, and the channel with it, before the reply
		_ = request.Reply(true, nil)
		request.WantReply = false
	}
	c.done = make(chan struct{})
	var err error
	switch {
	case request.Type == "subsystem":
		err = c.beginSFTP()
	case !hasShell(c.server.processes):
		err = noShell(session.CodeGuestInternal)
	case request.Type == "shell" && c.tty != nil:
		err = c.beginTTY(nil)
	case c.tty != nil:
		err = c.beginTTY(c.server.processes.Script(v.Text))
	default:
		if missing := missingProgram(c.server.processes, v.Text); missing != "" {
			c.refuse(codeMissing, missing)
			return true
		}
		err = c.beginPipes(Command{Argv: c.server.processes.Script(v.Text), Env: c.env, Stdin: true}, v.Text)
	}
	if err != nil {
		e := session.AsError(err, session.CodeGuestInternal)
		c.refuse(codeUnstarted, strings.TrimSpace(e.Message+" "+e.Hint))
	}
	return true
}

// missingProgram returns an explanation if command is one that tools such as rsync expect here and the image lacks it.
func missingProgram(processes Processes, command string) string {
	words := strings.Fields(command)
	if len(words) == 0 || !slices.Contains([]string{"rsync", "scp", "git-upload-pack", "git-receive-pack"}, words[0]) {
		return ""
	}
	name := words[0]
	if processes.Which([]string{name})[name] != "" {
		return ""
	}
	hint := "Use an image that has it; scp and sftp need nothing in the image."
	if name == "scp" {
		hint = "Leave out -O: scp speaks sftp then, which needs nothing in the image."
	}
	return fmt.Sprintf("The image of this session has no %s. %s", name, hint)
}

// refuse ends a session whose program could not be started, as a shell would.
func (c *sshSession) refuse(code int, text string) {
	_, _ = fmt.Fprintf(c.channel.Stderr(), "slipway: %s\n", text)
	c.end(code)
}

// SFTPServer is implemented by [Processes] that serve sftp as the user whose programs they start.
type SFTPServer interface {
	// SFTP starts a server that speaks sftp on its input and output.
	SFTP() (terminal.Process, error)
}

func (c *sshSession) beginSFTP() error {
	server, ok := c.server.processes.(SFTPServer)
	if !ok {
		return session.NewError(session.CodeProcessNotFound, "This session does not serve files by sftp.",
			"Copy them with slipway cp.")
	}
	process, err := server.SFTP()
	if err != nil {
		return err
	}
	c.attach(process)
	return nil
}

// beginPipes starts a program without a terminal.
func (c *sshSession) beginPipes(cmd Command, text string) error {
	process, err := c.server.processes.Start(cmd)
	if err != nil {
		return err
	}
	if words := strings.Fields(text); len(words) > 1 || len(words) == 1 &&
		!slices.Contains(shells, path.Base(words[0])) {
		left := c.server.use.add(func() string { return shorten(words) })
		go func() {
			<-c.done
			left()
		}()
	}
	c.attach(process)
	return nil
}

// attach connects a program to the caller.
func (c *sshSession) attach(process terminal.Process) {
	c.program = &running{
		signal: process.Signal,
		resize: func(int, int) error { return nil },
		hangUp: func() { _ = errors.Join(process.Signal(signalHangUp), process.Signal(signalContinue)) },
	}
	go func() { // ends with the caller's input or with the channel
		in := process.Stdin()
		_, _ = io.Copy(in, c.channel)
		_ = in.Close()
	}()
	go func() {
		defer close(c.done)
		var outputs sync.WaitGroup
		outputs.Go(func() { copyOrDrop(c.channel, process.Stdout()) })
		outputs.Go(func() { copyOrDrop(c.channel.Stderr(), process.Stderr()) })
		outputs.Wait()
		c.end(process.Wait())
	}()
}

// copyOrDrop copies output and discards it without a caller, so that a full pipe does not block a remaining program.
func copyOrDrop(to io.Writer, from io.Reader) {
	if _, err := io.Copy(to, from); err != nil {
		_, _ = io.Copy(io.Discard, from)
	}
}

// beginTTY starts a program, or a shell where there is none, on a terminal.
func (c *sshSession) beginTTY(argv []string) error {
	env := c.env
	if c.tty.term != "" {
		env = append([]session.EnvVar{{Name: "TERM", Value: c.tty.term}}, env...)
	}
	tty, err := c.server.processes.OpenTerminal(Command{Argv: argv, Env: env}, c.tty.cols, c.tty.rows)
	if err != nil {
		return err
	}
	c.program = &running{
		signal: func(int) error { return nil }, // a terminal's signals are typed
		resize: tty.Resize,
		hangUp: func() { _ = tty.Close() },
	}
	left := c.server.use.add(func() (program string) {
		if tty, ok := tty.(Foregrounder); ok {
			program, _ = tty.Foreground()
		}
		return program
	})
	go func() { _, _ = io.Copy(tty, usedChannel{c.channel, c.server.use, true}) }() // ends with the channel
	go func() {
		defer close(c.done)
		defer left()
		drained := make(chan struct{})
		go func() {
			defer close(drained)
			copyOrDrop(c.channel, tty)
		}()
		code := tty.Wait()
		select {
		case <-drained:
		case <-time.After(hangupPause):
		}
		_ = tty.Close()
		<-drained
		c.end(code)
	}()
	return nil
}

// end sends the exit code and closes the channel. It fails only if the caller has disconnected.
func (c *sshSession) end(code int) {
	_ = c.channel.CloseWrite()
	_, _ = c.channel.SendRequest("exit-status", false, binary.BigEndian.AppendUint32(nil, uint32(code)))
	_ = c.channel.Close()
}

// The signals for a program whose caller has disconnected.
const (
	signalHangUp   = 1
	signalContinue = 18
)
