package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/session"
)

// dataCommands are the commands for images, folders and files.
type dataCommands struct{ *program }

func (p dataCommands) folderCommand() *cobra.Command {
	parent := &cobra.Command{
		Use:   "folder",
		Short: "Manage data folders, which outlive sessions",
		Long: `A folder is on the machine of an agent and outlives sessions. Mount it by its name:
slipway run -v NAME[/PATH][:ALIAS][:ro]. A folder whose name starts with a dot is mounted in
every session, in the home directory. slipway cp copies to and from folder:NAME/PATH.`,
	}
	create, link := p.folderMakeCommands()
	parent.AddCommand(p.folderListCommand(), create, link,
		changes(p.program, &cobra.Command{Use: "rename FOLDER NAME", Short: "Rename a folder"}, route.FolderUpdate,
			func(name string) session.FolderChange { return session.FolderChange{Name: &name} }, folderName),
		changes(p.program, &cobra.Command{Use: "permission FOLDER rw|ro", Short: "Make a folder writable or read-only"},
			route.FolderUpdate, func(permission string) session.FolderChange {
				return session.FolderChange{Permission: (*session.FolderPermission)(&permission)}
			}, folderName),
		p.folderStateCommand("rm", "Put a folder into the trash", "trashed", route.FolderTrash),
		p.folderStateCommand("restore", "Take a folder out of the trash", "restored", route.FolderRestore),
		p.folderPurgeCommand())
	return parent
}

func (p dataCommands) folderListCommand() *cobra.Command {
	var agent string
	var trash bool
	cmd := &cobra.Command{Use: "ls", Aliases: []string{"list"}, Short: "List folders"}
	p.onFlag(cmd, &agent, "only those of this agent")
	cmd.Flags().BoolVar(&trash, "trash", false, "list the trash instead")
	cmd.RunE = p.command(func(ctx context.Context, c *caller, _ []string) error {
		folders, err := route.Folders.With("agent", agent).Ask(ctx, c)
		if err != nil {
			return err
		}
		folders = slices.DeleteFunc(folders, func(f api.Folder) bool {
			return trash == (f.State == session.FolderReady)
		})
		return p.print(folders, func(w io.Writer) { folderTable(w, folders) })
	})
	return cmd
}

func folderTable(w io.Writer, folders []api.Folder) {
	table(w, "NAME,ID,PERMISSION, SIZE, FILES,OWNER,AGENT,STATE,USED BY", folders, func(f api.Folder) []string {
		bytes, files := "-", "-"
		if f.Usage != nil {
			bytes, files = size(f.Usage.Bytes), fmt.Sprint(f.Usage.Files)
		}
		state := string(f.State)
		if f.Missing {
			state = "missing"
		}
		return []string{f.Name, string(f.ID), string(f.Permission), bytes, files, f.Owner, f.Agent, state,
			named(f.UsedBy, func(u session.FolderUser) string { return u.Name })}
	})
}

// folderMakeCommands are create and link, which differ in whether there is a
// directory yet.
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
		p.onFlag(cmd, &req.Agent, "agent on whose machine it is (default this computer's)")
		cmd.Flags().BoolVar(&readOnly, "ro", false, "mount read-only")
		cmd.RunE = p.command(func(ctx context.Context, c *caller, args []string) (err error) {
			if req.Name = args[0]; len(args) > 1 {
				req.Path = args[1]
			}
			if req.Path != "" && req.Agent == "" { // another agent's is named in full
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

// folderStateCommand moves folders into the trash or out of it.
func (p dataCommands) folderStateCommand(name, short, done string,
	at route.Route[route.None, api.Folder]) *cobra.Command {
	return &cobra.Command{Use: name + " FOLDER", Short: short,
		RunE: p.command(func(ctx context.Context, c *caller, args []string) error {
			f, err := c.anyFolder(ctx, args[0])
			if err != nil {
				return err
			}
			return show(ctx, c, at.At(string(f.ID)),
				func(w io.Writer, f api.Folder) { fmt.Fprintf(w, "%s is %s.\n", f.Name, done) })
		}),
	}
}

func (p dataCommands) folderPurgeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "purge FOLDER",
		Short: "Permanently delete a folder in the trash",
		Long: `Purge permanently deletes the folder and everything in it, and shows its progress. Press
Ctrl-C to cancel: the remaining files stay in the trash, and you can restore or purge them.`,
	}
	p.yesFlag(cmd)
	cmd.RunE = p.operates(func(ctx context.Context, c *caller, args []string) (api.Operation, error) {
		f, err := c.anyFolder(ctx, args[0])
		if err != nil {
			return api.Operation{}, err
		}
		if f.State != "deleting" {
			question := fmt.Sprintf("Permanently delete the folder %s and everything in it?", session.Printable(f.Name))
			if f.Path != "" {
				question = fmt.Sprintf("Remove the folder %s? The files in %s stay.",
					session.Printable(f.Name), session.Printable(f.Path))
			}
			if err := p.confirm(ctx, question); err != nil {
				return api.Operation{}, err
			}
		}
		return begin(ctx, c, route.FolderDelete.At(string(f.ID)))
	}, func(w io.Writer, o api.Operation) { fmt.Fprintf(w, "%s is deleted.\n", o.Subject) })
	return cmd
}

// anyFolder returns the folder of an id or a name, also one in the trash where
// it is the only one of that name.
func (c *caller) anyFolder(ctx context.Context, ref string) (api.Folder, error) {
	f, err := route.Folder.At(ref).Ask(ctx, c)
	if err == nil || !isNotFound(err) {
		return f, err
	}
	all, listErr := route.Folders.Ask(ctx, c)
	if listErr != nil {
		return f, listErr
	}
	var found []api.Folder
	for _, one := range all {
		if one.Name == ref {
			found = append(found, one)
		}
	}
	switch len(found) {
	case 0:
		return f, err
	case 1:
		return found[0], nil
	}
	return f, failAs(ExitUsage, session.CodeFolderConflict, fmt.Sprintf("There are %d folders named %s in the trash.",
		len(found), ref), "Use the id: slipway folder ls --trash shows it.")
}

// completeFolders offers the names of folders.
func (p *program) completeFolders(cmd *cobra.Command, args []string, word string) ([]string,
	cobra.ShellCompDirective) {
	return offersEach(p, route.Folders,
		func(f api.Folder) string { return f.Name + "\t" + string(f.State) })(cmd, args, word)
}
