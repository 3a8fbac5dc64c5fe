package server

import (
	"archive/zip"
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"slipway/backend/hub"
	"slipway/backend/session"
)

const (
	mostZipped = 1000      // paths in one request
	mostNames  = 256 << 20 // bytes of all names of an archive, which are kept in memory
	mostName   = 1 << 10   // bytes of one name, more than any file system has
	mostDepth  = 1000      // nested directories
)

// zipFiles streams files and directories as one archive. It skips links and special files. If something fails on the
// way, it aborts the connection, so that a part does not look like the whole.
func (s fileRoutes) zipFiles(w http.ResponseWriter, r *http.Request) error {
	files, _, err := s.filesIn(r)
	if err != nil {
		return err
	}
	paths := r.URL.Query()["path"]
	if len(paths) == 0 || len(paths) > mostZipped {
		return badQuery("path", "An archive holds 1 to "+strconv.Itoa(mostZipped)+" paths.",
			"Name a directory that holds them.")
	}
	var roots []zipped
	for _, p := range paths {
		info, err := fileAt(r, files, session.FilePath(p))
		if err != nil {
			return err
		}
		root, _ := archiveName(info.Name) // empty for the root of a place
		roots = append(roots, zipped{path: session.FilePath(p), name: root, info: info})
	}
	name := cmp.Or(r.URL.Query().Get("name"), roots[0].name, "files") + ".zip"
	header := w.Header()
	header.Set("Content-Type", "application/zip")
	header.Set("Content-Disposition",
		mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(name)}))
	header.Set("Cache-Control", "no-store")
	began := false
	err = s.hub.Accompany(r.Context(), hub.FileArchive, path.Base(name),
		func(ctx context.Context, work *hub.Work) error {
			began = true
			// Do not wait for a browser that does not read.
			defer context.AfterFunc(ctx, func() { _ = http.NewResponseController(w).SetWriteDeadline(time.Now()) })()
			job := &zipping{ctx: ctx, files: files, to: zip.NewWriter(w), taken: map[string]bool{}, work: work}
			return job.run(roots)
		})
	if err != nil && began {
		s.log.Info("an archive was interrupted", "error", err)
		panic(http.ErrAbortHandler)
	}
	return err
}

// archiveName returns the name of a file in an archive, or false if it is not a file name. Names come from other
// machines, and the archive may be unpacked on any system: a backslash, a drive, or only dots and spaces would lead out
// of the directory there, and control characters change how a list reads.
func archiveName(name session.FilePath) (string, bool) {
	text := string(name)
	if text == "" || text == "." || text == ".." || strings.ContainsAny(text, "/\x00") || len(text) > mostName {
		return "", false
	}
	text = strings.Map(func(r rune) rune {
		if r == '\\' || session.Unprintable(r) {
			return '_'
		}
		return r
	}, text)
	if len(text) > 1 && text[1] == ':' {
		text = text[:1] + "_" + text[2:]
	}
	if strings.Trim(text, ". ") == "" {
		text = "_" + text
	}
	return text, true
}

type zipped struct {
	path session.FilePath
	name string // in the archive, with slashes
	info session.FileInfo
}

type zipping struct {
	ctx   context.Context //nolint:containedctx // of the one request
	files *hub.Files
	to    *zip.Writer
	taken map[string]bool // names in the archive
	names int             // bytes of them
	work  *hub.Work       // that is told how far it is
	done  atomic.Int64    // bytes of files
	total atomic.Int64    // bytes of files; 0 while they are counted
}

// run writes the whole archive. Meanwhile it counts what the archive will contain.
func (z *zipping) run(roots []zipped) error {
	var counting sync.WaitGroup
	ctx, stop := context.WithCancel(z.ctx)
	defer counting.Wait()
	defer stop()
	counting.Go(func() {
		if total, err := z.count(ctx, roots); err == nil { // otherwise the total stays unknown
			z.total.Store(total)
			z.work.Progress(z.done.Load(), total)
		}
	})
	for _, root := range roots {
		if err := z.add(root); err != nil {
			return err
		}
	}
	return z.to.Close()
}

// count returns the size of all files in some, in bytes.
func (z *zipping) count(ctx context.Context, some []zipped) (total int64, err error) {
	for _, one := range some {
		switch {
		case one.info.Link:
		case one.info.Kind == session.KindFile:
			total += max(0, one.info.Size)
		case one.info.Kind == session.KindDirectory:
			err = z.each(ctx, one, func(inner zipped) error {
				bytes, err := z.count(ctx, []zipped{inner})
				total += bytes
				return err
			})
		}
		if err != nil {
			return 0, err
		}
	}
	return total, nil
}

// Write counts what is read of files.
func (z *zipping) Write(p []byte) (int, error) {
	z.work.Progress(z.done.Add(int64(len(p))), z.total.Load())
	return len(p), nil
}

func (z *zipping) add(one zipped) error {
	if one.info.Link || one.info.Kind == session.KindOther {
		return nil
	}
	one.name = z.free(one.name)
	if z.names += len(one.name); z.names > mostNames {
		return tooLarge("There are too many files for one archive.")
	}
	if one.info.Kind == session.KindDirectory {
		return z.addDirectory(one)
	}
	return z.addFile(one)
}

// free returns a name that is not in the archive yet, because two paths may end alike.
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
	return z.each(z.ctx, dir, z.add)
}

func tooLarge(message string) error {
	return session.NewError(session.CodeTooLarge, message, "Archive parts of it.")
}

// each calls fn for each entry of a directory. A directory that no longer exists is empty.
func (z *zipping) each(ctx context.Context, dir zipped, fn func(zipped) error) error {
	if strings.Count(dir.name, "/") >= mostDepth {
		return tooLarge("The directories are nested too deeply for one archive.")
	}
	for after, more := session.FilePath(""), true; more; {
		listing, err := z.files.ListFiles(ctx, z.files.Place, session.ListRequest{Path: dir.path, After: after})
		if session.CodeOf(err).Detail() == session.DetailNotFound {
			return nil
		}
		if err != nil {
			return err
		}
		for _, entry := range listing.Entries {
			after = entry.Name
			name, ok := archiveName(entry.Name)
			if !ok {
				continue
			}
			inner := session.FilePath(path.Join(string(dir.path), string(entry.Name)))
			if err := fn(zipped{path: inner, name: path.Join(dir.name, name), info: entry}); err != nil {
				return err
			}
		}
		more = listing.More && len(listing.Entries) > 0
	}
	return nil
}

func (z *zipping) addFile(file zipped) error {
	from, err := z.files.Read(z.ctx, session.ReadRequest{Path: file.path})
	if session.CodeOf(err).Detail() == session.DetailNotFound {
		return nil // removed in the meantime
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
	_, err = io.Copy(io.MultiWriter(to, z), from)
	return err
}
