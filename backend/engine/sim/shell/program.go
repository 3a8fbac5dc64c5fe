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
	Out, Err io.Writer
}

// utilities are all programs of a world by name.
func (w *World) utilities() map[string]utility {
	all := utilities()
	for name, run := range w.Programs {
		all[name] = func(c *command) int {
			return run(c.ctx, Call{World: c.world, Args: c.args, Out: c.out, Err: c.err})
		}
	}
	return all
}
