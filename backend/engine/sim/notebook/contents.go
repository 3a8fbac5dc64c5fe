package notebook

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"

	"slipway/backend/session"
)

// mostContent limits the files that the page reads or writes as a whole, in bytes.
const mostContent = 32 << 20

// versionHeader has the version of the file that was read or is to be replaced; "new" if there is none.
const (
	versionHeader = "Slipway-Version"
	versionNew    = "new"
)

type problem struct {
	Code    session.Code `json:"code"`
	Message string       `json:"message"`
	Hint    string       `json:"hint"`
}

// statuses are the HTTP statuses of failures, by the last word of their codes.
var statuses = map[string]int{
	"not-found": http.StatusNotFound, "changed": http.StatusPreconditionFailed,
	"already-exists": http.StatusPreconditionFailed, "forbidden": http.StatusForbidden,
	"read-only": http.StatusForbidden, "no-space": http.StatusInsufficientStorage,
	"too-large": http.StatusRequestEntityTooLarge,
}

func fail(w http.ResponseWriter, err error) {
	e := session.AsError(err, session.CodeFileFailed)
	status := statuses[e.Code.Detail()]
	if status == 0 {
		status = http.StatusBadRequest
	}
	writeJSON(w, status, problem{Code: e.Code, Message: e.Message, Hint: e.Hint})
}

// inside is the path that a request means, always in the notebook's directory.
func (s *server) inside(p string) session.FilePath {
	return session.FilePath(path.Join(s.config.Home, path.Clean("/"+p)))
}

type entry struct {
	Name     string           `json:"name"`
	Kind     session.FileKind `json:"kind"`
	Size     int64            `json:"size"`
	Modified int64            `json:"modified"` // milliseconds since 1970
}

func (s *server) list(w http.ResponseWriter, r *http.Request) {
	listing, err := s.tree.ListFiles(r.Context(), session.ListRequest{Path: s.inside(r.URL.Query().Get("path"))})
	if err != nil {
		fail(w, err)
		return
	}
	entries := make([]entry, 0, len(listing.Entries))
	for _, e := range listing.Entries {
		entries = append(entries, entry{Name: string(e.Name), Kind: e.Kind, Size: e.Size,
			Modified: e.Modified.UnixMilli()})
	}
	writeJSON(w, http.StatusOK, map[string]any{"entries": entries, "more": listing.More})
}

func (s *server) read(w http.ResponseWriter, r *http.Request) {
	at := s.inside(r.URL.Query().Get("path"))
	info, err := s.tree.Stat(at)
	if err == nil && info.Size > mostContent {
		err = tooLarge()
	}
	var file io.ReadCloser
	if err == nil {
		file, err = s.tree.ReadFile(r.Context(), session.ReadRequest{Path: at, Version: info.Version})
	}
	if err != nil {
		fail(w, err)
		return
	}
	defer file.Close() //nolint:errcheck // it was only read
	w.Header().Set(versionHeader, info.Version)
	sendFile(w, file)
}

func tooLarge() error {
	return session.NewError(session.CodeTooLarge, "The file is larger than 32 MiB.", "Read it in a cell, part by part.")
}

// save replaces a whole file if it still has the version that the page knows.
func (s *server) save(w http.ResponseWriter, r *http.Request) {
	at := s.inside(r.URL.Query().Get("path"))
	body := http.MaxBytesReader(w, r.Body, mostContent)
	s.saving.Lock()
	defer s.saving.Unlock()
	info, err := s.replace(r.Context(), at, r.Header.Get(versionHeader), body)
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set(versionHeader, info.Version)
	w.WriteHeader(http.StatusNoContent)
}

// replace needs saving. An empty version replaces any file.
func (s *server) replace(ctx context.Context, at session.FilePath, version string,
	from io.Reader) (info session.FileInfo, err error) {
	up := session.Upload{Path: at, Key: rand.Text()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.tree.DropUpload(ctx, up))
		}
	}()
	size, err := s.tree.WriteUpload(ctx, up, from)
	if err == nil {
		err = s.unchanged(ctx, at, version)
	}
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return info, tooLarge()
	}
	if err != nil {
		return info, err
	}
	conflict := session.ConflictReplace
	if version == versionNew {
		conflict = session.ConflictFail
	}
	return s.tree.FinishUpload(ctx, session.FinishRequest{Upload: up,
		Finish: session.Finish{Size: size, Conflict: conflict}})
}

// unchanged fails if a file does not have the version.
func (s *server) unchanged(ctx context.Context, at session.FilePath, version string) error {
	if version == "" {
		return nil
	}
	info, err := s.tree.Stat(at)
	gone := session.CodeOf(err) == session.CodeFileNotFound
	switch {
	case err != nil && !gone:
		return err
	case gone && version == versionNew:
		return nil
	case gone:
		return session.NewError(session.CodeFileChanged, fmt.Sprintf("%q is no longer there.", at),
			"Save it under another name, or write it anew.")
	case version == versionNew:
		return session.NewError(session.CodeFileExists,
			fmt.Sprintf("There is something called %q already.", path.Base(string(at))), "Choose another name.")
	case info.Version != version:
		return session.NewError(session.CodeFileChanged,
			fmt.Sprintf("%q has changed meanwhile.", path.Base(string(at))), "Read it again, or replace it.")
	}
	return nil
}
