// Package project finds out what a project asks for: from a devcontainer.json, a Dockerfile or lists of packages it
// makes the Dockerfile, the context and the name of an image. It reads a directory and starts nothing. What it reads
// comes from strangers: a file that cannot be understood is an error, and everything that is not taken over is said.
package project

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"slipway/backend/session"
)

// Plan is how a project becomes an image. Without Dockerfile, the image is used as it is.
type Plan struct {
	session.Project
	Target string            // stage of the Dockerfile; empty: the last
	Args   map[string]string // of the build

	tree      fs.FS
	place     Place
	workspace string   // where sessions have the project
	files     []string // of the context, sorted
}

const (
	maxFile   = 1 << 20 // bytes of a file that is read as a whole
	mostLeft  = 200
	mostBases = 100
)

// Dockerfile is the name of the Dockerfile in each context.
const Dockerfile = "Dockerfile.slipway"

// way is one file by which a project can be built.
type way struct {
	kind session.ProjectKind
	file string
}

// Read finds out what the project in tree asks for, which is the directory at that place.
func Read(ctx context.Context, tree fs.FS, at Place, req session.ProjectRequest) (*Plan, error) {
	ways, err := find(tree)
	if err != nil {
		return nil, err
	}
	p := &Plan{tree: tree, place: at, workspace: path.Join(session.Home, at.name()),
		Project: session.Project{Kind: session.ProjectPlain, Image: req.Environment, Files: []string{},
			Bases: []string{}}}
	for _, way := range ways {
		p.Files = append(p.Files, way.file)
	}
	if req.File != "" {
		at := slices.Index(p.Files, req.File)
		if at < 0 {
			return nil, session.NewError(session.CodeFileNotFound,
				fmt.Sprintf("The project has no file %q that says how it is built.", session.Clip(req.File)),
				"Choose one of its files, or leave it out.")
		}
		ways = ways[at:]
	}
	if len(ways) == 0 {
		return p, nil
	}
	p.Kind, p.File = ways[0].kind, ways[0].file
	switch p.Kind {
	case session.ProjectDevContainer:
		if err = p.readDevContainer(req.Environment); err == nil {
			p.leaveMetadata()
		}
	case session.ProjectDockerfile:
		err = p.readDockerfile(".", p.File) // also where binder has it, as for repo2docker
	case session.ProjectPackages:
		err = p.readPackages(path.Dir(p.File), req.Environment)
	case session.ProjectPlain:
	}
	if err == nil && p.Dockerfile != "" {
		p.readSecrets()
		p.Image, err = p.name(ctx, at.Folder.Owner, at.name())
	}
	return p, err
}

// leaveMetadata notes the settings that images carry for a devcontainer.
func (p *Plan) leaveMetadata() {
	const label = "devcontainer.metadata"
	for _, image := range p.Bases {
		if p.place.Labels != nil && strings.Trim(p.place.Labels(image)[label], "[]{} \n") != "" {
			p.leave(label+" "+image, "projectMetadata")
		}
	}
}

// find returns the files by which a project can be built, the best first.
func find(tree fs.FS) (ways []way, err error) {
	has := func(file string) bool {
		info, err := fs.Stat(tree, file)
		return err == nil && info.Mode().IsRegular()
	}
	for _, file := range []string{".devcontainer/devcontainer.json", ".devcontainer.json"} {
		if has(file) {
			ways = append(ways, way{session.ProjectDevContainer, file})
		}
	}
	if has("Dockerfile") {
		ways = append(ways, way{session.ProjectDockerfile, "Dockerfile"})
	}
	more, err := fs.Glob(tree, ".devcontainer/*/devcontainer.json")
	if err != nil {
		return nil, err
	}
	for _, file := range more[:min(len(more), mostFeatures)] {
		if has(file) {
			ways = append(ways, way{session.ProjectDevContainer, file})
		}
	}
	binder := "."
	for _, dir := range []string{".binder", "binder"} {
		if info, err := fs.Stat(tree, dir); err != nil || !info.IsDir() {
			continue
		}
		if binder != "." {
			return nil, invalid("binder", "There are both .binder and binder.", "Keep one of the two.")
		}
		binder = dir
	}
	if binder != "." && has(path.Join(binder, "Dockerfile")) {
		ways = append(ways, way{session.ProjectDockerfile, path.Join(binder, "Dockerfile")})
	}
	for _, file := range packageFiles {
		if has(path.Join(binder, file)) {
			ways = append(ways, way{session.ProjectPackages, path.Join(binder, file)})
		}
	}
	return ways, nil
}

// invalid is the error of a file that cannot be understood.
func invalid(file, message, hint string) error {
	return session.Refused(session.CodeFileInvalid, session.FieldError{Field: file, Kind: session.KindInvalid,
		Message: message, Hint: hint})
}

// leave notes something that the project asks for and does not get.
func (p *Plan) leave(what, why string, holes ...session.Phrase) {
	p.note(what, session.Say(why, holes...))
}

func (p *Plan) note(what string, why session.Phrase) {
	if len(p.Left) < mostLeft {
		p.Left = append(p.Left, session.ProjectLeft{What: session.Clip(what), Why: why})
	}
}

// read returns a file as a whole.
func (p *Plan) read(file string) (string, error) {
	data, err := readText(p.tree, path.Clean(file))
	if err != nil && session.CodeOf(err) == "" {
		err = p.unread(file, err)
	}
	return data, err
}

// readText returns a text as a whole.
func readText(tree fs.FS, file string) (string, error) {
	from, err := tree.Open(file)
	if err != nil {
		return "", err
	}
	defer from.Close()
	data, err := io.ReadAll(io.LimitReader(from, maxFile+1))
	switch {
	case err != nil:
		return "", err
	case len(data) > maxFile:
		return "", invalid(file, file+" is larger than 1 MiB.", "Shorten it.")
	case !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0:
		return "", invalid(file, file+" is not text in UTF-8.", "Save it as UTF-8.")
	}
	return string(data), nil
}

func (p *Plan) unread(file string, err error) error {
	code, message := session.CodeFileFailed, "The file "+session.Clip(file)+" cannot be read."
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		code, message = session.CodeFileNotFound, "The project has no file "+session.Clip(file)+"."
	}
	return session.WrapError(err, code, message, "Check its name and permissions.")
}

// readDockerfile takes a Dockerfile of the project with the context in dir.
func (p *Plan) readDockerfile(dir, file string) (err error) {
	if p.Dockerfile, err = p.read(file); err != nil {
		return err
	}
	if p.Bases = bases(p.Dockerfile); len(p.Bases) == 0 && !strings.Contains(strings.ToUpper(p.Dockerfile), "FROM") {
		return invalid(file, file+" has no line FROM, so it is no Dockerfile.", "Begin it with FROM and an image.")
	}
	if p.tree, err = fs.Sub(p.tree, dir); err != nil {
		return p.unread(dir, err)
	}
	p.files, err = contextFiles(p.tree, path.Base(file))
	return err
}

// bases returns the images that a Dockerfile extends, as far as they have no variables and are no stages of it.
func bases(text string) []string {
	found, stages := []string{}, map[string]bool{"scratch": true}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 2 || !strings.EqualFold(words[0], "FROM") {
			continue
		}
		words = slices.DeleteFunc(words[1:], func(word string) bool { return strings.HasPrefix(word, "--") })
		if len(words) == 0 || len(found) == mostBases {
			continue
		}
		if !stages[strings.ToLower(words[0])] && session.ValidImage(words[0]) && !slices.Contains(found, words[0]) {
			found = append(found, words[0])
		}
		if len(words) == 3 && strings.EqualFold(words[1], "AS") {
			stages[strings.ToLower(words[2])] = true
		}
	}
	return found
}
