package folders

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"slipway/backend/session"
)

const (
	maxEntries = 5000 // directories in one listing
	maxPath    = 4096 // bytes of the longest path on Linux
)

// ListDirectories implements [session.Host].
func ListDirectories(ctx context.Context, path string) (session.DirectoryListing, error) {
	if path == "" {
		path = "/"
		if home, err := os.UserHomeDir(); err == nil {
			path = home
		}
	}
	if len(path) > maxPath || !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
		return session.DirectoryListing{}, session.NewError(session.CodeFileInvalid,
			"What was asked for is not an absolute path.", "Begin with /.")
	}
	path = filepath.Clean(path)
	entries, err := os.ReadDir(path)
	if err != nil {
		return session.DirectoryListing{}, directoryError(path, err)
	}
	listing := session.DirectoryListing{Path: path, Entries: []session.DirectoryEntry{}}
	if parent := filepath.Dir(path); parent != path {
		listing.Parent = parent
	}
	for _, entry := range entries {
		if err := ctx.Err(); err != nil {
			return session.DirectoryListing{}, err // of a slow file system
		}
		if len(listing.Entries) == maxEntries {
			break
		}
		if at := filepath.Join(path, entry.Name()); isDirectory(at, entry) {
			listing.Entries = append(listing.Entries,
				session.DirectoryEntry{Name: entry.Name(), Writable: writable(at)})
		}
	}
	slices.SortFunc(listing.Entries, func(a, b session.DirectoryEntry) int {
		return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
	})
	return listing, nil
}

func isDirectory(at string, entry fs.DirEntry) bool {
	if entry.Type()&fs.ModeSymlink == 0 {
		return entry.IsDir()
	}
	info, err := os.Stat(at)
	return err == nil && info.IsDir()
}

func directoryError(path string, err error) error {
	e := session.WrapError(err, session.CodeFileConflict, fmt.Sprintf("%s cannot be read.", path),
		"Choose another directory.")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Code, e.Message = session.CodeFileNotFound, fmt.Sprintf("There is no directory %s.", path)
	case errors.Is(err, fs.ErrPermission):
		e.Code, e.Message, e.Hint = session.CodeFileForbidden, fmt.Sprintf("You may not read %s.", path),
			"Choose a directory of your own, or ask its owner."
	default:
		if info, statErr := os.Stat(path); statErr == nil && !info.IsDir() {
			e.Code, e.Message = session.CodeFileNotFound, fmt.Sprintf("%s is not a directory.", path)
		}
	}
	return e
}
