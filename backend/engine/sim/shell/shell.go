package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// Config describes a shell.
type Config struct {
	Env      []string // NAME=value
	Dir      string   // empty: /home/work
	Stdin    *os.File // nil: empty
	Stdout   io.Writer
	Stderr   io.Writer
	Terminal *Terminal // nil: none
}

// Shell interprets commands in a [World].
type Shell struct {
	world     *World
	config    Config
	runner    *interp.Runner
	utilities map[string]utility
}

// utilities are the programs of every session.
func utilities() map[string]utility {
	return map[string]utility{
		"ls": {"l a 1 h d t r", list}, "cat": {"", concatenate}, "mkdir": {"p", makeDirectory},
		"rm": {"r f", removeFiles}, "cp": {"r a", copyFiles}, "mv": {"f", moveFiles}, "touch": {"", touch},
		"head": {"n= c=", head}, "tail": {"n= f", tail}, "wc": {"l w c", count}, "grep": {"i v n c E", grep},
		"seq": {"", sequence}, "ps": {"", processes}, "top": {"", top}, "env": {"", environment}, "sleep": {"", sleep},
		"nvidia-smi": {"L query-gpu= format=", nvidia}, "sh": {"", shellUtility}, "bash": {"", shellUtility},
		"train":  {"epochs= seconds-per-epoch=", train},
		"stress": {"cpu= vm= vm-bytes= timeout=", stress}, "httpd": {"", serveFiles},
		"llama-server": {"", llama}, "vllm": {"", vllm},
		"clear":    says(func(*command) string { return "\x1b[H\x1b[2J\x1b[3J" }),
		"date":     says(func(c *command) string { return c.world.now().UTC().Format("Mon Jan _2 15:04:05 MST 2006") }),
		"hostname": says(func(c *command) string { return c.world.Hostname }),
		"nproc":    says(func(c *command) string { return fmt.Sprint(c.world.CPUs) }),
		"whoami":   says(func(c *command) string { return c.world.User }),

		builtinPrefix + "which": {"", which}, builtinPrefix + "help": {"", help}, builtinPrefix + "kill": {"", kill},
	}
}

// utilities are all programs of a world.
func (w *World) utilities() map[string]utility {
	all := utilities()
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, handler := range w.Servers {
		all[name] = servePages(handler)
	}
	return all
}

// fifoDirectory does not exist, so that process substitution, for which the interpreter makes pipes on the host, fails.
const fifoDirectory = "/nonexistent/slipway-sim"

// New makes a shell that has run nothing yet.
func New(w *World, config Config) (*Shell, error) {
	config.Dir = cmp.Or(config.Dir, "/home/work")
	s := &Shell{world: w, config: config, utilities: w.utilities()}
	var stdin io.Reader // not a nil file
	if config.Stdin != nil {
		stdin = config.Stdin
	}
	env := slices.Concat([]string{"HOME=/home/work"}, config.Env, []string{"TMPDIR=" + fifoDirectory})
	options := []interp.RunnerOption{
		interp.Env(environ{expand.ListEnviron(env...)}),
		interp.CallHandler(s.call),
		interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc { return s.exec }),
		interp.OpenHandler(s.open),
		interp.ReadDirHandler2(func(_ context.Context, p string) ([]fs.DirEntry, error) { return w.FS.ReadDir(p) }),
		interp.StatHandler(func(_ context.Context, p string, follow bool) (fs.FileInfo, error) {
			if follow {
				return w.FS.Stat(p)
			}
			return w.FS.Lstat(p)
		}),
		interp.AccessHandler(s.access),
		func(r *interp.Runner) error { r.Dir = config.Dir; return nil },
		interp.StdIO(stdin, config.Stdout, config.Stderr),
	}
	if config.Terminal != nil {
		options = append(options, interp.Interactive(true))
	}
	runner, err := interp.New(options...)
	if err != nil {
		return nil, err
	}
	s.runner = runner
	file, err := syntax.NewParser().Parse(strings.NewReader("TMPDIR=/tmp; export TMPDIR; alias ll='ls -l'"), "")
	if err == nil {
		err = runner.Run(context.Background(), file)
	}
	return s, err
}

// Run runs a whole script and returns its exit code, 130 if ctx ended it.
func (s *Shell) Run(ctx context.Context, script, name string, args ...string) int {
	file, err := parse(script, name)
	if err != nil {
		fmt.Fprintf(s.config.Stderr, "%s\n", err) //nolint:errcheck // the reader may have left
		return 2
	}
	s.runner.Params = args
	return s.finish(ctx, s.interpret(ctx, file))
}

func parse(script, name string) (*syntax.File, error) {
	if len(script) > maxSource {
		return nil, errors.New("the script is longer than 256 KiB")
	}
	return syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), name)
}

func (s *Shell) finish(ctx context.Context, err error) int {
	status, exited := errors.AsType[interp.ExitStatus](err)
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		return 130
	case exited:
		return int(status)
	}
	fmt.Fprintf(s.config.Stderr, "shell: %v\n", err) //nolint:errcheck // the reader may have left
	return 1
}

// environ are the variables of a shell. It also has the home directories of users, which the interpreter would look up
// on the host.
type environ struct{ expand.Environ }

func (e environ) Get(name string) expand.Variable {
	user, home := strings.CutPrefix(name, "HOME ")
	if !home {
		return e.Environ.Get(name)
	}
	dir := map[string]string{"root": "/root", "work": "/home/work"}[user]
	return expand.Variable{Set: true, Kind: expand.String, Str: cmp.Or(dir, "~"+user)}
}

// unsearched marks a path that the interpreter must not look for on the host, where no path contains it.
const unsearched = "\x00"

func (s *Shell) open(ctx context.Context, p string, flag int, perm os.FileMode) (io.ReadWriteCloser, error) {
	p = strings.TrimPrefix(p, unsearched)
	full := p
	if !strings.HasPrefix(p, "/") {
		full = path.Join(Clean(interp.HandlerCtx(ctx).Dir), p)
	}
	file, err := s.world.FS.Open(full, flag, perm)
	if err != nil {
		return nil, &fs.PathError{Op: "bash:", Path: p, Err: errors.New(errText(err))}
	}
	return file, nil
}

func (s *Shell) access(_ context.Context, p string, mode interp.AccessMode) error {
	info, err := s.world.FS.Stat(p)
	if err != nil {
		return err
	}
	if mode&interp.AccessWrite != 0 {
		if err := s.world.FS.writable(p); err != nil && Clean(p) != "/home/work" && Clean(p) != "/tmp" {
			return err
		}
	}
	if mode&interp.AccessExec != 0 && info.Mode()&0o111 == 0 {
		return syscall.EACCES
	}
	return nil
}

// call keeps the interpreter from reading the host's files, as it would to find programs and scripts in PATH and for
// pwd -P.
func (s *Shell) call(ctx context.Context, args []string) ([]string, error) {
	if err := bounded(); err != nil {
		return nil, err
	}
	switch args[0] {
	case "pwd":
		return args[:1], nil
	case "help", "kill", "which":
		return append([]string{builtinPrefix + args[0]}, args[1:]...), nil
	case "type":
		return append([]string{builtinPrefix + "which"}, args[1:]...), nil
	case "source", ".":
		if len(args) > 1 {
			return append([]string{args[0], unsearched + args[1]}, args[2:]...), nil
		}
	case "command":
		if len(args) > 2 && (args[1] == "-v" || args[1] == "-V") {
			return append([]string{builtinPrefix + "which"}, args[2:]...), nil
		}
		if len(args) > 1 && args[1] == "--" {
			return s.call(ctx, append([]string{"command"}, args[2:]...))
		}
	}
	if (args[0] == "command" || args[0] == "builtin") && len(args) > 1 && interp.IsBuiltin(args[1]) {
		return s.call(ctx, args[1:])
	}
	return args, nil
}

// builtinPrefix marks utilities that replace builtins of the interpreter.
const builtinPrefix = "builtin:"

// exec runs a utility or a script, never a program of the host.
func (s *Shell) exec(ctx context.Context, args []string) error {
	hc := interp.HandlerCtx(ctx)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := &command{
		ctx: ctx, shell: s, world: s.world, name: strings.TrimPrefix(baseName(args[0]), builtinPrefix),
		dir: Clean(hc.Dir), env: hc.Env, in: hc.Stdin, out: hc.Stdout, err: hc.Stderr,
		tty: s.config.Terminal != nil && hc.Stdout == s.config.Stdout,
	}
	name := utilityName(args[0])
	if u, ok := s.utilities[name]; ok {
		tty := "?"
		if s.config.Terminal != nil {
			tty = s.config.Terminal.name
		}
		c.process = s.world.Begin(strings.TrimPrefix(strings.Join(args, " "), builtinPrefix), tty, cancel)
		defer s.world.End(c.process)
		defer c.interruptible()()
		if err := c.parse(u.options, args[1:]); err != nil {
			c.fail("%v", err)
			return interp.ExitStatus(2)
		}
		return c.exit(u.run(c))
	}
	switch name {
	case "echo", "printf", "true", "false", "test", "[":
		return hc.Builtin(ctx, append([]string{name}, args[1:]...))
	}
	c.fail("command not found (%s)", hint(c.name))
	return interp.ExitStatus(127)
}

// utilityName returns the key of a program in utilities.
func utilityName(program string) string {
	switch path.Dir(program) {
	case "/bin", "/usr/bin", "/usr/local/bin", "/app": // the last is where llama.cpp's image has its server
		return path.Base(program)
	}
	return program
}

func hint(name string) string {
	if slices.Contains([]string{"python", "python3", "ipython"}, name) {
		return "terminals of simulated sessions have no Python; open JupyterLab to run some"
	}
	return `this session is simulated: "help" lists the commands that it has`
}

func (s *Shell) names() []string {
	names := programs(s.utilities)
	names = append(names, "cd", "pwd", "echo", "printf", "test", "export", "unset", "alias", "read", "source", "exit",
		"true", "false", "set", "type", "which", "help", "wait", "kill")
	slices.Sort(names)
	return names
}

// programs are the utilities that are not builtins, sorted.
func programs(of map[string]utility) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(of)), func(name string) bool {
		return strings.HasPrefix(name, builtinPrefix)
	})
}

// What a session may use of this process. A script that exceeds it fails.
const (
	maxFrames     = 5_000     // depth of the Go stack, some hundreds of nested function calls
	maxGoroutines = 20_000    // of the whole process
	maxSource     = 256 << 10 // bytes of one script
)

func bounded() error {
	var frame [1]uintptr
	if runtime.Callers(maxFrames, frame[:]) > 0 {
		return errors.New("maximum function nesting level exceeded")
	}
	if runtime.NumGoroutine() > maxGoroutines {
		return errors.New("fork: Resource temporarily unavailable")
	}
	return nil
}

// interpret runs a node. A panic of the interpreter ends only the command.
func (s *Shell) interpret(ctx context.Context, node syntax.Node) (err error) {
	defer func() {
		if defect := recover(); defect != nil {
			err = fmt.Errorf("this shell cannot do that: %v", defect)
		}
	}()
	return s.runner.Run(ctx, node)
}
