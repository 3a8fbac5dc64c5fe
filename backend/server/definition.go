package server

import (
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"

	"slipway/backend/hub"
	"slipway/backend/runtimes"
	"slipway/backend/session"
)

// readDefinition reads the model-definition.yaml of a folder. It fails with file_use_not-found, or with
// session_create_invalid and a field for each line that is wrong.
func (s serviceRoutes) readDefinition(r *http.Request) (runtimes.Definition, error) {
	query := r.URL.Query()
	folder, at := query.Get("folder"), path.Clean("/"+query.Get("path"))
	if folder == "" {
		return runtimes.Definition{}, badQuery("folder", "No folder is named.", "Name the one with the model.")
	}
	files, _, err := s.hub.FilesIn(r.Context(), folder, query.Get("agent"))
	if err != nil {
		return runtimes.Definition{}, err
	}
	candidates := []string{at}
	if ending := path.Ext(at); ending != ".yaml" && ending != ".yml" {
		candidates = nil
		for _, name := range runtimes.DefinitionNames {
			candidates = append(candidates, path.Join(at, name))
		}
	}
	for _, name := range candidates {
		data, err := readStart(r, files, name, runtimes.MaxDefinition+1)
		if session.CodeOf(err) == session.CodeFileNotFound {
			continue
		}
		if err != nil {
			return runtimes.Definition{}, err
		}
		definition, wrong := runtimes.ParseDefinition(strings.TrimPrefix(name, "/"), data)
		if len(wrong) > 0 {
			err = &session.Error{Code: session.CodeInvalid, Fields: wrong,
				Message: path.Base(name) + " cannot be used."}
		}
		return definition, err
	}
	return runtimes.Definition{}, session.NewError(session.CodeFileNotFound,
		fmt.Sprintf("There is no %s in the folder %s.", strings.TrimPrefix(candidates[0], "/"), session.Clip(folder)),
		"Upload it, or choose another folder or path.")
}

// readStart reads a file up to a number of bytes.
func readStart(r *http.Request, files *hub.Files, name string, most int64) ([]byte, error) {
	content, err := files.ReadFile(r.Context(), files.Place, session.ReadRequest{Path: session.FilePath(name)})
	if err != nil {
		return nil, err
	}
	defer content.Close()
	return io.ReadAll(io.LimitReader(content, most))
}
