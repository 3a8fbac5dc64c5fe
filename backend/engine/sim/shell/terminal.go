package shell

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"golang.org/x/term"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// Terminal is an interactive shell on a terminal. Read returns its output and Write types.
type Terminal struct {
	shell  *Shell
	name   string         // such as pts/0
	line   *term.Terminal // the line editor at the prompt; used by one goroutine
	keys   keys
	screen *io.PipeReader // what it shows, and
	output *io.PipeWriter // where that is written
	input  chan []byte
	cancel context.CancelFunc
	ctx    context.Context //nolint:containedctx // it is the life of the terminal's only goroutine
	done   chan struct{}
	code   int // valid when done is closed

	raw        atomic.Bool // what is typed goes to the command key by key
	cols, rows atomic.Int64
	front      atomic.Value // the command line that runs, "" at the prompt
}

// Open starts an interactive shell. name is the terminal's, such as pts/0; command runs instead of a prompt if set.
func Open(w *World, env []string, dir, name string, cols, rows int, command []string) (*Terminal, error) {
	ctx, cancel := context.WithCancel(context.Background())
	t := &Terminal{name: name, input: make(chan []byte), cancel: cancel, ctx: ctx, done: make(chan struct{})}
	t.front.Store("")
	t.screen, t.output = io.Pipe()
	t.keys.terminal = t
	t.Resize(cols, rows) //nolint:errcheck // always nil
	out := &crlf{to: t.output}
	s, err := New(w, Config{Env: append(env, "TERM=xterm-256color"), Dir: dir, Stdout: out, Stderr: out, Terminal: t})
	if err != nil {
		cancel()
		return nil, err
	}
	t.shell = s
	t.edit(new(history))
	go t.run(command)
	return t, nil
}

func (t *Terminal) write(text string) {
	t.output.Write([]byte(text)) //nolint:errcheck // a closed terminal shows nothing
}

// Read returns what the terminal shows; io.EOF after the shell's end.
func (t *Terminal) Read(p []byte) (int, error) { return t.screen.Read(p) }

func (t *Terminal) Write(p []byte) (int, error) {
	select {
	case t.input <- slices.Clone(p):
		return len(p), nil
	case <-t.done:
		return 0, io.ErrClosedPipe
	}
}

func (t *Terminal) Resize(cols, rows int) error {
	t.cols.Store(int64(max(cols, 1)))
	t.rows.Store(int64(max(rows, 1)))
	return nil
}

func (t *Terminal) Wait() int {
	<-t.done
	return t.code
}

// Foreground returns the command that runs, or "" at the prompt.
func (t *Terminal) Foreground() (string, bool) { return t.front.Load().(string), true }

func (t *Terminal) Close() error {
	t.cancel()
	return t.screen.Close()
}

// run runs the shell. It owns the line editor and the foreground command.
func (t *Terminal) run(command []string) {
	process := t.shell.world.Begin("-bash", t.name, t.cancel)
	defer func() {
		t.shell.world.End(process)
		t.cancel()
		close(t.done)
		t.output.Close() //nolint:errcheck // always nil
	}()
	if len(command) > 0 {
		t.code, _ = t.foreground(quoted(command))
	} else {
		t.converse()
	}
	if t.ctx.Err() != nil {
		t.code = 129 // hung up
	}
}

func (t *Terminal) converse() {
	for {
		line, ok := t.ask()
		if !ok {
			return
		}
		var exited bool
		if t.code, exited = t.foreground(line); exited || t.ctx.Err() != nil {
			return
		}
	}
}

// edit begins an empty line, with a history.
func (t *Terminal) edit(recalled term.History) {
	t.line = term.NewTerminal(&t.keys, "")
	t.line.SetSize(int(t.cols.Load()), int(t.rows.Load())) //nolint:errcheck // it has not shown anything yet
	t.line.History, t.line.AutoCompleteCallback = recalled, t.complete
}

// history has the entered lines, newest first.
type history []string

func (h *history) Len() int        { return len(*h) }
func (h *history) At(i int) string { return (*h)[i] }

func (h *history) Add(line string) {
	if strings.TrimSpace(line) != "" && (len(*h) == 0 || (*h)[0] != line) {
		*h = slices.Insert(*h, 0, line)[:min(len(*h)+1, 1000)]
	}
}

// keys feed the line editor byte by byte, so that it reads nothing that belongs to the command of the line.
type keys struct {
	terminal *Terminal
	ahead    []byte
	last     byte
}

func (k *keys) Read(p []byte) (int, error) {
	t := k.terminal
	for len(k.ahead) == 0 {
		select {
		case k.ahead = <-t.input:
		case <-t.ctx.Done():
			return 0, t.ctx.Err()
		}
	}
	if len(p) == 0 { // of an escape sequence without an end
		return 0, io.ErrShortBuffer
	}
	t.line.SetSize(int(t.cols.Load()), int(t.rows.Load())) //nolint:errcheck // a closed terminal shows nothing
	k.last, k.ahead = k.ahead[0], k.ahead[1:]
	p[0] = k.last
	return 1, nil
}

func (k *keys) Write(p []byte) (int, error) { return k.terminal.output.Write(p) }

// ask reads a whole command, which may have several lines.
func (t *Terminal) ask() (command string, ok bool) {
	prompt := t.prompt()
	for {
		t.line.SetPrompt(prompt)
		line, err := t.line.ReadLine()
		switch {
		case err == nil || errors.Is(err, term.ErrPasteIndicator):
			command += line + "\n"
			if !incomplete(command) {
				return command, true
			}
			prompt = "> "
		case t.ctx.Err() != nil:
			return "", false
		case t.keys.last == 0x04:
			t.write("exit\r\n")
			return "", false
		default: // Ctrl-C
			t.write("^C\r\n")
			t.edit(t.line.History)
			command, prompt = "", t.prompt()
		}
	}
}

func incomplete(text string) bool {
	if strings.HasSuffix(text, "\\\n") {
		return true
	}
	_, err := parse(text, "")
	return err != nil && syntax.IsIncomplete(err)
}

func (t *Terminal) prompt() string {
	dir := Clean(t.shell.runner.Dir)
	if dir == "/home/work" || strings.HasPrefix(dir, "/home/work/") {
		dir = "~" + strings.TrimPrefix(dir, "/home/work")
	}
	sign := "$ "
	if t.shell.world.User == "root" {
		sign = "# "
	}
	return t.shell.world.User + "@" + t.shell.world.Hostname + ":" + dir + sign
}

// foreground runs a command while the kernel's line mode is simulated. What it does not read is for the next prompt.
func (t *Terminal) foreground(text string) (code int, exited bool) {
	t.front.Store(strings.TrimSpace(text))
	defer t.front.Store("")
	reader, writer, err := os.Pipe()
	if err != nil {
		t.write("shell: " + err.Error() + "\r\n")
		return 1, true
	}
	defer reader.Close() //nolint:errcheck // it was only read
	ctx, interrupt := context.WithCancel(t.ctx)
	defer interrupt()
	ended := make(chan struct{})
	t.raw.Store(false) // before the command, which may change it
	go func() {
		defer close(ended)
		code, exited = t.shell.line(ctx, text, reader)
	}()
	discipline := &cooked{echo: func(string) {}, input: feed(writer), raw: &t.raw}
	discipline.take(t.keys.ahead, interrupt) // it was there before the command and is not shown twice
	discipline.echo = t.write
	for {
		select {
		case data := <-t.input:
			discipline.take(data, interrupt)
			continue
		case <-ended:
		case <-t.ctx.Done():
		}
		writer.Close() //nolint:errcheck // so that what is left has an end
		<-ended
		left, _ := io.ReadAll(reader)
		t.keys.ahead = slices.Concat(left, discipline.input.rest(), discipline.line)
		if ctx.Err() != nil { // an interrupt throws away what was typed
			t.keys.ahead = nil
		}
		return code, exited
	}
}

func (s *Shell) line(ctx context.Context, text string, stdin *os.File) (code int, exited bool) {
	file, err := parse(text, "")
	if err != nil {
		io.WriteString(s.config.Stderr, "bash: "+err.Error()+"\n") //nolint:errcheck // the reader may have left
		return 2, false
	}
	if err := interp.StdIO(stdin, s.config.Stdout, s.config.Stderr)(s.runner); err != nil {
		return 1, true
	}
	for _, stmt := range file.Stmts {
		err := s.interpret(ctx, stmt)
		code = s.finish(ctx, err)
		if ctx.Err() != nil {
			return s.interrupted(), false
		}
		if s.runner.Exited() {
			return code, true
		}
	}
	return code, false
}

// interrupted sets $? after Ctrl-C.
func (s *Shell) interrupted() int {
	const code = 130
	file, err := parse("(exit 130)", "")
	if err == nil {
		err = s.runner.Run(context.Background(), file.Stmts[0])
	}
	if status, _ := errors.AsType[interp.ExitStatus](err); status != code {
		return 1
	}
	return code
}

// complete completes the word before the cursor on Tab to a command or a file, or lists the candidates.
func (t *Terminal) complete(line string, at int, key rune) (completed string, cursor int, ok bool) {
	if key != '\t' {
		return "", 0, false
	}
	from := strings.LastIndexAny(line[:at], " |;&<>") + 1
	candidates := t.shell.candidates(strings.TrimSpace(line[:from]), line[from:at])
	if len(candidates) == 0 {
		return line, at, true
	}
	word := candidates[0]
	for _, candidate := range candidates[1:] {
		for !strings.HasPrefix(candidate, word) {
			_, size := utf8.DecodeLastRuneInString(word)
			word = word[:len(word)-size]
		}
	}
	switch {
	case len(candidates) == 1 && !strings.HasSuffix(word, "/"):
		word += " "
	case len(candidates) > 1 && word == line[from:at]:
		t.line.Write([]byte(strings.Join(candidates, "  ") + "\n")) //nolint:errcheck // a closed terminal shows nothing
	}
	return line[:from] + word + line[at:], from + len(word), true
}

// candidates are the completions of a word after the text before it.
func (s *Shell) candidates(before, word string) (found []string) {
	if !strings.Contains(word, "/") && (before == "" || strings.ContainsAny(before[len(before)-1:], "|;&")) {
		return slices.DeleteFunc(s.names(), func(name string) bool { return !strings.HasPrefix(name, word) })
	}
	dir, prefix := path.Split(word)
	full := dir
	switch {
	case strings.HasPrefix(dir, "~/"):
		full = "/home/work/" + dir[2:]
	case !strings.HasPrefix(dir, "/"):
		full = path.Join(Clean(s.runner.Dir), dir)
	}
	entries, _ := s.world.FS.ReadDir(full) // what cannot be read has no candidates
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasPrefix(name, prefix) || strings.HasPrefix(name, ".") && prefix == "" {
			continue
		}
		if entry.IsDir() {
			name += "/"
		}
		found = append(found, dir+name)
	}
	return found
}

type crlf struct{ to io.Writer }

func (w *crlf) Write(p []byte) (int, error) {
	if _, err := w.to.Write(bytes.ReplaceAll(p, []byte("\n"), []byte("\r\n"))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// cooked is the line discipline while a command runs: it echoes, edits the line, and passes whole lines to the command.
type cooked struct {
	echo  func(string)
	input *feeder
	raw   *atomic.Bool // keys go to the command as they are, but for Ctrl-C
	line  []byte
}

func (d *cooked) give(input []byte) {
	d.input.give(input)
	d.line = nil
}

// mostTyped is how much typed input waits for a command whose pipe is full. More is lost, as on a real terminal.
const mostTyped = 1024

// feeder writes typed input to a command, which may not read it.
type feeder struct {
	command *os.File
	typed   chan []byte // empty: the end of the input
	left    chan []byte // what the command did not take, at the end
}

// feed starts a feeder, which ends with [feeder.rest].
func feed(command *os.File) *feeder {
	f := &feeder{command, make(chan []byte, mostTyped), make(chan []byte, 1)}
	go func() {
		var left []byte
		for input := range f.typed {
			n := 0
			if len(input) == 0 {
				_ = command.Close() // the command sees the end
			} else if len(left) == 0 {
				n, _ = command.Write(input)
			}
			left = append(left, input[n:]...)
		}
		f.left <- left
	}()
	return f
}

func (f *feeder) give(input []byte) {
	select {
	case f.typed <- input:
	default:
	}
}

// rest ends the feeder and returns what the command, which has ended, did not take.
func (f *feeder) rest() []byte {
	close(f.typed)
	return <-f.left
}

// take handles typed bytes.
func (d *cooked) take(data []byte, interrupt func()) {
	for _, char := range data {
		if d.raw.Load() && char != 0x03 {
			d.give([]byte{char})
			continue
		}
		switch char {
		case 0x03:
			d.echo("^C\r\n")
			d.line = nil
			interrupt()
			_ = d.input.command.Close() // the command sees the end
		case 0x04: // after part of a line it passes that on
			d.give(d.line)
		case 0x7f, '\b':
			if _, size := utf8.DecodeLastRune(d.line); size > 0 {
				d.line = d.line[:len(d.line)-size]
				d.echo("\b \b")
			}
		case '\r', '\n':
			d.echo("\r\n")
			d.give(append(d.line, '\n'))
		default:
			d.line = append(d.line, char)
			d.echo(string([]byte{char}))
		}
	}
}
