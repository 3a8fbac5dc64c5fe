package cli

import (
	"cmp"
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
	var copies hub.Relocating
	cmd := &cobra.Command{Use: "move [--copy] [--yes] SESSION MACHINE",
		Short: "Move or copy a session to another machine",
		Long: `Move lets a waiting session wait and run on another machine. A session that was launched
without --on moves by itself as soon as another machine of its resource group has room.

A running session, or one that was stopped and kept, moves with its home directory, its mounted
folders and an image of what it installed, and runs there under the same name. What its programs
have in memory is lost. Files are copied while it runs, and what has changed since after it was
stopped; nothing that is there already is sent. If it cannot run there, it is launched again where
it was. In the end move asks whether what is left on the first machine is deleted; --yes deletes
it. When interrupted by the end of Slipway, a move continues when Slipway starts again.

With --copy the session keeps running, and a copy of it is launched under a name of its own, also
on the same machine. It gets the home and the mounted folders as they are now, and an image of what
the session installed. Running processes and their memory are not copied. If the copy fails or is
cancelled, what was copied is deleted.`}
	cmd.Flags().BoolVar(&copies.Copy, "copy", false, "keep the session running, and launch a copy of it")
	cmd.Flags().StringVar(&copies.Name, "name", "", "name of the copy (default: the session's with -copy)")
	p.yesFlag(cmd)
	return runs(cmd, p.command(func(ctx context.Context, c *caller, args []string) error {
		ref, req := args[0], copies
		req.Agent = args[1]
		if req.Name != "" && !req.Copy {
			return failAs(ExitUsage, session.CodeUsage, "--name is for a copy.", "Add --copy.")
		}
		s, err := c.find(ctx, ref)
		if err == nil && s.Status == session.Pending && !req.Copy {
			return show(ctx, c, route.Move.At(string(s.ID)).Body(api.MoveRequest{Agent: req.Agent}),
				func(w io.Writer, s api.Session) { fmt.Fprintf(w, "%s is on %s now.\n", s.Name, s.Agent) })
		}
		if err == nil {
			ref = string(s.ID)
		}
		return p.relocate(ctx, c, ref, args[0], req)
	}))
}

// relocate moves or copies a session that runs, or was stopped and kept, if a person agrees.
func (p runCommands) relocate(ctx context.Context, c *caller, ref, name string, req hub.Relocating) error {
	plan, err := route.RelocationPlan.At(ref).With("agent", req.Agent).Flag("copy", req.Copy).With("name", req.Name).
		Ask(ctx, c)
	if err == nil && plan.Wait == nil {
		err = p.confirm(ctx, moveQuestion(name, plan))
	}
	if err != nil {
		return err
	}
	req.Name = plan.Name
	_, err = c.operate(ctx, func() (api.Operation, error) { return route.Relocate.At(ref).Body(req).Ask(ctx, c) })
	if err == nil && p.output == outputTable {
		fmt.Fprintf(p.Stdout, "%s runs on %s now.\n", cmp.Or(plan.Name, name), plan.Agent)
	}
	return err
}

// moveQuestion says what a move or a copy would do.
func moveQuestion(name string, plan hub.RelocationPlan) string {
	files := plural(plan.Files, "file", "files")
	if plan.More {
		files = "more than " + files
	}
	text := "Its programs end. "
	if plan.Name != "" {
		text = "It keeps running; its processes and their memory are not copied. "
	}
	text += fmt.Sprintf("%s of its home and folders go with it (%s), and what it installed", files, plan.Bytes)
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
	if plan.Name != "" {
		return fmt.Sprintf("%s. Copy %s to %s as %s?", text, name, plan.Agent, plan.Name)
	}
	return text + ". Move " + name + " to " + plan.Agent + "?"
}
