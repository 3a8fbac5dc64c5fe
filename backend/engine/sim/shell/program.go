package shell

import (
	"context"
	"io"
)

// Program is a program that an image has beside the utilities. It ends by itself
// or with its context, and returns its exit code.
type Program func(ctx context.Context, call Call) int

// Call is one call of a program.
type Call struct {
	World    *World
	Args     []string // without the name
	Env      []string
	Dir      string
	In       io.Reader
	Out, Err io.Writer
	Terminal bool // In is a terminal
	// Load tells the books of the session how many processors the program keeps
	// busy and how many bytes it holds. It reports false, and ends the session's
	// program as a kernel does, where there are not so many.
	Load func(cpus float64, bytes int64) bool
}

// utilities are all programs of a world by name.
func (w *World) utilities() map[string]utility {
	all := utilities()
	for name, run := range w.Programs {
		all[name] = func(c *command) int { return run(c.ctx, c.call()) }
	}
	return all
}

func (c *command) call() Call {
	call := Call{World: c.world, Args: c.args, Env: c.exported(), Dir: c.dir, In: c.in, Out: c.out, Err: c.err,
		Terminal: c.typed}
	call.Load = func(cpus float64, bytes int64) bool { return c.world.Load(c.process, cpus, bytes) }
	return call
}
