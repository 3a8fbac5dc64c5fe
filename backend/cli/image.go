package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/hub"
	"slipway/backend/session"
	"slipway/gpu"
)

func (p dataCommands) imageCommand() *cobra.Command {
	parent := &cobra.Command{
		Use:   "image",
		Short: "Manage images",
	}
	list := asks(p.program, &cobra.Command{Use: "ls [--on AGENT]", Aliases: []string{"list"}, Short: "List images"},
		"only images on this agent's machine", route.Images, p.imageTable)
	disk := asks(p.program, &cobra.Command{Use: "df [--on AGENT]", Short: "Show the disk space of images"},
		"the agent whose machine is looked at (default this computer's)", route.ImageDisk, diskTable)
	parent.AddCommand(list, p.imagePullCommand(), p.imageRemoveCommand(), disk, p.imageCleanCommand(),
		p.imageSendCommand())
	return parent
}

func (p dataCommands) imageSendCommand() *cobra.Command {
	var req api.ImageSending
	cmd := &cobra.Command{
		Use:   "send IMAGE --to AGENT [--from AGENT]",
		Short: "Send an image to another agent without a registry",
		Long: `Send transfers only the layers that are missing there, compressed, through the existing
connection. After an interruption the transfer resumes automatically. Without --from the
image is on this computer; without --to it is sent to this computer.

On a machine where you are not an admin the image is only yours, and its name there begins
with slipway-custom/ and your name. If another image already has the name, remove that image
first or, as an admin, use --replace.`,
	}
	cmd.Flags().StringVar(&req.From, "from", "", "source agent (default: this computer)")
	cmd.Flags().StringVar(&req.To, "to", "", "target agent (default: this computer)")
	cmd.Flags().BoolVar(&req.Replace, "replace", false, "move the name from another image there (admins only)")
	for _, name := range []string{"from", "to"} {
		_ = cmd.RegisterFlagCompletionFunc(name, p.completeAgents) // fails only for a flag that is not there
	}
	cmd.RunE = p.operates(func(ctx context.Context, c *caller, args []string) (api.Operation, error) {
		req.Image = args[0]
		return begin(ctx, c, route.ImageSend.Body(req))
	}, func(w io.Writer, o api.Operation) {
		fmt.Fprintf(w, "%s is on %s.\n", cmp.Or(o.Image, req.Image), o.Agent)
	})
	return cmd
}

func (p dataCommands) imagePullCommand() *cobra.Command {
	var req api.ImagePull
	cmd := &cobra.Command{
		Use:   "pull IMAGE [--on AGENT]",
		Short: "Pull an image from a registry",
		Long: `The agent uses the registry logins that docker login saved on its machine if you are an
admin, or if an admin allowed them with "slipway agent limit set". Otherwise it pulls without
a login. To resume an interrupted pull, run the same command again.`,
	}
	p.onFlag(cmd, &req.Agent, "the agent whose machine gets it (default this computer's)")
	cmd.RunE = p.operates(func(ctx context.Context, c *caller, args []string) (api.Operation, error) {
		req.Image = args[0]
		return begin(ctx, c, route.ImagePull.Body(req))
	}, func(w io.Writer, o api.Operation) { fmt.Fprintf(w, "%s is on %s.\n", req.Image, o.Agent) })
	return cmd
}

func (p dataCommands) imageRemoveCommand() *cobra.Command {
	var req api.ImageRemoval
	cmd := &cobra.Command{
		Use: "rm IMAGE… [--on AGENT]", Aliases: []string{"remove"}, Short: "Remove images",
		Long: "Removes all names of an image. Images in use by a session are kept.",
	}
	p.onFlag(cmd, &req.Agent, "the agent whose machine has them (default this computer's)")
	p.yesFlag(cmd)
	cmd.RunE = p.operates(func(ctx context.Context, c *caller, args []string) (api.Operation, error) {
		req.Images = args
		if err := p.confirm(ctx, "Remove "+strings.Join(args, ", ")+"?"); err != nil {
			return api.Operation{}, err
		}
		return begin(ctx, c, route.ImageRemove.Body(req))
	}, func(io.Writer, api.Operation) {})
	return cmd
}

func diskTable(w io.Writer, disk api.ImageDisk) {
	table(w, "IMAGE, SIZE, ALONE, CONTAINERS,USED BY,ID", disk.Images, func(room session.ImageRoom) []string {
		return []string{imageName(room.Image), size(room.Image.Size), size(room.Alone),
			strconv.Itoa(room.Containers), named(room.Image.UsedBy, func(u session.ImageUser) string { return u.Name }),
			shortImageID(room.Image.ID)}
	})
	fmt.Fprintf(w, "Total: %s. ALONE is the space that removing only this image frees.\n", size(disk.Total))
}

// imageName is what an image is called in a table.
func imageName(image session.Image) string {
	switch {
	case len(image.Refs) == 0:
		return "<none>"
	case image.Origin != nil:
		return image.Refs[0] + " (customized)"
	}
	return image.Refs[0]
}

func shortImageID(id string) string {
	if len(id) > 19 {
		return id[:19] // sha256: and 12 digits, as docker shows them
	}
	return id
}

// cleaning says which images a cleanup takes.
type cleaning struct {
	unused, custom time.Duration
}

func cleaningOf(unused, custom string) (what cleaning, err error) {
	for _, age := range []struct {
		flag, text string
		into       *time.Duration
	}{{"--unused", unused, &what.unused}, {"--customized", custom, &what.custom}} {
		if age.text == "" {
			continue
		}
		d, err := session.ParseDuration(age.text)
		if err != nil || d <= 0 {
			return what, usagef("%s %q is no age; write a whole number with s, m, h, d or w, such as 30d", age.flag,
				age.text)
		}
		*age.into = time.Duration(d)
	}
	return what, nil
}

// takes reports whether a cleanup takes an image: one that nobody uses and that
// has no name, or is of a kind and an age that was asked for.
func (c cleaning) takes(room session.ImageRoom, now time.Time) bool {
	age := now.Sub(room.Image.CreatedAt)
	switch {
	case room.Containers > 0 || len(room.Image.UsedBy) > 0:
		return false
	case len(room.Image.Refs) == 0:
		return true
	case room.Image.Origin != nil:
		return c.custom > 0 && age > c.custom
	}
	return c.unused > 0 && age > c.unused
}

func (p dataCommands) imageCleanCommand() *cobra.Command {
	var on string
	var unused, custom string
	cmd := &cobra.Command{
		Use: "prune [--unused AGE] [--customized AGE] [--on AGENT]", Short: "Remove unused images",
		Long: `Without flags, prune removes untagged images only. It never removes images that a session or
another container uses. It first shows what it would remove and how much space that frees.`,
		Example: "  slipway image prune\n  slipway image prune --unused 90d --customized 30d",
	}
	p.onFlag(cmd, &on, "the agent whose machine is cleaned (default this computer's)")
	p.yesFlag(cmd)
	cmd.Flags().StringVar(&unused, "unused", "", "also unused images of this age, such as 90d")
	cmd.Flags().StringVar(&custom, "customized", "", "also customized images of this age, such as 30d")
	cmd.RunE = p.operates(func(ctx context.Context, c *caller, _ []string) (api.Operation, error) {
		what, err := cleaningOf(unused, custom)
		if err != nil {
			return api.Operation{}, err
		}
		disk, err := route.ImageDisk.With("agent", on).Ask(ctx, c)
		if err != nil {
			return api.Operation{}, err
		}
		req := api.ImageRemoval{Agent: on}
		var alone gpu.Bytes
		for _, room := range disk.Images {
			if what.takes(room, p.Now()) {
				req.Images = append(req.Images, room.Image.ID)
				alone += room.Alone
				fmt.Fprintf(p.Stderr, "  %s  %s\n", shortImageID(room.Image.ID), imageName(room.Image))
			}
		}
		if len(req.Images) == 0 {
			return api.Operation{}, failAs(ExitOK, session.CodeNoImage, "Nothing to remove.", "")
		}
		if err := p.confirm(ctx, fmt.Sprintf("Remove these %d images? This frees at least %s.", len(req.Images),
			size(alone))); err != nil {
			return api.Operation{}, err
		}
		return begin(ctx, c, route.ImageRemove.Body(req))
	}, func(w io.Writer, o api.Operation) {
		if at := slices.IndexFunc(o.Steps, func(s api.OpStep) bool { return s.Name == "room" }); at >= 0 {
			fmt.Fprintln(w, o.Steps[at].Detail+".")
		}
	})
	return cmd
}

func (p dataCommands) commitCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "commit SESSION NAME",
		Short: "Create an image from a running interactive session",
		Long: `Commit saves what the session installed and changed as an image that the launcher offers
next to the original. Folders, mounts and /home/work are not included. The session is paused
while it is copied. NAME has 4 to 32 letters, digits, _ and -.`,
		RunE: p.operates(func(ctx context.Context, c *caller, args []string) (api.Operation, error) {
			return begin(ctx, c, route.Commit.At(args[0]).Body(api.Commit{Name: args[1]}))
		}, func(w io.Writer, o api.Operation) {
			fmt.Fprintf(w, "%s is on %s. Launch it with: slipway run --image %s\n", o.Image, o.Agent, o.Image)
		}),
	}
}

func (p dataCommands) environmentCommand() *cobra.Command {
	return &cobra.Command{Use: "environment", Aliases: []string{"environments", "env"},
		Short: "List the environments that the launcher offers",
		Long: `Lists what the launcher offers: Slipway's own environments, those of environments.yaml in
Slipway's directory, and the images on the machines. The file can add environments, replace
those with the same id, and hide those with hidden: true.`,
		Example: `  environments:
    - id: team
      title: Our own
      summary: What we all use
      minimum: {cpu: 2, memory: 4g}
      accelerator: optional
      versions:
        - {title: "2", image: "registry.example.com/team/all:2", size: 3g}`,
		RunE: p.command(func(ctx context.Context, c *caller, _ []string) error {
			file, err := route.EnvironmentFile.Ask(ctx, c)
			if err != nil {
				return err
			}
			if file.Problem != nil {
				p.notice("%s %s", file.Problem.Message, file.Problem.Hint)
			}
			return show(ctx, c, route.Environments, func(w io.Writer, families []hub.Environment) {
				rows := [][]string{{"ENVIRONMENT", "VERSION", " SIZE", "ON", "IMAGE"}}
				for _, f := range families {
					for _, v := range f.Versions {
						on := strings.Join(v.Agents, ", ")
						if on == "" {
							on = "to be pulled"
						}
						title := v.Title
						if v.Custom != nil {
							title += " (customized)"
						}
						rows = append(rows, []string{f.Title, title, size(v.Size), on, v.Image})
					}
				}
				columns(w, rows)
			})
		}),
	}
}

func (p dataCommands) imageTable(w io.Writer, images []hub.Image) {
	if len(images) == 0 {
		fmt.Fprintln(w, "No image is here yet; the first launch of one pulls it.")
		return
	}
	rows := [][]string{{"IMAGE", " SIZE", "ARCH", " CREATED", "AGENT", "ID"}}
	for _, image := range images {
		refs := image.Refs
		if len(refs) == 0 {
			refs = []string{"<none>"}
		}
		id := shortImageID(image.ID)
		for _, ref := range refs {
			rows = append(rows, []string{ref, size(image.Size), image.Arch, p.age(image.CreatedAt),
				image.Agent, id})
		}
	}
	columns(w, rows)
}
