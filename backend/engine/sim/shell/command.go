package shell

import (
	"bytes"
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

type utility struct {
	// options that it accepts, separated by spaces; "=" ends one with a value. Empty: all arguments are operands
	options string
	run     func(c *command) int // returns the exit code
}

type command struct {
	ctx      context.Context //nolint:containedctx // a command is one call and lives no longer
	shell    *Shell
	world    *World
	process  *Process
	name     string
	flags    map[string]string // options that were given, with their values
	operands []string
	dir      string
	env      expand.Environ
	in       io.Reader
	out      io.Writer
	err      io.Writer
	tty      bool // out is the terminal
}

func (c *command) parse(options string, args []string) error {
	if options == "" {
		c.operands = args
		return nil
	}
	if strings.HasPrefix(options, "n=") && len(args) > 0 {
		if n, err := strconv.Atoi(args[0]); err == nil && n < 0 { // head -5
			args = append([]string{"-n", strconv.Itoa(-n)}, args[1:]...)
		}
	}
	set := pflag.NewFlagSet(c.name, pflag.ContinueOnError)
	set.Usage = func() {} // its error says enough
	for _, option := range strings.Fields(options) {
		name, value := strings.CutSuffix(option, "=")
		long, short := name, ""
		if len(name) == 1 {
			long, short = "-"+name, name // which nobody types
		}
		if value {
			set.StringP(long, short, "", "")
		} else {
			set.BoolP(long, short, false, "")
		}
	}
	if err := set.Parse(args); err != nil {
		return err
	}
	c.flags, c.operands = map[string]string{}, set.Args()
	set.Visit(func(f *pflag.Flag) { c.flags[strings.TrimPrefix(f.Name, "-")] = f.Value.String() })
	return nil
}

func (c *command) has(option string) bool {
	_, ok := c.flags[option]
	return ok
}

func (c *command) number(option string, fallback int) (int, error) {
	text, ok := c.flags[option]
	if !ok {
		return fallback, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, errors.New("invalid number: " + text)
	}
	return n, nil
}

func (c *command) exit(code int) error {
	if c.ctx.Err() != nil && code == 0 {
		code = 130
	}
	if code == 0 {
		return nil
	}
	return interp.ExitStatus(code) //nolint:gosec // utilities return 0 to 255
}

func (c *command) path(arg string) string {
	if strings.HasPrefix(arg, "/") {
		return path.Clean(arg)
	}
	return path.Join(c.dir, arg)
}

func (c *command) printf(format string, args ...any) {
	fmt.Fprintf(c.out, format, args...) //nolint:errcheck // a closed pipe ends the writer soon enough
}

// fail prints an error and returns 1.
func (c *command) fail(format string, args ...any) int {
	fmt.Fprintf(c.err, "%s: %s\n", c.name, fmt.Sprintf(format, args...)) //nolint:errcheck // the reader may have left
	return 1
}

// usage prints the usage and returns 2.
func (c *command) usage(text string) int {
	fmt.Fprintf(c.err, "usage: %s %s\n", c.name, text) //nolint:errcheck // the reader may have left
	return 2
}

// stdin is the command's input, which ends with the context.
func (c *command) stdin() io.Reader {
	if file, ok := c.in.(*os.File); c.in == nil || ok && file == nil { // there is none
		return bytes.NewReader(nil)
	}
	return cancellable{ctx: c.ctx, r: c.in}
}

// interruptible lets the context end reads of the input, until stop.
func (c *command) interruptible() (stop func() bool) {
	return context.AfterFunc(c.ctx, func() {
		if file, ok := c.in.(*os.File); ok && file != nil {
			file.SetReadDeadline(time.Now()) //nolint:errcheck // where there are none the input is closed
		}
	})
}

// cancellable ends reading with the context, even of an endless file.
type cancellable struct {
	ctx context.Context //nolint:containedctx // of the call that reads
	r   io.Reader
}

func (r cancellable) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := r.r.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = context.Canceled
	}
	return n, err
}

// errStop ends reading operands when the output is closed.
var errStop = errors.New("stop")

// each calls fn with every operand opened, or with the input if there are none. It returns 1 if one cannot be read.
func (c *command) each(operands []string, fn func(name string, r io.Reader) error) int {
	if len(operands) == 0 {
		operands = []string{"-"}
	}
	code := 0
	for _, name := range operands {
		switch err := c.with(name, fn); {
		case c.ctx.Err() != nil:
			return 130
		case errors.Is(err, errStop):
			return code
		case err != nil:
			code = c.fail("%s: %s", name, errText(err))
		}
	}
	return code
}

func (c *command) with(name string, fn func(name string, r io.Reader) error) error {
	if name == "-" {
		return fn(name, c.stdin())
	}
	file, err := c.world.FS.Open(c.path(name), os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it was only read
	return fn(name, cancellable{ctx: c.ctx, r: file})
}

// maxHeld limits what a utility reads into memory, in bytes.
const maxHeld = 16 << 20

func slurp(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxHeld+1))
	if len(data) > maxHeld {
		return nil, errors.New("cannot allocate memory")
	}
	return data, err
}

func (c *command) create(p string, mode os.FileMode, from io.Reader) error {
	file, err := c.world.FS.Open(p, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, cancellable{ctx: c.ctx, r: from})
	return errors.Join(err, file.Close())
}

// nested runs a script in a new shell with this command's streams.
func (c *command) nested(script, name string, args []string) int {
	config := c.shell.config
	config.Stdin, _ = c.in.(*os.File)
	config.Env, config.Dir, config.Stdout, config.Stderr = c.exported(), c.dir, c.out, c.err
	child, err := New(c.world, config)
	if err != nil {
		return c.fail("%v", err)
	}
	return child.Run(c.ctx, script, name, args...)
}

// pause waits, and reports whether it was not interrupted.
func (c *command) pause(d time.Duration) bool { return c.world.Clock.Pause(c.ctx, d) == nil }
