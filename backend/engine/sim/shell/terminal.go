package shell

import (
	"context"
	"errors"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"sync/atomic"

	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// Terminal is an interactive shell on a terminal of its own. Read gives what
// the terminal shows and Write takes what is typed.
type Terminal struct {
	shell  *Shell
	editor *editor
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

// Open starts an interactive shell. name is the name of its terminal, such as
// pts/0; command, if there is one, runs instead of the shell's prompt.
func Open(w *World, env []string, dir, name string, cols, rows int, command []string) (*Terminal, error) {
	ctx, cancel := context.WithCancel(context.Background())
	t := &Terminal{input: make(chan []byte), cancel: cancel, ctx: ctx, done: make(chan struct{})}
	t.front.Store("")
	t.resize(cols, rows)
	t.screen, t.output = io.Pipe()
	out := &crlf{to: t.output}
	s, err := New(w, Config{Env: append(env, "TERM=xterm-256color"), Dir: dir, Stdout: out, Stderr: out, TTY: name,
		Cols: t.width, Rows: func() int { return int(t.rows.Load()) }, Raw: t.raw.Store})
	if err != nil {
		cancel()
		return nil, err
	}
	t.shell = s
	write := func(text string) { t.output.Write([]byte(text)) } //nolint:errcheck // a closed terminal shows nothing
	t.editor = &editor{write: write, cols: t.width, complete: s.complete}
	go t.run(command)
	return t, nil
}

func (t *Terminal) width() int { return int(t.cols.Load()) }

// Read returns what the terminal shows; io.EOF after the shell's end.
func (t *Terminal) Read(p []byte) (int, error) { return t.screen.Read(p) }

// Write types on the terminal.
func (t *Terminal) Write(p []byte) (int, error) {
	select {
	case t.input <- slices.Clone(p):
		return len(p), nil
	case <-t.done:
		return 0, io.ErrClosedPipe
	}
}

// Resize changes the size of the terminal.
func (t *Terminal) Resize(cols, rows int) error {
	t.resize(cols, rows)
	return nil
}

func (t *Terminal) resize(cols, rows int) {
	t.cols.Store(int64(max(cols, 1)))
	t.rows.Store(int64(max(rows, 1)))
}

// Wait waits for the shell and returns its exit code.
func (t *Terminal) Wait() int {
	<-t.done
	return t.code
}

// Foreground returns the command that runs, or "" while the shell waits for one.
func (t *Terminal) Foreground() (string, bool) { return t.front.Load().(string), true }

// Close hangs up.
func (t *Terminal) Close() error {
	t.cancel()
	return t.screen.Close()
}

// run is the life of the shell: it owns the editor and what runs in front.
func (t *Terminal) run(command []string) {
	process := t.shell.world.Begin("-bash", t.shell.config.TTY, t.cancel)
	defer func() {
		t.shell.world.End(process)
		t.cancel()
		close(t.done)
		t.output.Close() //nolint:errcheck // always nil
	}()
	if len(command) > 0 {
		t.code, _, _ = t.foreground(quoted(command), nil)
	} else {
		t.converse()
	}
	if t.ctx.Err() != nil {
		t.code = 129 // hung up
	}
}

// converse asks for commands and runs them until the shell is told to end.
func (t *Terminal) converse() {
	var ahead []byte
	for {
		line, rest, ok := t.ask(ahead)
		if !ok {
			return
		}
		code, exited, rest := t.foreground(line, rest)
		t.code = code
		if exited || t.ctx.Err() != nil {
			return
		}
		ahead = rest
	}
}

// ask reads a whole command, of several lines where the shell wants more.
func (t *Terminal) ask(input []byte) (command string, rest []byte, ok bool) {
	t.editor.begin(t.prompt())
	var text strings.Builder
	for {
		happened := eventNone
		if len(input) > 0 || len(t.editor.pending) > 0 {
			happened, input = t.editor.feed(input)
		}
		switch happened {
		case eventLine:
			text.WriteString(string(t.editor.line) + "\n")
			t.editor.remember(string(t.editor.line))
			t.shell.history = t.editor.history
			if incomplete(text.String()) {
				t.editor.begin("> ")
				continue
			}
			return text.String(), input, true
		case eventInterrupt:
			text.Reset()
			t.editor.begin(t.prompt())
			continue
		case eventEnd:
			t.editor.write("exit\r\n")
			return "", nil, false
		case eventNone:
		}
		select {
		case input = <-t.input:
		case <-t.ctx.Done():
			return "", nil, false
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
	return t.shell.world.User + "@" + t.shell.world.Hostname + ":" + dir + "$ "
}

// foreground runs a command while the terminal is in the line mode of the
// kernel. It returns what was typed ahead.
func (t *Terminal) foreground(text string, ahead []byte) (code int, exited bool, rest []byte) {
	t.front.Store(strings.TrimSpace(text))
	defer t.front.Store("")
	reader, writer, err := os.Pipe()
	if err != nil {
		t.editor.write("shell: " + err.Error() + "\r\n")
		return 1, true, nil
	}
	defer reader.Close() //nolint:errcheck // it was only read
	s := t.shell
	ctx, interrupt := context.WithCancel(t.ctx)
	type result struct {
		code   int
		exited bool
	}
	results := make(chan result, 1)
	go func() {
		code, exited := s.line(ctx, text, reader)
		results <- result{code, exited}
	}()
	t.raw.Store(false)
	discipline := &cooked{echo: func(string) {}, input: writer, raw: &t.raw}
	discipline.take(ahead, interrupt) // it was there before the command and is not shown twice
	discipline.echo = t.editor.write
	for {
		select {
		case data := <-t.input:
			discipline.take(data, interrupt)
		case ended := <-results:
			writer.Close()                //nolint:errcheck // so that what is left has an end
			left, _ := io.ReadAll(reader) // typed ahead of the next prompt
			left = append(left, discipline.line...)
			if ctx.Err() != nil && t.ctx.Err() == nil {
				left = nil // an interrupt throws away what was typed
			}
			return ended.code, ended.exited, left
		case <-t.ctx.Done():
			interrupt()
			writer.Close() //nolint:errcheck // the command sees the end
			<-results
			return 129, true, nil
		}
	}
}

// line runs one line of an interactive shell with the given input.
func (s *Shell) line(ctx context.Context, text string, stdin *os.File) (code int, exited bool) {
	file, err := parse(text, "")
	if err != nil {
		io.WriteString(s.config.Stderr, "bash: "+err.Error()+"\n") //nolint:errcheck // nobody is left to tell
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

// interrupted makes $? what it is after Ctrl-C, wherever the interpreter was.
func (s *Shell) interrupted() int {
	const code = 130
	file, err := syntax.NewParser().Parse(strings.NewReader("(exit 130)"), "")
	if err == nil {
		err = s.runner.Run(context.Background(), file.Stmts[0])
	}
	var status interp.ExitStatus
	if !errors.As(err, &status) || status != code {
		return 1
	}
	return code
}

// complete finds what the last word of line may become: a command at the
// beginning, else a file. from is the byte where the word begins.
func (s *Shell) complete(line string) (from int, candidates []string) {
	from = strings.LastIndexAny(line, " |;&<>") + 1
	word := line[from:]
	before := strings.TrimSpace(line[:from])
	if !strings.Contains(word, "/") && (before == "" || strings.ContainsAny(before[len(before)-1:], "|;&")) {
		for _, name := range s.names() {
			if strings.HasPrefix(name, word) {
				candidates = append(candidates, name)
			}
		}
		return from, candidates
	}
	dir, prefix := path.Split(word)
	full := dir
	switch {
	case strings.HasPrefix(dir, "~/"):
		full = "/home/work/" + dir[2:]
	case !strings.HasPrefix(dir, "/"):
		full = path.Join(Clean(s.runner.Dir), dir)
	}
	entries, err := s.world.FS.ReadDir(full)
	if err != nil {
		return from, nil
	}
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasPrefix(name, prefix) || strings.HasPrefix(name, ".") && prefix == "" {
			continue
		}
		if entry.IsDir() {
			name += "/"
		}
		candidates = append(candidates, dir+name)
	}
	return from, candidates
}
