package project

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"

	"slipway/backend/session"
	"slipway/gpu"
)

// The bounds of a context.
const (
	maxFiles = 100_000
	maxBytes = 4 * gpu.GiB
)

// contextFiles lists the files of a context without what .dockerignore leaves out, and without those of git: each
// commit would be another image.
func contextFiles(tree fs.FS, dockerfile string) ([]string, error) {
	ignored, err := ignore(tree, dockerfile)
	if err != nil {
		return nil, err
	}
	var files []string
	var size gpu.Bytes
	err = fs.WalkDir(tree, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || file == "." {
			return err
		}
		if file == ".git" {
			return leaveOut(entry)
		}
		out, err := ignored.MatchesOrParentMatches(file)
		switch {
		case err != nil:
			return err
		case out && entry.IsDir() && !ignored.Exclusions():
			return fs.SkipDir
		case out, !entry.IsDir() && !entry.Type().IsRegular() && entry.Type() != fs.ModeSymlink:
			return nil
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			size += gpu.Bytes(info.Size())
		}
		files = append(files, file)
		if len(files) > maxFiles || size > maxBytes {
			return session.NewError(session.CodeTooLarge,
				fmt.Sprintf("The project has more than %d files or %s to build with.", maxFiles, maxBytes),
				"Name data that the build does not need in the file .dockerignore.")
		}
		return nil
	})
	if err != nil && session.CodeOf(err) == "" {
		err = session.WrapError(err, session.CodeFileFailed, "The project's files cannot be listed.",
			"Check their permissions.")
	}
	slices.Sort(files)
	return files, err
}

// leaveOut leaves out an entry of a directory with all that it contains.
func leaveOut(entry fs.DirEntry) error {
	if entry.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// ignore returns what .dockerignore, or the file of this Dockerfile's own, leaves out.
func ignore(tree fs.FS, dockerfile string) (*patternmatcher.PatternMatcher, error) {
	for _, name := range []string{dockerfile + ".dockerignore", ".dockerignore"} {
		text, err := readText(tree, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if session.CodeOf(err) != "" {
			return nil, err
		}
		var patterns []string
		if err == nil {
			patterns, err = ignorefile.ReadAll(strings.NewReader(text))
		}
		var found *patternmatcher.PatternMatcher
		if err == nil {
			found, err = patternmatcher.New(patterns)
		}
		if err != nil {
			return nil, invalid(name, name+" cannot be understood: "+session.Clip(err.Error())+".", "Correct it.")
		}
		return found, nil
	}
	return patternmatcher.New(nil)
}

// Context writes what the image is built from as a tar archive: the Dockerfile, under the name [Dockerfile], and the
// files. The same content gives the same bytes, whatever its times and owners.
func (p *Plan) Context(ctx context.Context, to io.Writer) error {
	w := tar.NewWriter(to)
	header := tar.Header{Typeflag: tar.TypeReg, Name: Dockerfile, Mode: 0o644, Size: int64(len(p.Dockerfile)),
		ModTime: time.Unix(0, 0)}
	if err := w.WriteHeader(&header); err != nil {
		return err
	}
	if _, err := io.WriteString(w, p.Dockerfile); err != nil {
		return err
	}
	for _, file := range p.files {
		if file == Dockerfile {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := p.pack(w, file); err != nil {
			return err
		}
	}
	return w.Close()
}

func (p *Plan) pack(w *tar.Writer, file string) error {
	info, err := fs.Lstat(p.tree, file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed since it was listed
	}
	if err != nil {
		return p.unread(file, err)
	}
	header := tar.Header{Name: file, Mode: 0o644, ModTime: time.Unix(0, 0)}
	if info.Mode()&0o111 != 0 {
		header.Mode = 0o755
	}
	switch {
	case info.IsDir():
		header.Typeflag, header.Name = tar.TypeDir, file+"/"
		return w.WriteHeader(&header)
	case info.Mode().Type() == fs.ModeSymlink:
		header.Typeflag = tar.TypeSymlink
		if header.Linkname, err = fs.ReadLink(p.tree, file); err != nil {
			return p.unread(file, err)
		}
		return w.WriteHeader(&header)
	case !info.Mode().IsRegular():
		return nil
	}
	from, err := p.tree.Open(file)
	if err != nil {
		return p.unread(file, err)
	}
	defer from.Close()
	if info, err = from.Stat(); err != nil || !info.Mode().IsRegular() {
		return errors.Join(p.unread(file, fs.ErrNotExist), err)
	}
	header.Typeflag, header.Size = tar.TypeReg, info.Size()
	if err := w.WriteHeader(&header); err != nil {
		return err
	}
	if _, err := io.CopyN(w, from, header.Size); errors.Is(err, io.EOF) {
		return session.WrapError(err, session.CodeFileChanged,
			"The file "+session.Clip(file)+" became shorter while it was read.", "Try again when nothing writes to it.")
	} else if err != nil {
		return err
	}
	return nil
}

// name returns the reference of the image: the owner's, and named by all that it is built from.
func (p *Plan) name(ctx context.Context, owner, name string) (string, error) {
	sum := sha256.New()
	if err := p.Context(ctx, sum); err != nil {
		return "", err
	}
	if err := json.NewEncoder(sum).Encode([]any{p.Target, p.Args}); err != nil {
		return "", err
	}
	return session.ProjectRef(owner, path.Base(name), sum.Sum(nil)), nil
}
