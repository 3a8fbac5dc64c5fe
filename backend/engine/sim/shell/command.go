package shell

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
)

// utility is one program. It returns its exit code.
type utility func(c *command) int

// command is one call of a utility.
type command struct {
	ctx     context.Context //nolint:containedctx // a command is one call and lives no longer
	shell   *Shell
	world   *World
	process *Process
	name    string
	args    []string // without the name
	dir     string
	env     expand.Environ
	in      io.Reader
	out     io.Writer
	err     io.Writer
	tty     bool // out is the terminal
}

func (c *command) exit(code int) error {
	if err := c.ctx.Err(); err != nil && code == 0 {
		code = 130
	}
	if code == 0 {
		return nil
	}
	return interp.ExitStatus(code) //nolint:gosec // utilities return 0 to 255
}

// path makes an argument absolute.
func (c *command) path(arg string) string {
	if strings.HasPrefix(arg, "/") {
		return path.Clean(arg)
	}
	return path.Join(c.dir, arg)
}

func (c *command) printf(format string, args ...any) {
	fmt.Fprintf(c.out, format, args...) //nolint:errcheck // a closed pipe ends the writer soon enough
}

// fail says what is wrong and returns 1.
func (c *command) fail(format string, args ...any) int {
	fmt.Fprintf(c.err, "%s: %s\n", c.name, fmt.Sprintf(format, args...)) //nolint:errcheck // nobody is left to tell
	return 1
}

func (c *command) usage(text string) int {
	fmt.Fprintf(c.err, "usage: %s %s\n", c.name, text) //nolint:errcheck // nobody is left to tell
	return 2
}

// flags are the options that were given: the letter and its value, "true" for
// one that takes none.
type flags map[byte]string

func (f flags) has(letters string) bool {
	for i := range len(letters) {
		if _, ok := f[letters[i]]; ok {
			return true
		}
	}
	return false
}

// number is the value of an option as a number.
func (f flags) number(letter byte, fallback int) (int, error) {
	text, ok := f[letter]
	if !ok {
		return fallback, nil
	}
	return strconv.Atoi(text)
}

// parse splits the arguments into options and operands. spec is as for getopt:
// letters, each followed by a colon if it takes a value. long gives letters
// for long options.
func (c *command) parse(spec string, long map[string]byte) (flags, []string, error) {
	names := map[byte]string{}
	for name, letter := range long {
		names[letter] = name
	}
	set := pflag.NewFlagSet(c.name, pflag.ContinueOnError)
	set.Usage = func() {} // the utility says it
	for i := range len(spec) {
		letter := spec[i : i+1]
		name := cmp.Or(names[spec[i]], "-"+letter) // which nobody types
		switch {
		case letter == ":":
		case strings.HasPrefix(spec[i+1:], ":"):
			set.StringP(name, letter, "", "")
		default:
			set.BoolP(name, letter, false, "")
		}
	}
	if err := set.Parse(c.args); err != nil {
		return nil, nil, err
	}
	given := flags{}
	set.Visit(func(f *pflag.Flag) { given[f.Shorthand[0]] = f.Value.String() })
	return given, set.Args(), nil
}

// stdin returns the input of the command; reading it ends with the context.
func (c *command) stdin() io.Reader {
	// The interpreter hands over a nil *os.File where there is no input.
	file, ok := c.in.(*os.File)
	if c.in == nil || ok && file == nil {
		return bytes.NewReader(nil)
	}
	if !ok {
		return c.in
	}
	return contextReader{ctx: c.ctx, file: file}
}

type contextReader struct {
	ctx  context.Context //nolint:containedctx // of the call that reads
	file *os.File
}

func (r contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	stop := context.AfterFunc(r.ctx, func() {
		r.file.SetReadDeadline(time.Now()) //nolint:errcheck // where there are no deadlines the input is closed instead
	})
	defer stop()
	n, err := r.file.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return n, r.ctx.Err()
	}
	return n, err
}

// each calls fn with every operand opened, or with the input where there are
// none. It returns 1 if any could not be read.
func (c *command) each(operands []string, fn func(name string, r io.Reader) error) int {
	if len(operands) == 0 {
		operands = []string{"-"}
	}
	code := 0
	for _, name := range operands {
		if err := c.ctx.Err(); err != nil {
			return 130
		}
		if err := c.with(name, fn); err != nil {
			if errors.Is(err, errStop) {
				return code
			}
			code = c.fail("%s: %s", name, errText(err))
		}
	}
	return code
}

// errStop ends a loop over files early, without a complaint.
var errStop = errors.New("stop")

func (c *command) with(name string, fn func(name string, r io.Reader) error) error {
	if name == "-" {
		return fn(name, c.stdin())
	}
	p := c.path(name)
	if info, err := c.world.FS.Stat(p); err == nil && info.IsDir() {
		return errors.New("Is a directory") //nolint:staticcheck // the words of the C library
	}
	file, err := c.world.FS.Open(p, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it was only read
	return fn(name, cancellable{ctx: c.ctx, r: file})
}

// cancellable ends reading from an endless file with the context.
type cancellable struct {
	ctx context.Context //nolint:containedctx // of the call that reads
	r   io.Reader
}

func (r cancellable) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// nested runs a script in a shell of its own, with this command's streams.
func (c *command) nested(script, name string, args []string) int {
	in, _ := c.in.(*os.File)
	child, err := New(c.world, Config{Env: c.exported(), Dir: c.dir, Stdin: in, Stdout: c.out, Stderr: c.err,
		Cols: c.shell.config.Cols, Rows: c.shell.config.Rows, Raw: c.shell.config.Raw})
	if err != nil {
		return c.fail("%v", err)
	}
	return child.Run(c.ctx, script, name, args...)
}

// pause waits, and reports whether it was not interrupted.
func (c *command) pause(d time.Duration) bool { return c.world.Clock.Pause(c.ctx, d) == nil }
