package server

import (
	"archive/zip"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"

	"slipway/backend/hub"
	"slipway/backend/session"
)

// mostZipped is how many paths one archive is asked for.
const mostZipped = 1000

// zipFiles sends files and directories as one archive, which is made while it
// is sent. What is no file, or a link, is left out. Where something fails on the
// way the connection is broken, so that nobody takes a part for the whole.
func (s *Server) zipFiles(w http.ResponseWriter, r *http.Request) error {
	files, _, err := s.filesIn(r)
	if err != nil {
		return err
	}
	paths := r.URL.Query()["path"]
	if len(paths) == 0 || len(paths) > mostZipped {
		return badQuery("path", "An archive holds 1 to "+strconv.Itoa(mostZipped)+" paths.", "Name a directory that holds them.")
	}
	var roots []zipped
	for _, p := range paths {
		info, err := files.Agent.StatFile(r.Context(), files.Place, session.FilePath(p))
		if err != nil {
			return err
		}
		roots = append(roots, zipped{path: session.FilePath(p), name: nameIn(info), info: info})
	}
	name := cmp.Or(r.URL.Query().Get("name"), roots[0].name, "files") + ".zip"
	header := w.Header()
	header.Set("Content-Type", "application/zip")
	header.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(name)}))
	header.Set("Cache-Control", "no-store")
	job := &zipping{ctx: r.Context(), files: files, to: zip.NewWriter(w), taken: map[string]bool{}}
	for _, root := range roots {
		if err = job.add(root); err != nil {
			break
		}
	}
	if err = errors.Join(err, job.finish(err)); err != nil {
		s.log.Info("an archive was broken off", "error", err)
		panic(http.ErrAbortHandler)
	}
	return nil
}

// nameIn is what a file is called in an archive; empty for the root of a place,
// whose content stands at the archive's own root.
func nameIn(info session.FileInfo) string {
	if name := string(info.Name); name != "/" && name != "." {
		return name
	}
	return ""
}

// zipped is one thing in an archive.
type zipped struct {
	path session.FilePath
	name string // in the archive, with slashes
	info session.FileInfo
}

// zipping makes one archive.
type zipping struct {
	ctx   context.Context //nolint:containedctx // of the one request
	files *hub.Files
	to    *zip.Writer
	taken map[string]bool // names at the archive's root
}

// finish writes the directory of a whole archive.
func (z *zipping) finish(failed error) error {
	if failed != nil {
		return nil
	}
	return z.to.Close()
}

func (z *zipping) add(one zipped) error {
	if one.info.Link || one.info.Kind == session.KindOther {
		return nil
	}
	one.name = z.free(one.name)
	if one.info.Kind == session.KindDirectory {
		return z.addDirectory(one)
	}
	return z.addFile(one)
}

// free is a name that nothing in the archive has yet; two paths may end alike.
func (z *zipping) free(name string) string {
	free := name
	for n := 2; z.taken[free]; n++ {
		free = fmt.Sprintf("%s (%d)", name, n)
	}
	z.taken[free] = true
	return free
}

func (z *zipping) addDirectory(dir zipped) error {
	if dir.name != "" {
		header := &zip.FileHeader{Name: dir.name + "/", Modified: dir.info.Modified}
		header.SetMode(fs.ModeDir | 0o755)
		if _, err := z.to.CreateHeader(header); err != nil {
			return err
		}
	}
	for after, more := session.FilePath(""), true; more; {
		listing, err := z.files.Agent.ListFiles(z.ctx, z.files.Place, session.ListRequest{Path: dir.path, After: after})
		if session.CodeOf(err).Detail() == session.DetailNotFound {
			return nil // it has gone meanwhile
		}
		if err != nil {
			return err
		}
		for _, entry := range listing.Entries {
			inner := zipped{path: session.FilePath(path.Join(string(dir.path), string(entry.Name))), name: path.Join(dir.name, string(entry.Name)), info: entry}
			if err := z.add(inner); err != nil {
				return err
			}
			after = entry.Name
		}
		more = listing.More && len(listing.Entries) > 0
	}
	return nil
}

func (z *zipping) addFile(file zipped) error {
	from, err := z.files.Read(z.ctx, session.ReadRequest{Path: file.path})
	if session.CodeOf(err).Detail() == session.DetailNotFound {
		return nil // it has gone meanwhile
	}
	if err != nil {
		return err
	}
	defer from.Close()
	header := &zip.FileHeader{Name: file.name, Modified: file.info.Modified, Method: zip.Deflate}
	header.SetMode(fs.FileMode(file.info.Mode).Perm())
	to, err := z.to.CreateHeader(header)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return err
}
