package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
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
	parent := &cobra.Command{Use: "image", Short: "Manage images"}
	list := usesMachine(asks(p.program, &cobra.Command{Use: "ls [--on AGENT]", Aliases: []string{"list"},
		Short: "List images"}, "only images on this agent's machine", route.Images, p.imageTable))
	disk := asks(p.program, &cobra.Command{Use: "df [--on AGENT]", Short: "Show the disk space of images"},
		"agent of the machine (default: this computer)", route.ImageDisk, diskTable)
	parent.AddCommand(list, p.imagePullCommand(), p.imageRemoveCommand(), disk, p.imageCleanCommand(),
		p.imageSendCommand())
	return parent
}

func (p dataCommands) imageSendCommand() *cobra.Command {
	var req api.ImageSending
	cmd := &cobra.Command{Use: "send IMAGE --to AGENT [--from AGENT]",
		Short: "Send an image to another agent without a registry",
		Long: `Send transfers only the layers that are missing there, compressed, through the existing
connection. After an interruption the transfer resumes automatically. Without --from the
image is on this computer; without --to it is sent to this computer.

On a machine where you are not an admin the image is only yours, and its name there begins
with slipway-custom/ and your name. If another image already has the name, remove that image
first or, as an admin, use --replace.`}
	cmd.Flags().StringVar(&req.From, "from", "", "source agent (default: this computer)")
	cmd.Flags().StringVar(&req.To, "to", "", "target agent (default: this computer)")
	cmd.Flags().BoolVar(&req.Replace, "replace", false, "move the name from another image there (admins only)")
	for _, name := range []string{"from", "to"} {
		_ = cmd.RegisterFlagCompletionFunc(name, p.completeAgents) // fails only for a flag that is not there
	}
	return runs(cmd, p.operates(func(ctx context.Context, c *caller, args []string) (api.Operation, error) {
		req.Image = args[0]
		return begin(ctx, c, route.ImageSend.Body(req))
	}, func(w io.Writer, o api.Operation) {
		fmt.Fprintf(w, "%s is on %s.\n", cmp.Or(o.Image, req.Image), o.Agent)
	}))
}

func (p dataCommands) imagePullCommand() *cobra.Command {
	var req api.ImagePull
	cmd := &cobra.Command{Use: "pull IMAGE [--on AGENT]", Short: "Pull an image from a registry",
		Long: `The agent uses the registry logins that docker login saved on its machine if you are an
admin, or if an admin allowed them with "slipway agent limit set". Otherwise it pulls without
a login. To resume an interrupted pull, run the same command again.`}
	p.onFlag(cmd, &req.Agent, "agent of the machine that pulls it (default: this computer)")
	return runs(cmd, p.operates(func(ctx context.Context, c *caller, args []string) (api.Operation, error) {
		req.Image = args[0]
		return begin(ctx, c, route.ImagePull.Body(req))
	}, func(w io.Writer, o api.Operation) { fmt.Fprintf(w, "%s is on %s.\n", req.Image, o.Agent) }))
}

func (p dataCommands) imageRemoveCommand() *cobra.Command {
	var req api.ImageRemoval
	cmd := &cobra.Command{Use: "rm IMAGE… [--on AGENT]", Aliases: []string{"remove"}, Short: "Remove images",
		Long: "Removes all names of an image. Images in use by a session are kept."}
	p.onFlag(cmd, &req.Agent, "agent of the machine (default: this computer)")
	p.yesFlag(cmd)
	return runs(cmd, p.operates(func(ctx context.Context, c *caller, args []string) (api.Operation, error) {
		req.Images = args
		if err := p.confirm(ctx, "Remove "+strings.Join(args, ", ")+"?"); err != nil {
			return api.Operation{}, err
		}
		return begin(ctx, c, route.ImageRemove.Body(req))
	}, func(io.Writer, api.Operation) {}))
}

func diskTable(w io.Writer, disk api.ImageDisk) {
	table(w, "IMAGE, SIZE, ALONE, CONTAINERS,USED BY,ID", disk.Images, func(room session.ImageRoom) []string {
		users := named(room.Image.UsedBy, func(u session.ImageUser) string { return u.Name })
		return []string{imageName(room.Image), size(room.Image.Size), size(room.Alone), strconv.Itoa(room.Containers),
			users, shortImageID(room.Image.ID)}
	})
	fmt.Fprintf(w, "Total: %s. ALONE is the space that removing only this image frees.\n", size(disk.Total))
}

// imageName returns the name of an image in a table.
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
	return id[:min(len(id), 19)] // sha256: and 12 digits, as docker shows them
}

// ageOf reads the age in a flag; 0: not set.
func ageOf(flag, text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	age, err := session.ParseDuration(text)
	if err != nil || age <= 0 {
		return 0, usagef("%s %q is not an age; use a whole number with s, m, h, d or w, such as 30d", flag, text)
	}
	return time.Duration(age), nil
}

// prunable reports whether an image is not in use, and is untagged or older than the limit for its kind; 0: no limit.
func prunable(room session.ImageRoom, now time.Time, unused, customized time.Duration) bool {
	if room.Containers > 0 || len(room.Image.UsedBy) > 0 {
		return false
	}
	limit := unused
	if room.Image.Origin != nil {
		limit = customized
	}
	return len(room.Image.Refs) == 0 || limit > 0 && now.Sub(room.Image.CreatedAt) > limit
}

func (p dataCommands) imageCleanCommand() *cobra.Command {
	var on, unused, custom string
	cmd := &cobra.Command{Use: "prune [--unused AGE] [--customized AGE] [--on AGENT]", Short: "Remove unused images",
		Long: `Without flags, prune removes untagged images only. It never removes images that a session or
another container uses. It first shows what it would remove and how much space that frees.`,
		Example: "  slipway image prune\n  slipway image prune --unused 90d --customized 30d"}
	p.onFlag(cmd, &on, "agent of the machine (default: this computer)")
	p.yesFlag(cmd)
	cmd.Flags().StringVar(&unused, "unused", "", "also unused images of this age, such as 90d")
	cmd.Flags().StringVar(&custom, "customized", "", "also customized images of this age, such as 30d")
	return runs(cmd, p.operates(func(ctx context.Context, c *caller, _ []string) (api.Operation, error) {
		unusedAge, unusedErr := ageOf("--unused", unused)
		customAge, customErr := ageOf("--customized", custom)
		if err := cmp.Or(unusedErr, customErr); err != nil {
			return api.Operation{}, err
		}
		disk, err := route.ImageDisk.With("agent", on).Ask(ctx, c)
		if err != nil {
			return api.Operation{}, err
		}
		req := api.ImageRemoval{Agent: on}
		var alone gpu.Bytes
		for _, room := range disk.Images {
			if prunable(room, p.Now(), unusedAge, customAge) {
				req.Images = append(req.Images, room.Image.ID)
				alone += room.Alone
				fmt.Fprintf(p.Stderr, "  %s  %s\n", shortImageID(room.Image.ID), imageName(room.Image))
			}
		}
		if len(req.Images) == 0 {
			return api.Operation{}, failAs(ExitOK, session.CodeNoImage, "Nothing to remove.", "")
		}
		question := fmt.Sprintf("Remove %s? This frees at least %s.",
			plural(len(req.Images), "image", "images"), size(alone))
		if err := p.confirm(ctx, question); err != nil {
			return api.Operation{}, err
		}
		return begin(ctx, c, route.ImageRemove.Body(req))
	}, func(w io.Writer, o api.Operation) {
		if at := slices.IndexFunc(o.Steps, func(s api.OpStep) bool { return s.Name == "room" }); at >= 0 {
			fmt.Fprintln(w, o.Steps[at].Detail+".")
		}
	}))
}

func (p dataCommands) commitCommand() *cobra.Command {
	return &cobra.Command{Use: "commit SESSION NAME", Short: "Create an image from a running interactive session",
		Long: `Commit saves what the session installed and changed as an image that the launcher offers
next to the original. Folders, mounts and /home/work are not included. The session is paused
while it is copied. NAME has 4 to 32 letters, digits, _ and -.`,
		RunE: p.operates(func(ctx context.Context, c *caller, args []string) (api.Operation, error) {
			return begin(ctx, c, route.Commit.At(args[0]).Body(api.Commit{Name: args[1]}))
		}, func(w io.Writer, o api.Operation) {
			fmt.Fprintf(w, "%s is on %s. Launch it with: slipway run --image %s\n", o.Image, o.Agent, o.Image)
		})}
}

func (p dataCommands) environmentCommand() *cobra.Command {
	return &cobra.Command{Use: "environment", Aliases: []string{"environments", "env"},
		Short: "List the environments that the launcher offers",
		Long: `Lists what the launcher offers: Slipway's own environments, those of environments.yaml in
Slipway's directory, and the images on the machines. The file can add environments, replace
those with the same id, and hide those with hidden: true. The first with Jupyter is the first
choice: say jupyter: lab or jupyter: notebook where a version has it. Images that the file does
not name say it with the label slipway.jupyter.`,
		Example: `  environments:
    - id: team
      title: Our own
      summary: What we all use
      minimum: {cpu: 2, memory: 4g}
      accelerator: optional
      versions:
        - {title: "2", image: "registry.example.com/team/all:2", size: 3g, jupyter: lab}`,
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
						if v.Custom != nil {
							v.Title += " (customized)"
						}
						on := cmp.Or(strings.Join(v.Agents, ", "), "to be pulled")
						rows = append(rows, []string{f.Title, v.Title, size(v.Size), on, v.Image})
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
		for _, ref := range refs {
			rows = append(rows, []string{ref, size(image.Size), image.Arch, p.age(image.CreatedAt), image.Agent,
				shortImageID(image.ID)})
		}
	}
	columns(w, rows)
}

func (p dataCommands) folderCommand() *cobra.Command {
	parent := &cobra.Command{Use: "folder", Short: "Manage data folders, which outlive sessions",
		Long: `A folder is on the machine of an agent and outlives sessions. Mount it by its name:
slipway run -v NAME[/PATH][:ALIAS][:ro]. A folder whose name starts with a dot is mounted in
every session, in the home directory. The folder .cache, which Slipway makes, keeps what pip, uv,
conda and Hugging Face download. slipway cp copies to and from folder:NAME/PATH.`}
	create, link := p.folderMakeCommands()
	parent.AddCommand(p.folderListCommand(), create, link,
		changes(p.program, &cobra.Command{Use: "rename FOLDER NAME", Short: "Rename a folder"}, route.FolderUpdate,
			func(name string) session.FolderChange { return session.FolderChange{Name: &name} }, folderName),
		changes(p.program, &cobra.Command{Use: "permission FOLDER rw|ro", Short: "Make a folder writable or read-only"},
			route.FolderUpdate, func(permission string) session.FolderChange {
				return session.FolderChange{Permission: (*session.FolderPermission)(&permission)}
			}, folderName),
		folderStateCommand(p, "keep", "Keep the home of a session for good", "kept for good",
			route.FolderUpdate.Body(session.FolderChange{Keep: true})),
		p.folderSFTPCommand(), p.folderSyncCommand(),
		folderStateCommand(p, "rm", "Move a folder to the trash", "trashed", route.FolderTrash),
		folderStateCommand(p, "restore", "Restore a folder from the trash", "restored", route.FolderRestore),
		p.folderEmptyCommand(), p.folderPurgeCommand())
	return parent
}

func (p dataCommands) folderListCommand() *cobra.Command {
	var agent string
	var trash bool
	cmd := &cobra.Command{Use: "ls", Aliases: []string{"list"}, Short: "List folders"}
	p.onFlag(cmd, &agent, "only those of this agent")
	usesMachine(cmd)
	cmd.Flags().BoolVar(&trash, "trash", false, "list the trash instead")
	return runs(cmd, p.command(func(ctx context.Context, c *caller, _ []string) error {
		folders, err := route.Folders.With("agent", agent).Ask(ctx, c)
		if err != nil {
			return err
		}
		folders = slices.DeleteFunc(folders, func(f api.Folder) bool {
			return trash == (f.State == session.FolderReady)
		})
		return p.print(folders, func(w io.Writer) { p.folderTable(w, folders) })
	}))
}

func (p dataCommands) folderTable(w io.Writer, folders []api.Folder) {
	table(w, "NAME,ID,PERMISSION, SIZE, FILES,OWNER,AGENT,STATE,USED BY", folders, func(f api.Folder) []string {
		bytes, files := "-", "-"
		if f.Usage != nil {
			bytes, files = size(f.Usage.Bytes), fmt.Sprint(f.Usage.Files)
		}
		state := string(f.State)
		switch home := f.Home; {
		case f.Missing:
			state = "missing"
		case home != nil && home.Until != nil && f.State == session.FolderReady:
			state = "kept home, deleted on " + home.Until.In(p.Now().Location()).Format(time.DateOnly)
		case home != nil && f.State == session.FolderReady:
			state = "kept home"
		}
		return []string{f.Name, string(f.ID), string(f.Permission), bytes, files, f.Owner, f.Agent, state,
			named(f.UsedBy, func(u session.FolderUser) string { return u.Name })}
	})
}

// folderMakeCommands returns the commands create and link. The second one takes a directory.
func (p dataCommands) folderMakeCommands() (create, link *cobra.Command) {
	var req api.FolderRequest
	var readOnly bool
	create = &cobra.Command{Use: "create NAME", Short: "Create a folder"}
	create.Flags().StringVar((*string)(&req.Mode), "mode", "", "general or model (default general)")
	link = &cobra.Command{Use: "link NAME DIRECTORY", Short: "Use an existing directory as a folder",
		Long: `Link gives an existing directory of a machine a name for mounting. Its files stay where
they are, even if you delete the folder permanently.`,
	}
	for _, cmd := range []*cobra.Command{create, link} {
		p.onFlag(cmd, &req.Agent, "agent of the machine (default: this computer)")
		cmd.Flags().BoolVar(&readOnly, "ro", false, "mount read-only")
		cmd.RunE = p.command(func(ctx context.Context, c *caller, args []string) (err error) {
			if req.Name = args[0]; len(args) > 1 {
				req.Path = args[1]
			}
			if req.Path != "" && req.Agent == "" { // on this computer
				if req.Path, err = filepath.Abs(req.Path); err != nil {
					return err
				}
			}
			if readOnly {
				req.Permission = "ro"
			}
			return show(ctx, c, route.FolderCreate.Body(req), folderName)
		})
	}
	return create, link
}

func folderName(w io.Writer, f api.Folder) { fmt.Fprintln(w, f.Name) }

// folderStateCommand returns a command that changes the state of a folder.
func folderStateCommand[In any](p dataCommands, name, short, done string,
	at route.Route[In, api.Folder]) *cobra.Command {
	return &cobra.Command{Use: name + " FOLDER", Short: short,
		RunE: p.command(func(ctx context.Context, c *caller, args []string) error {
			f, err := c.anyFolder(ctx, args[0])
			if err != nil {
				return err
			}
			return show(ctx, c, at.At(string(f.ID)),
				func(w io.Writer, f api.Folder) { fmt.Fprintf(w, "%s is %s.\n", f.Name, done) })
		})}
}

// folderSyncCommand makes two folders equal.
func (p dataCommands) folderSyncCommand() *cobra.Command {
	var req api.FileSyncing
	cmd := &cobra.Command{Use: "sync FOLDER OTHER", Short: "Sync two folders both ways",
		Long: `Sync copies what changed in one of two folders since their last sync to the other, and deletes
there what was deleted, after asking. It asks what to keep of a file that changed in both. With
both, one of them becomes NAME.conflict-MACHINE.EXT. The first sync of two folders deletes nothing.
What .gitignore files ignore is skipped, and so is .git: each folder keeps its own.

Write a folder as NAME, NAME@MACHINE or NAME@MACHINE/DIRECTORY. To resume an interrupted sync, run
the same command again.`,
		Example: "  slipway folder sync paper@laptop paper@lab\n" +
			"  slipway folder sync --keep this paper@laptop paper@lab"}
	cmd.Flags().BoolVar(&req.Ignored, "all", false, "also sync what .gitignore files ignore")
	cmd.Flags().StringVar((*string)(&req.Keep), "keep", "", "this (FOLDER's), that (OTHER's) or both, without asking")
	cmd.Flags().BoolVarP(&req.Delete, "yes", "y", false, "delete without asking")
	return runs(cmd, p.operates(func(ctx context.Context, c *caller, args []string) (api.Operation, error) {
		req.This, req.That = folderEnd(args[0]), folderEnd(args[1])
		return begin(ctx, c, route.FileSync.Body(req))
	}, func(io.Writer, api.Operation) {}))
}

// folderEnd reads NAME[@MACHINE][/DIRECTORY].
func folderEnd(text string) api.FileEnd {
	name, dir, _ := strings.Cut(strings.TrimPrefix(text, "folder:"), "/")
	folder, agent, _ := strings.Cut(name, "@")
	return api.FileEnd{Folder: folder, Agent: agent, Path: dir}
}

// folderSFTPCommand opens a way for large transfers with other programs.
func (p dataCommands) folderSFTPCommand() *cobra.Command {
	var agent string
	cmd := &cobra.Command{Use: "sftp FOLDER", Short: "Serve a folder by sftp",
		Long: `Starts a system session, which has this folder and nothing else, or finds the one that serves it,
and prints the commands that reach it. It ends by itself after 15 minutes without a transfer.`}
	p.onFlag(cmd, &agent, "agent of the machine with the folder")
	return runs(cmd, p.command(func(ctx context.Context, c *caller, args []string) error {
		s, err := route.FolderSFTP.At(args[0]).With("agent", agent).Ask(ctx, c)
		if err == nil {
			s, err = runCommands(p).waitRunning(ctx, c, s, 0)
		}
		if err != nil {
			return err
		}
		access, err := route.SSHAccess.At(string(s.ID)).Ask(ctx, c)
		if err != nil {
			return err
		}
		return p.print(s, func(w io.Writer) {
			fmt.Fprintf(w, "%s serves %s on %s.\n", s.Name, args[0], s.Agent)
			for _, command := range access.Commands {
				fmt.Fprintf(w, "  %s\n", command.Line)
			}
		})
	}))
}

func (p dataCommands) folderEmptyCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "empty FOLDER", Short: "Delete everything in a folder",
		Long: `Empty permanently deletes everything in a folder, such as .cache, and keeps the folder.
Sessions can use it meanwhile.`}
	p.yesFlag(cmd)
	return runs(cmd, p.command(func(ctx context.Context, c *caller, args []string) error {
		f, err := route.Folder.At(args[0]).Ask(ctx, c)
		if err != nil {
			return err
		}
		name := session.Printable(f.Name)
		if f.Path != "" {
			return fail(session.CodeFolderConflict, fmt.Sprintf("The folder %s is the directory %s.", name,
				session.Printable(f.Path)), "Delete its files there.")
		}
		if err := p.confirm(ctx, "Permanently delete everything in the folder "+name+"?"); err != nil {
			return err
		}
		files, id := route.FolderFiles(), string(f.ID)
		for more := true; more; {
			listing, err := askAgain(ctx, c, files.List.At(id).With("path", ""))
			if err != nil {
				return err
			}
			for _, entry := range listing.Entries {
				gone := files.Remove.At(id).With("path", entryName(entry)).With("recursive", "1")
				if _, err := gone.Ask(ctx, c); err != nil && !isNotFound(err) {
					return err
				}
			}
			more = listing.More
		}
		_, err = fmt.Fprintf(p.Stdout, "%s is empty.\n", name)
		return err
	}))
}

func (p dataCommands) folderPurgeCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "purge FOLDER", Short: "Permanently delete a folder in the trash",
		Long: `Purge permanently deletes the folder and everything in it, and shows its progress. Press
Ctrl-C to cancel: the remaining files stay in the trash, and you can restore or purge them.`}
	p.yesFlag(cmd)
	return runs(cmd, p.operates(func(ctx context.Context, c *caller, args []string) (api.Operation, error) {
		f, err := c.anyFolder(ctx, args[0])
		if err != nil {
			return api.Operation{}, err
		}
		if f.State != "deleting" {
			name := session.Printable(f.Name)
			question := "Permanently delete the folder " + name + " and everything in it?"
			if f.Path != "" {
				question = fmt.Sprintf("Remove the folder %s? The files in %s stay.", name, session.Printable(f.Path))
			}
			if err := p.confirm(ctx, question); err != nil {
				return api.Operation{}, err
			}
		}
		return begin(ctx, c, route.FolderDelete.At(string(f.ID)))
	}, func(w io.Writer, o api.Operation) { fmt.Fprintf(w, "%s is deleted.\n", o.Subject) }))
}

// anyFolder returns the folder with an id or a name, also one in the trash if its name is unique there.
func (c *caller) anyFolder(ctx context.Context, ref string) (api.Folder, error) {
	f, err := route.Folder.At(ref).Ask(ctx, c)
	if err == nil || !isNotFound(err) {
		return f, err
	}
	all, listErr := route.Folders.Ask(ctx, c)
	if listErr != nil {
		return f, listErr
	}
	found := slices.DeleteFunc(all, func(one api.Folder) bool { return one.Name != ref })
	switch len(found) {
	case 0:
		return f, err
	case 1:
		return found[0], nil
	}
	return f, failAs(ExitUsage, session.CodeFolderConflict, fmt.Sprintf("There are %d folders named %s in the trash.",
		len(found), ref), "Use the id: slipway folder ls --trash shows it.")
}
