// Package python runs Python in simulated sessions: CPython, compiled to
// WebAssembly with its standard library, over the files of a session and nothing
// else. It starts no program of the machine it is on and reaches no network.
package python

import (
	"compress/gzip"
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/experimental/sysfs"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"slipway/backend/pace"
)

// Binary is where the interpreter lies in the bundle that is built for simulated
// sessions, packed by gzip.
const Binary = "python-wasi/python.wasm.gz"

// Python is the interpreter. It is made ready at its first use, which takes some
// seconds, and shared by all sessions of a machine.
type Python struct {
	bundle fs.FS

	mu      sync.Mutex // guards ready
	ready   chan struct{}
	runtime wazero.Runtime        // this and what follows is valid when ready is closed
	module  wazero.CompiledModule // instantiated for each run
	err     error
}

// In returns the Python of a bundle, or nil where there is none in it.
func In(bundle fs.FS) *Python {
	if bundle == nil {
		return nil
	}
	if _, err := fs.Stat(bundle, Binary); err != nil {
		return nil
	}
	return &Python{bundle: bundle}
}

func (p *Python) read() ([]byte, error) {
	file, err := p.bundle.Open(Binary)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	packed, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(packed)
}

// Call is one run of the interpreter.
type Call struct {
	Args     []string // without the name of the program
	Env      []string
	Dir      string // it works in
	Files    Files
	In       io.Reader
	Out, Err io.Writer
	Terminal bool // In is a terminal: without a program to run it converses
	Hostname string
	CPUs     int
	Clock    *pace.Clock // nil: the one on the wall
	// Load is told how many processors are busy and how many bytes are held. It
	// reports false where there are not so many: the run is killed. nil: nobody asks.
	Load func(cpus float64, bytes int64) bool
}

// Exit codes beside those of the programs that are run.
const (
	failed      = 1
	interrupted = 130
	killed      = 137
)

// mostMemory bounds what one run takes of the machine that simulates: beyond, Python has a MemoryError.
const mostMemory = 1 << 30

var errKilled = errors.New("there is no more memory")

// Run runs the interpreter until it ends or ctx does, and returns its exit code.
func (p *Python) Run(ctx context.Context, call Call) int {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err := p.run(ctx, call, cancel)
	var exit *sys.ExitError
	switch {
	case errors.Is(context.Cause(ctx), errKilled):
		fmt.Fprintln(call.Err, "Killed") //nolint:errcheck // nobody is left to tell
		return killed
	case ctx.Err() != nil:
		return interrupted
	case errors.As(err, &exit):
		return int(exit.ExitCode() & 0xff) //nolint:gosec // it is bounded
	case err != nil:
		fmt.Fprintf(call.Err, "python: %v\n", err) //nolint:errcheck // nobody is left to tell
		return failed
	}
	return 0
}

func (p *Python) run(ctx context.Context, call Call, cancel context.CancelCauseFunc) error {
	if err := p.prepare(ctx, call.Err); err != nil {
		return err
	}
	load := &load{tell: call.Load, kill: func() { cancel(errKilled) }}
	instance, err := p.runtime.InstantiateModule(experimental.WithMemoryAllocator(ctx, &memory{load: load}), p.module,
		call.config(ctx, load))
	if instance != nil {
		err = errors.Join(err, instance.Close(context.WithoutCancel(ctx)))
	}
	return err
}

// prepare makes the interpreter ready, and says so to whoever waits for it. It
// goes on for the next one who asks when ctx ends.
func (p *Python) prepare(ctx context.Context, told io.Writer) error {
	p.mu.Lock()
	first := p.ready == nil
	if first {
		p.ready = make(chan struct{})
		go func() {
			p.err = p.compile(context.WithoutCancel(ctx))
			close(p.ready)
		}()
	}
	ready := p.ready
	p.mu.Unlock()
	select {
	case <-ready:
		return p.err
	default:
	}
	const wait = "Python is made ready for its first run here; that takes some seconds."
	fmt.Fprintln(told, wait) //nolint:errcheck // nobody is left to tell
	select {
	case <-ready:
		return p.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *Python) compile(ctx context.Context) error {
	wasm, err := p.read()
	if err != nil {
		return err
	}
	p.runtime = wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCloseOnContextDone(true).
		WithDebugInfoEnabled(false).WithMemoryLimitPages(mostMemory/pageSize))
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, p.runtime); err != nil {
		return err
	}
	p.module, err = p.runtime.CompileModule(ctx, wasm)
	return err
}

// customize is the folder with what the interpreter runs first.
const customize = "/.slipway/python"

//go:embed sitecustomize.py
var site embed.FS

func (c Call) config(ctx context.Context, load *load) wazero.ModuleConfig {
	mounts := wazero.NewFSConfig().(sysfs.FSConfig).WithSysFSMount(&fileSystem{files: c.Files}, "/").WithFSMount(site,
		customize)
	search := customize
	config := wazero.NewModuleConfig().WithName("").WithFSConfig(mounts).WithArgs(c.arguments()...).
		WithStdin(&input{ctx: ctx, from: c.In, load: load}).WithStdout(c.Out).WithStderr(c.Err).
		WithRandSource(rand.Reader).
		WithWalltime(func() (int64, int32) { now := c.Clock.Now(); return now.Unix(), int32(now.Nanosecond()) }, 1).
		//nolint:gosec // less than a second
		WithNanotime(func() int64 { return c.Clock.Now().UnixNano() }, 1).
		WithNanosleep(func(ns int64) {
			load.rest(func() { _ = c.Clock.Pause(ctx, time.Duration(ns)) }) // an end of ctx ends the run
		})
	for _, variable := range c.Env {
		name, value, _ := strings.Cut(variable, "=")
		switch name {
		case "PYTHONPATH":
			search += ":" + value
		case "PYTHONHOME", "PYTHONSTARTUP":
		default:
			config = config.WithEnv(name, value)
		}
	}
	return config.WithEnv("PYTHONPATH", search).WithEnv("PYTHONDONTWRITEBYTECODE", "1").
		WithEnv("SLIPWAY_PYTHON", fmt.Sprintf("%s\n%s\n%d", c.Dir, c.Hostname, c.CPUs))
}

// arguments are those of the interpreter, which cannot find out by itself that it
// is on a terminal, and looks for its program before it is in the right directory.
func (c Call) arguments() []string {
	at, named := c.program()
	args := []string{"python3"}
	if c.Terminal {
		args = append(args, "-u")
		if !named {
			args = append(args, "-i")
		}
	}
	given := slices.Clone(c.Args)
	if at < len(given) && given[at] != "-" && !path.IsAbs(given[at]) {
		given[at] = path.Join(c.Dir, given[at])
	}
	return append(args, given...)
}

// program is where in the arguments the path of a program stands, behind their end
// where none does, and whether they name anything to be run or told.
func (c Call) program() (at int, named bool) {
	for at := 0; at < len(c.Args); at++ {
		arg := c.Args[at]
		switch {
		case !strings.HasPrefix(arg, "-") || arg == "-":
			return at, true
		case strings.HasPrefix(arg, "--"), strings.ContainsAny(arg, "cmVh?"):
			return len(c.Args), true
		case arg == "-W" || arg == "-X":
			at++ // its value
		}
	}
	return len(c.Args), false
}
