package guest

import (
	"encoding/binary"
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
	// hangupPause is how long output may still come after a program on a terminal has ended, from what it left behind
	// there.
	hangupPause = 500 * time.Millisecond
	// maxVariables is how many variables a caller may send.
	maxVariables = 256
	// codeUnstarted is a shell's exit code for a program that cannot be executed.
	codeUnstarted = 126
	// codeMissing is a shell's exit code for a program that is not there.
	codeMissing = 127
)

// sshSession is one shell, command or transfer of a caller.
type sshSession struct {
	server  *sshServer
	channel ssh.Channel
	env     []session.EnvVar
	tty     *ttyRequest

	program running       // nil until it was started; only run's goroutine sets it
	done    chan struct{} // closed when the program's end was told
}

// running is a started program as far as requests concern it.
type running interface {
	signal(number int)
	resize(cols, rows int)
	hangUp()
}

type ttyRequest struct {
	term       string
	cols, rows int
}

// run obeys requests until the caller has left. A program that still runs then is hung up; one that has ended leaves
// behind what it started to stay.
func (c *sshSession) run(requests <-chan *ssh.Request) {
	for request := range requests {
		ok := c.obey(request)
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

// obey does what a request asks. See RFC 4254, section 6.
func (c *sshSession) obey(request *ssh.Request) bool {
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
		c.program.resize(side(cols, defaultCols), side(rows, defaultRows))
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
		c.program.signal(number)
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

// side is one side of a terminal that a caller may name without sense.
func side(asked uint32, fallback int) int {
	if asked == 0 || asked > maxSide {
		return fallback
	}
	return int(asked)
}

// begin starts the program that a request names, once.
func (c *sshSession) begin(request *ssh.Request) bool {
	if c.program != nil {
		return false
	}
	var v struct{ Text string }
	if request.Type != "shell" && ssh.Unmarshal(request.Payload, &v) != nil {
		return false
	}
	c.done = make(chan struct{})
	var err error
	switch {
	case request.Type == "subsystem":
		if v.Text != "sftp" {
			return false
		}
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

// missingProgram says what is to be said when one of the programs that the tools on the near side expect over here is
// not in the image, and nothing otherwise.
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

// refuse ends a session whose program could not be started as a shell would.
func (c *sshSession) refuse(code int, text string) {
	_, _ = fmt.Fprintf(c.channel.Stderr(), "slipway: %s\n", text)
	c.tell(code)
	_ = c.channel.Close()
}

// tell sends the exit code. It fails only when the caller has left.
func (c *sshSession) tell(code int) {
	_, _ = c.channel.SendRequest("exit-status", false, binary.BigEndian.AppendUint32(nil, uint32(code)))
}

// SFTPServer is a container that serves its files by the protocol of sftp, as the user whose programs it starts. Not
// every [Processes] does.
type SFTPServer interface {
	// SFTP starts the server; its input and output speak the protocol.
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
		left := c.server.use.work(shorten(words))
		go func() { <-c.done; left() }()
	}
	c.attach(process)
	return nil
}

// attach connects a program to the caller.
func (c *sshSession) attach(process terminal.Process) {
	c.program = piped{process}
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

// copyOrDrop copies output, and drops it once the caller has left, so that a program that was made to outlive its
// caller is not stopped by a full pipe.
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
	c.program = onTTY{tty}
	left := c.server.use.foreground(tty)
	go func() { _, _ = io.Copy(tty, typed{c.channel, c.server.use}) }() // ends with the channel
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

// end tells the caller of the program's end.
func (c *sshSession) end(code int) {
	_ = c.channel.CloseWrite()
	c.tell(code)
	_ = c.channel.Close()
}

type piped struct{ terminal.Process }

// signalHangUp and signalContinue are what a program is told whose caller left.
const (
	signalHangUp   = 1
	signalContinue = 18
)

func (p piped) signal(number int) { _ = p.Signal(number) } // it may have ended
func (p piped) resize(int, int)   {}

func (p piped) hangUp() {
	p.signal(signalHangUp)
	p.signal(signalContinue)
}

type onTTY struct{ terminal.TTY }

func (p onTTY) signal(int)            {} // what is typed is a terminal's signals
func (p onTTY) resize(cols, rows int) { _ = p.Resize(cols, rows) }
func (p onTTY) hangUp()               { _ = p.Close() }
