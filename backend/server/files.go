package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strconv"
	"syscall"
	"unicode/utf8"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/hub"
	"slipway/backend/session"
)

// fileRoutes are the routes of folders, and of files of sessions and folders.
type fileRoutes struct {
	hub *hub.Hub
	log *slog.Logger
}

func (s fileRoutes) mount(m *mounts) {
	for _, at := range []route.Files{route.SessionFiles(), route.FolderFiles()} {
		answer(m, at.List, inFiles(s.filesIn, listFiles))
		answer(m, at.Stat, inFiles(s.filesIn, statFile))
		answer(m, at.Checksum, inFiles(s.filesIn, checksumFile))
		answer(m, at.MakeDirectory, inFiles(s.filesIn, makeDirectory))
		answer(m, at.Move, inFiles(s.filesIn, moveFile))
		answer(m, at.Remove, inFiles(s.filesIn, removeFile))
		answer(m, at.Upload, inFiles(s.uploadIn, uploadOffset))
		answer(m, at.UploadWrite, inFiles(s.uploadIn, writeUpload))
		answer(m, at.UploadDrop, inFiles(s.uploadIn, dropUpload))
		take(m, at.UploadFinish, s.finishUpload)
		m.stream(at.Read.Endpoint, s.readFile)
		m.stream(at.Zip.Endpoint, s.zipFiles)
	}
	take(m, route.FileCopy, func(r *http.Request, req api.FileCopying) (api.Operation, error) {
		return s.hub.CopyFiles(r.Context(), req)
	})
	take(m, route.FileSync, func(r *http.Request, req api.FileSyncing) (api.Operation, error) {
		return s.hub.SyncFiles(r.Context(), req)
	})
	answer(m, route.Folders, func(r *http.Request) ([]api.Folder, error) {
		return eachAs(folderOut)(s.hub.Folders(r.Context(), r.URL.Query().Get("agent")))
	})
	answer(m, route.Folder, func(r *http.Request) (api.Folder, error) {
		_, f, err := s.folderIn(r)
		return as(folderOut)(f, err)
	})
	take(m, route.FolderCreate, func(r *http.Request, body api.FolderRequest) (api.Folder, error) {
		return as(folderOut)(s.hub.CreateFolder(r.Context(), body.Agent, body.FolderRequest))
	})
	take(m, route.FolderUpdate, func(r *http.Request, change session.FolderChange) (api.Folder, error) {
		agent, f, err := s.folderIn(r)
		if err != nil {
			return api.Folder{}, err
		}
		return as(folderOut)(agent.UpdateFolder(r.Context(), f.ID, change))
	})
	answer(m, route.FolderTrash, s.inFolder(session.FolderTrash.TrashFolder))
	answer(m, route.FolderRestore, s.inFolder(session.FolderTrash.RestoreFolder))
	answer(m, route.FolderDelete, func(r *http.Request) (api.Operation, error) {
		return s.hub.PurgeFolder(r.Context(), r.PathValue("folder"), r.URL.Query().Get("agent"))
	})
	answer(m, route.FolderSFTP, func(r *http.Request) (api.Session, error) {
		return as(s.hub.View)(s.hub.ServeFolder(r.Context(), r.PathValue("folder"), r.URL.Query().Get("agent")))
	})
	take(m, route.Project, func(r *http.Request, req session.ProjectRequest) (session.Project, error) {
		return s.hub.ReadProject(r.Context(), r.PathValue("folder"), r.URL.Query().Get("agent"), req)
	})
	take(m, route.ProjectBuild, func(r *http.Request, req hub.ProjectBuilding) (api.Operation, error) {
		return s.hub.BuildProject(r.Context(), r.PathValue("folder"), r.URL.Query().Get("agent"), req)
	})
	take(m, route.ProjectBuildChoices, func(r *http.Request, req session.ProjectRequest) ([]hub.BuildChoice, error) {
		return s.hub.BuildChoices(r.Context(), r.PathValue("folder"), r.URL.Query().Get("agent"), req)
	})
	take(m, route.ProjectOpen, func(r *http.Request, req hub.ProjectOpening) (hub.RecentProject, error) {
		return s.hub.OpenProject(r.Context(), r.PathValue("folder"), r.URL.Query().Get("agent"), req)
	})
	take(m, route.ProjectClone, func(r *http.Request, req hub.ProjectCloning) (api.Operation, error) {
		return s.hub.CloneProject(r.Context(), req)
	})
	answer(m, route.FolderDeleteStop, s.inFolder(session.FolderTrash.StopDeleting))
}

// inFiles returns a handler of requests about what find finds: a file by its path, or an upload.
func inFiles[At, Out any](find func(*http.Request) (*hub.Files, At, error),
	handle func(*http.Request, *hub.Files, At) (Out, error)) func(*http.Request) (Out, error) {
	return func(r *http.Request) (out Out, err error) {
		files, at, err := find(r)
		if err != nil {
			return out, err
		}
		return handle(r, files, at)
	}
}

// filesIn returns the files that a request is about, and its path. Paths are in the query because they may contain any
// byte.
func (s fileRoutes) filesIn(r *http.Request) (*hub.Files, session.FilePath, error) {
	query := r.URL.Query()
	name := session.FilePath(query.Get("path"))
	if folder := r.PathValue("folder"); folder != "" {
		files, _, err := s.hub.FilesIn(r.Context(), folder, query.Get("agent"))
		return files, name, err
	}
	files, err := s.hub.FilesOf(r.Context(), r.PathValue("id"), query.Get("kernel"))
	return files, name, err
}

func fileOut(f session.FileInfo) api.FileInfo {
	out := api.FileInfo{FileInfo: f, Name: string(f.Name), Target: string(f.Target),
		Mode: strconv.FormatUint(uint64(f.Mode), 8)}
	if !utf8.ValidString(out.Name) {
		out.Encoded = url.PathEscape(out.Name)
	}
	return out
}

func listFiles(r *http.Request, files *hub.Files, path session.FilePath) (api.FileListing, error) {
	limit, err := countIn(r, "limit")
	if err != nil {
		return api.FileListing{}, err
	}
	after := session.FilePath(r.URL.Query().Get("after"))
	return as(listingOut)(files.ListFiles(r.Context(), files.Place, session.ListRequest{Path: path, After: after,
		Limit: limit}))
}

func listingOut(l session.FileListing) api.FileListing {
	return api.FileListing{FileListing: l, Path: string(l.Path), Entries: each(l.Entries, fileOut)}
}

func fileAt(r *http.Request, files *hub.Files, path session.FilePath) (session.FileInfo, error) {
	return files.StatFile(r.Context(), files.Place, path)
}

func statFile(r *http.Request, files *hub.Files, path session.FilePath) (api.FileInfo, error) {
	return as(fileOut)(fileAt(r, files, path))
}

func checksumFile(r *http.Request, files *hub.Files, path session.FilePath) (api.Checksum, error) {
	sum, err := files.ChecksumFile(r.Context(), files.Place, path)
	return api.Checksum{SHA256: sum}, err
}

func makeDirectory(r *http.Request, files *hub.Files, path session.FilePath) (none, error) {
	parents, err := flagIn(r, "parents")
	if err != nil {
		return none{}, err
	}
	return none{}, files.MakeDirectory(r.Context(), files.Place, path, parents)
}

func moveFile(r *http.Request, files *hub.Files, path session.FilePath) (none, error) {
	return none{}, files.MoveFile(r.Context(), files.Place, path, session.FilePath(r.URL.Query().Get("to")))
}

func removeFile(r *http.Request, files *hub.Files, path session.FilePath) (none, error) {
	recursive, err := flagIn(r, "recursive")
	if err != nil {
		return none{}, err
	}
	return none{}, files.RemoveFile(r.Context(), files.Place, path, recursive)
}

// readFile sends a file or the requested range of it. Browsers never show it as a page of our origin.
func (s fileRoutes) readFile(w http.ResponseWriter, r *http.Request) error {
	files, name, err := s.filesIn(r)
	if err != nil {
		return err
	}
	info, err := fileAt(r, files, name)
	if err != nil {
		return err
	}
	if info.Kind != session.KindFile {
		return session.NewError(session.CodeFileConflict, fmt.Sprintf("%q is not a plain file.", string(name)),
			"List a directory instead.")
	}
	header := w.Header()
	header.Set("Content-Type", "application/octet-stream")
	header.Set("Content-Disposition",
		mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(string(info.Name))}))
	header.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	header.Set("Cache-Control", "no-store")
	header.Set("ETag", strconv.Quote(info.Version))
	content := &ranged{ctx: r.Context(), files: files, req: session.ReadRequest{Path: name, Version: info.Version},
		size: info.Size}
	defer content.Close()
	http.ServeContent(w, r, "", info.Modified, content)
	return nil
}

// ranged is a file that can be read from any position. It is opened by the first read.
type ranged struct {
	ctx   context.Context //nolint:containedctx // of the one request
	files *hub.Files
	req   session.ReadRequest
	size  int64
	from  io.ReadCloser // nil: not open
}

func (f *ranged) Read(p []byte) (int, error) {
	if f.req.Offset >= f.size {
		return 0, io.EOF
	}
	if err := f.open(); err != nil {
		return 0, err
	}
	n, err := f.from.Read(p)
	f.req.Offset += int64(n)
	return n, err
}

func (f *ranged) open() error {
	if f.from != nil {
		return nil
	}
	from, err := f.files.Read(f.ctx, f.req)
	if err == nil {
		f.from = from
	}
	return err
}

// onDisk is content of this machine. OnDisk returns the file that it reads, at its current position.
type onDisk interface{ OnDisk() (*os.File, bool) }

// SyscallConn implements [syscall.Conn], so that the kernel sends a file of this machine to the connection without
// copying it through this program.
func (f *ranged) SyscallConn() (syscall.RawConn, error) {
	if err := f.open(); err != nil {
		return nil, err
	}
	if content, ok := f.from.(onDisk); ok {
		if file, ok := content.OnDisk(); ok {
			return file.SyscallConn()
		}
	}
	return nil, errors.ErrUnsupported
}

func (f *ranged) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += f.req.Offset
	case io.SeekEnd:
		offset += f.size
	}
	if offset < 0 {
		return 0, errors.New("before the beginning")
	}
	if offset != f.req.Offset {
		f.Close()
	}
	f.req.Offset = offset
	return offset, nil
}

func (f *ranged) Close() {
	if f.from != nil {
		f.from.Close()
		f.from = nil
	}
}

// uploadIn returns the upload that a request is about.
func (s fileRoutes) uploadIn(r *http.Request) (*hub.Files, session.Upload, error) {
	query := r.URL.Query()
	offset, err := offsetIn(r, "offset")
	up := session.Upload{Path: session.FilePath(query.Get("path")), Key: query.Get("key"), Offset: int64(offset)}
	if err := cmp.Or(err, up.Check()); err != nil {
		return nil, up, err
	}
	files, _, err := s.filesIn(r)
	return files, up, err
}

func uploadOffset(r *http.Request, files *hub.Files, up session.Upload) (api.UploadState, error) {
	offset, err := files.UploadOffset(r.Context(), files.Place, up)
	return api.UploadState{Offset: offset}, err
}

func writeUpload(r *http.Request, files *hub.Files, up session.Upload) (api.UploadState, error) {
	offset, err := files.Upload(r.Context(), up, r.Body)
	return api.UploadState{Offset: offset}, err
}

func dropUpload(r *http.Request, files *hub.Files, up session.Upload) (none, error) {
	return none{}, files.DropUpload(r.Context(), files.Place, up)
}

func (s fileRoutes) finishUpload(r *http.Request, body api.FinishRequest) (api.FileInfo, error) {
	files, up, err := s.uploadIn(r)
	if err != nil {
		return api.FileInfo{}, err
	}
	req := session.FinishRequest{Upload: up, Finish: body.Finish}
	if body.Mode != "" {
		mode, err := strconv.ParseUint(body.Mode, 8, 9)
		if err != nil {
			return api.FileInfo{}, session.NewError(session.CodeFileInvalid, fmt.Sprintf("%q is not a valid mode.",
				body.Mode), "Write it in octal, such as 644.")
		}
		req.Mode = uint32(mode)
	}
	return as(fileOut)(files.FinishUpload(r.Context(), files.Place, req))
}

// folderOut removes the owners of the sessions that mount a folder.
func folderOut(f session.Folder) api.Folder {
	f.UsedBy, f.Inode = slices.Clone(f.UsedBy), 0
	for i := range f.UsedBy {
		f.UsedBy[i].Owner = ""
	}
	return api.Folder{Folder: f, Auto: f.Auto()}
}

func (s fileRoutes) folderIn(r *http.Request) (session.Agent, session.Folder, error) {
	return s.hub.FindFolder(r.Context(), r.PathValue("folder"), r.URL.Query().Get("agent"))
}

// inFolder returns a handler that calls do for the folder in the path.
func (s fileRoutes) inFolder(do func(session.FolderTrash, context.Context, session.FolderID) (session.Folder,
	error)) func(*http.Request) (api.Folder, error) {
	return func(r *http.Request) (api.Folder, error) {
		agent, f, err := s.folderIn(r)
		if err != nil {
			return api.Folder{}, err
		}
		return as(folderOut)(do(agent.FolderTrash, r.Context(), f.ID))
	}
}
