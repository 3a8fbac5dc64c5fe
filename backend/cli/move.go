package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/hub"
	"slipway/backend/session"
)

func (p runCommands) moveCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "move [--yes] SESSION MACHINE", Short: "Move a session to another machine",
		Long: `Move lets a waiting session wait and run on another machine. A session that was launched
without --on moves by itself as soon as another machine of its resource group has room.

A running session, or one that was stopped and kept, moves with its home directory, its mounted
folders and an image of what it installed, and runs there under the same name. What its programs
have in memory is lost. Files are copied while it runs, and what has changed since after it was
stopped; nothing that is there already is sent. If it cannot run there, it is launched again where
it was. In the end move asks whether what is left on the first machine is deleted; --yes deletes
it. When interrupted by the end of Slipway, a move continues when Slipway starts again.`}
	p.yesFlag(cmd)
	return runs(cmd, p.command(func(ctx context.Context, c *caller, args []string) error {
		ref, machine := args[0], args[1]
		s, err := c.find(ctx, ref)
		if err == nil && s.Status == session.Pending {
			return show(ctx, c, route.Move.At(string(s.ID)).Body(api.MoveRequest{Agent: machine}),
				func(w io.Writer, s api.Session) { fmt.Fprintf(w, "%s is on %s now.\n", s.Name, s.Agent) })
		}
		if err == nil {
			ref = string(s.ID)
		}
		plan, err := route.RelocationPlan.At(ref).With("agent", machine).Ask(ctx, c)
		if err == nil && plan.Wait == nil {
			err = p.confirm(ctx, moveQuestion(args[0], plan))
		}
		if err != nil {
			return err
		}
		_, err = c.operate(ctx, func() (api.Operation, error) {
			return route.Relocate.At(ref).Body(api.MoveRequest{Agent: machine}).Ask(ctx, c)
		})
		if err == nil && p.output == outputTable {
			fmt.Fprintf(p.Stdout, "%s runs on %s now.\n", args[0], machine)
		}
		return err
	}))
}

// moveQuestion says what a move would do.
func moveQuestion(name string, plan hub.RelocationPlan) string {
	files := plural(plan.Files, "file", "files")
	if plan.More {
		files = "more than " + files
	}
	text := fmt.Sprintf("Its programs end. %s of its home and folders go with it (%s), and what it installed", files,
		plan.Bytes)
	if plan.Image > 0 {
		text += fmt.Sprintf("; of its image, at most %s that %s does not have", plan.Image, plan.Agent)
	}
	if plan.Seconds != nil {
		text += ", in about " + span(time.Duration(*plan.Seconds*float64(time.Second)))
	}
	if plan.Home != "" {
		text += fmt.Sprintf(". The folder %s of %s, which was its home before, becomes as the home is now", plan.Home,
			plan.Agent)
	}
	return text + ". Move " + name + " to " + plan.Agent + "?"
}
