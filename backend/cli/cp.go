package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/session"
)

func (p dataCommands) cpCommand() *cobra.Command {
	var recursive, force bool
	cmd := &cobra.Command{Use: "cp [-r] SOURCE DESTINATION", Short: "Copy files to, from or between machines",
		Long: `Cp copies between this computer, running sessions and data folders. Write a session as
SESSION:PATH, where relative paths start at /home/work, and a folder as folder:NAME/PATH. If
a session is named folder, use its ID. If several machines have a folder of that name, add
the machine: folder:NAME@MACHINE/PATH. To resume an interrupted copy, run the same command
again. Cp compares all checksums. To or from this computer, -r skips links.

Between two folders or sessions, also of different machines, links, permissions and times are
kept, and files that are there with the same size and time are not copied again. A folder that
does not exist is created if you name its machine. Until all of it is copied, its name ends in
.part.`,
		Example: "  slipway cp data.tar train-a:\n  slipway cp -r train-a:results .\n  slipway cp -r ./images " +
			"folder:data/\n  slipway cp -r folder:data@workstation folder:data@lab"}
	cmd.Flags().BoolVarP(&recursive, "recursive", "r", false, "copy directories recursively")
	cmd.Flags().BoolVarP(&force, "force", "f", false, "overwrite existing files")
	near := p.command(func(ctx context.Context, c *caller, args []string) error {
		source, target := farSide(args[0]), farSide(args[1])
		if source == nil && target == nil {
			return usagef("one side must be SESSION:PATH or folder:NAME/PATH")
		}
		files, place, err := filesOf(ctx, c, cmp.Or(source, target))
		if err != nil {
			return err
		}
		job := &copying{program: p.program, caller: c, files: files, place: place, recursive: recursive, force: force,
			line: p.newStatusLine()}
		if target != nil {
			err = job.up(ctx, args[0], target.path)
		} else {
			err = job.down(ctx, source.path, args[1])
		}
		job.line.clear()
		if err != nil && ctx.Err() != nil {
			p.notice("Interrupted. Run the same command to resume.")
			return ctx.Err()
		}
		if err != nil {
			return err
		}
		return p.print(job.done, func(w io.Writer) {
			fmt.Fprintf(w, "%s, %s\n", plural(job.done.Files, "file", "files"), size(job.done.Bytes))
		})
	})
	across := p.operates(func(ctx context.Context, c *caller, args []string) (api.Operation, error) {
		req, err := betweenFar(ctx, c, farSide(args[0]), farSide(args[1]), recursive)
		if err != nil {
			return api.Operation{}, err
		}
		req.Replace = force
		return begin(ctx, c, route.FileCopy.Body(req))
	}, func(w io.Writer, o api.Operation) { fmt.Fprintln(w, session.Printable(o.Steps[len(o.Steps)-1].Detail)) })
	return runs(cmd, func(cmd *cobra.Command, args []string) error {
		if farSide(args[0]) == nil || farSide(args[1]) == nil {
			return near(cmd, args)
		}
		err := across(cmd, args)
		if err == nil {
			return nil
		}
		if problem, _ := describe(err); problem.Code == session.CodeOperationCancelled {
			p.notice("Run the same command to resume.")
		}
		return err
	})
}

// betweenFar returns the request to copy from one session or folder to another. A directory that exists receives the
// copy, as cp does; all of a folder is copied into the other folder itself.
func betweenFar(ctx context.Context, c *caller, source, target *far, recursive bool) (req api.FileCopying, err error) {
	from, info, err := endOf(ctx, c, source)
	if err != nil {
		return req, err
	}
	if info.Kind == "directory" && !recursive {
		return req, usagef("%s is a directory: use -r to copy it", source.text)
	}
	to, there, err := endOf(ctx, c, target)
	if err != nil && (!isNotFound(err) || to.Session+to.Folder == "") {
		return req, err
	}
	base := path.Base(path.Clean("/" + from.Path))
	if base != "/" && (to.Path == "" || strings.HasSuffix(to.Path, "/") || there.Kind == "directory") {
		to.Path = path.Join(to.Path, base)
	}
	return api.FileCopying{From: from, To: to}, nil
}

// endOf returns what one side of a copy names, and what it is. If that is not found, it returns the name.
func endOf(ctx context.Context, c *caller, side *far) (end api.FileEnd, info api.FileInfo, err error) {
	files, place, err := filesOf(ctx, c, side)
	end = api.FileEnd{Path: side.path}
	switch {
	case side.session != "folder":
		end.Session = place
	case err != nil:
		end.Folder, end.Agent = side.folder, side.agent
	default:
		end.Folder = place
	}
	if err == nil {
		info, err = askAgain(ctx, c, files.Stat.At(place).With("path", cmp.Or(side.path, ".")))
	}
	return end, info, err
}

// far is a path in a session, or in a folder if session is "folder".
type far struct {
	text, session, path string
	folder, agent       string // once they are removed from the path
}

// farSide reads SESSION:PATH. It returns nil for a path of this computer, which may have a drive, or a colon after a
// slash.
func farSide(text string) *far {
	session, path, found := strings.Cut(text, ":")
	if !found || session == "" || strings.ContainsAny(session, `/\`) || runtime.GOOS == "windows" && len(session) == 1 {
		return nil
	}
	return &far{text: text, session: session, path: path}
}

// filesOf returns the routes to the files of a session or folder, and its id. It removes the name of a folder from the
// path.
func filesOf(ctx context.Context, c *caller, side *far) (files route.Files, place string, err error) {
	if side.session != "folder" {
		s, err := c.find(ctx, side.session)
		return route.SessionFiles(), string(s.ID), err
	}
	name, rest, _ := strings.Cut(strings.TrimPrefix(side.path, "/"), "/")
	side.path = rest
	if side.folder, side.agent, _ = strings.Cut(name, "@"); side.folder == "" {
		return files, "", usagef("missing folder name: use, for example, folder:data/images")
	}
	f, err := route.Folder.At(side.folder).With("agent", side.agent).Ask(ctx, c)
	return route.FolderFiles(), string(f.ID), err
}

// copying is one run of cp.
type copying struct {
	*program
	caller           *caller
	files            route.Files
	place            string // id of the session or folder
	recursive, force bool
	update           bool // files that are there with the same size and time stay as they are
	line             statusLine
	drawn            time.Time // when the line was written last
	done             copied
}

// copied counts what was copied.
type copied struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

// fileAt returns a route for a file of the place.
func fileAt[In, Out any](j *copying, at route.Route[In, Out], path string) route.Route[In, Out] {
	return at.At(j.place).With("path", path)
}

func (j *copying) stat(ctx context.Context, path string) (api.FileInfo, error) {
	return askAgain(ctx, j.caller, fileAt(j, j.files.Stat, path))
}

func isNotFound(err error) bool {
	problem, _ := describe(err)
	return problem.Code.Detail() == session.DetailNotFound
}

// up copies to the session.
func (j *copying) up(ctx context.Context, source, target string) error {
	info, err := os.Stat(source)
	if err != nil {
		return noLocal(source, err)
	}
	there, err := j.stat(ctx, target)
	exists := err == nil
	if err != nil && !isNotFound(err) {
		return err
	}
	base := filepath.Base(filepath.Clean(source))
	inside := target == "" || strings.HasSuffix(target, "/") || exists && there.Kind == "directory"
	if inside && base != "." && base != ".." {
		target = path.Join(cmp.Or(target, "."), base)
	}
	if !info.IsDir() {
		return j.upload(ctx, source, cmp.Or(target, "."))
	}
	if !j.recursive {
		return usagef("%s is a directory: use -r to copy it", source)
	}
	return j.uploadTree(ctx, source, cmp.Or(target, "."))
}

func noLocal(name string, err error) error {
	return fail(session.CodeCommandFailed, sentence(fmt.Sprintf("%s: %v", name, err)),
		"Check the path and its permissions.")
}

func (j *copying) uploadTree(ctx context.Context, source, target string) error {
	return filepath.WalkDir(source, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return noLocal(name, err)
		}
		rel, err := filepath.Rel(source, name)
		if err != nil {
			return err
		}
		to := path.Join(target, filepath.ToSlash(rel))
		switch {
		case entry.IsDir():
			_, err := askAgain(ctx, j.caller, fileAt(j, j.files.MakeDirectory, to).With("parents", "1"))
			return err
		case entry.Type().IsRegular():
			return j.upload(ctx, name, to)
		}
		j.leaveOut(name)
		return nil
	})
}

func (j *copying) leaveOut(name string) {
	j.line.clear()
	j.notice("Skipped %s: it is neither a file nor a directory.", session.Printable(name))
}

// down copies from the session.
func (j *copying) down(ctx context.Context, source, target string) error {
	info, err := j.stat(ctx, cmp.Or(source, "."))
	if err != nil {
		return err
	}
	base := path.Base(path.Clean("/" + source))
	local, err := os.Stat(target)
	inside := strings.HasSuffix(target, "/") || err == nil && local.IsDir()
	dir, name := filepath.Dir(filepath.Clean(target)), filepath.Base(filepath.Clean(target))
	if inside && base != "/" {
		dir, name = target, base
	}
	if info.Kind == "directory" && !j.recursive {
		return usagef("%s is a directory: use -r to copy it", source)
	}
	if inside && base == "/" { // all of the home, into a directory
		dir, name = target, "."
	}
	if !filepath.IsLocal(name) {
		return usagef("invalid file name %q: add a name to the destination", name)
	}
	// The names of files in a session are not trusted: nothing is written outside of dir.
	root, err := os.OpenRoot(dir)
	if err != nil {
		return noLocal(dir, err)
	}
	defer root.Close()
	if info.Kind == "directory" {
		return j.downloadTree(ctx, root, cmp.Or(source, "."), name)
	}
	return j.download(ctx, root, cmp.Or(source, "."), name, info)
}

// entryName returns the name of an entry of a directory, which may be no text.
func entryName(entry api.FileInfo) string {
	if raw, err := url.PathUnescape(entry.Encoded); err == nil && entry.Encoded != "" {
		return raw
	}
	return entry.Name
}

// deepest limits how deep a copy follows directories: an untrusted machine could report endless ones.
const deepest = 250

func (j *copying) downloadTree(ctx context.Context, root *os.Root, source, target string) error {
	if strings.Count(target, string(filepath.Separator)) > deepest {
		return fail(session.CodeCommandFailed, "The directories are nested too deeply.", "Copy parts of it.")
	}
	if err := root.MkdirAll(target, 0o755); err != nil {
		return noLocal(target, err)
	}
	for after, more := "", true; more; {
		listing, err := askAgain(ctx, j.caller, fileAt(j, j.files.List, source).With("after", after))
		if err != nil {
			return err
		}
		for _, entry := range listing.Entries {
			name := entryName(entry)
			if err := j.downloadEntry(ctx, root, path.Join(source, name), filepath.Join(target, name), name,
				entry); err != nil {
				return err
			}
			after = name
		}
		more = listing.More && len(listing.Entries) > 0
	}
	return nil
}

func (j *copying) downloadEntry(ctx context.Context, root *os.Root, from, to, name string, entry api.FileInfo) error {
	switch {
	case name == "." || name == ".." || strings.ContainsAny(name, "/\x00") || !filepath.IsLocal(name),
		entry.Link, entry.Kind == "other":
		j.leaveOut(from)
		return nil
	case entry.Kind == "directory":
		return j.downloadTree(ctx, root, from, to)
	}
	return j.download(ctx, root, from, to, entry)
}
