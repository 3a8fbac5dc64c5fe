package shell

import (
	"context"
	"io"
)

// Program is a program that an image has beside the utilities. It ends by itself
// or with its context, and returns its exit code.
type Program func(ctx context.Context, w *World, args []string, out io.Writer) int

// utilities are all programs of a world by name.
func (w *World) utilities() map[string]utility {
	all := utilities()
	for name, run := range w.Programs {
		all[name] = func(c *command) int { return run(c.ctx, c.world, c.args, c.out) }
	}
	return all
}
