package demo

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"slipway/backend/session"
)

// folders has the person's folders on the workstation, with small but valid files.
//
//go:embed folders
var folders embed.FS

// Fill creates the person's folders, unless they exist.
func Fill(ctx context.Context, on session.Agent) error {
	entries, err := folders.ReadDir("folders")
	if err != nil {
		return err
	}
	for _, folder := range entries {
		made, err := on.CreateFolder(ctx, session.FolderRequest{Owner: Person, Name: folder.Name()})
		if session.CodeOf(err) == session.CodeFolderExists {
			continue
		}
		if err != nil {
			return err
		}
		root := path.Join("folders", folder.Name())
		err = fs.WalkDir(folders, root, func(p string, entry fs.DirEntry, err error) error {
			if err != nil || p == root {
				return err
			}
			name := session.FilePath(strings.TrimPrefix(p, root+"/"))
			if entry.IsDir() {
				return on.MakeDirectory(ctx, session.Place{Folder: made.ID}, name, true)
			}
			content, err := folders.ReadFile(p)
			if err != nil {
				return err
			}
			return put(ctx, on, session.Place{Folder: made.ID}, name, content)
		})
		if err != nil {
			return fmt.Errorf("fill folder %s: %w", folder.Name(), err)
		}
	}
	return nil
}

func put(ctx context.Context, on session.Agent, place session.Place, name session.FilePath, content []byte) error {
	up := session.Upload{Path: name, Key: "demo"}
	if _, err := on.WriteUpload(ctx, place, up, bytes.NewReader(content)); err != nil {
		return err
	}
	_, err := on.FinishUpload(ctx, place, session.FinishRequest{Upload: up,
		Finish: session.Finish{Size: int64(len(content))}})
	return err
}
