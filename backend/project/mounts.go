package project

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"slipway/backend/session"
)

// Place says where a project is, and what its machine has.
type Place struct {
	Folder session.Folder
	Path   string           // of the project's directory in the folder; empty: all of it
	Others []session.Folder // of the owner's, which the project can ask for by their names
	// Devices is set if sessions on the machine can get one, of whatever vendor.
	Devices bool
	// Labels returns the labels of an image, if that is on the machine; nil: none is.
	Labels func(image string) map[string]string
}

// name is that of the project: the path under the home where sessions have it, unless it asks for another place.
func (at Place) name() string { return path.Join(at.Folder.Name, at.Path) }

const localFolder = "${localWorkspaceFolder}"

// asked is one mount that a devcontainer.json asks for.
type asked struct {
	kind, source, target string
	readOnly             bool
}

// readMounts finds out where sessions have the project, and what else they mount.
func (p *Plan) readMounts(d devContainer) {
	folder := p.value("workspaceFolder", d.WorkspaceFolder)
	if folder != "" && !path.IsAbs(folder) {
		p.leave("workspaceFolder", "sourceAbsolute")
		folder = ""
	}
	own := session.FolderMount{Folder: p.place.Folder.ID, Name: p.place.Folder.Name,
		Target: path.Join(session.Home, p.place.Folder.Name)}
	moved := d.WorkspaceMount != "" && p.moves(d.WorkspaceMount)
	if !moved && folder != "" {
		// A folder in the place that the specification has for a project is a directory of it.
		target, usual := folder, path.Join("/workspaces", path.Base(p.place.name()))
		if strings.HasPrefix(path.Clean(folder), usual+"/") {
			target = usual
		}
		moved = p.mount("workspaceFolder", session.FolderMount{Folder: own.Folder, Name: own.Name, Path: p.place.Path,
			Target: target})
	}
	if moved {
		p.workspace = path.Clean(cmp.Or(folder, p.Mounts[0].Target))
	} else {
		p.Mounts = []session.FolderMount{own}
	}
	for _, one := range d.Mounts {
		text, ok := one.(string)
		if !ok {
			text = fieldsOf(one)
		}
		p.addMount(text)
	}
	if !moved && len(p.Mounts) == 1 {
		p.Mounts = nil
	}
}

// moves reports whether a workspaceMount has been taken over.
func (p *Plan) moves(text string) bool {
	const key = "workspaceMount"
	m, ok := p.parseMount(text)
	if !ok || m.kind != "bind" || !strings.HasPrefix(m.source, localFolder) {
		p.leave(key, "projectWorkspace")
		return false
	}
	return p.mountDirectory(key, m)
}

// addMount takes over a mount of a directory of the project, or of a folder of the owner's in place of a volume.
func (p *Plan) addMount(text string) {
	key := "mounts " + text
	m, ok := p.parseMount(text)
	switch {
	case ok && m.kind == "bind" && strings.HasPrefix(m.source, localFolder):
		p.mountDirectory(key, m)
		return
	case !ok || m.kind != "volume":
		p.leave(key, "projectMounts")
		return
	}
	name, known := p.filled(m.source)
	if !known || session.FolderNames.Check(name) != nil {
		p.leave(key, "projectMounts")
		return
	}
	at := slices.IndexFunc(p.place.Others, func(f session.Folder) bool {
		return f.Name == name && f.State == session.FolderReady
	})
	if at < 0 {
		p.leave(key, "projectVolume", session.Fill("name", name))
		return
	}
	p.mount(key, session.FolderMount{Folder: p.place.Others[at].ID, Name: name, Target: m.target,
		ReadOnly: m.readOnly})
}

// mountDirectory mounts a directory of the project.
func (p *Plan) mountDirectory(key string, m asked) bool {
	rest, known := p.filled(strings.TrimPrefix(m.source, localFolder))
	dir := path.Clean(strings.TrimLeft(rest, "/"))
	if !known || rest != "" && rest[0] != '/' || !fs.ValidPath(dir) {
		p.leave(key, "projectMounts")
		return false
	}
	switch info, err := fs.Stat(p.tree, dir); {
	case err != nil:
		p.leave(key, "sourceGone", session.Fill("path", session.Clip(dir)))
		return false
	case !info.IsDir():
		p.leave(key, "sourceFile", session.Fill("path", session.Clip(dir)))
		return false
	}
	inside := path.Join(p.place.Path, dir)
	if inside == "." {
		inside = ""
	}
	return p.mount(key, session.FolderMount{Folder: p.place.Folder.ID, Name: p.place.Folder.Name, Path: inside,
		Target: m.target, ReadOnly: m.readOnly})
}

// mount adds a mount. It is the one place where mounts of strangers are checked by the rules of sessions. None can be
// the home: programs of every session read their settings there.
func (p *Plan) mount(key string, m session.FolderMount) bool {
	target := path.Clean(m.Target)
	all := make([]session.Mount, 0, len(p.Mounts)+1)
	for _, one := range append(slices.Clone(p.Mounts), m) {
		all = append(all, session.Mount{Folder: one.Name, Path: one.Path, Target: one.Target, ReadOnly: one.ReadOnly})
	}
	wrong := session.CheckMounts(all)
	switch {
	case !path.IsAbs(m.Target):
		p.leave(key, "sourceAbsolute")
	case target == session.Home:
		p.leave(key, "targetSystem", session.Fill("target", target))
	case len(wrong) > 0 && len(wrong[0].Said) > 0:
		p.note(key, wrong[0].Said[0])
	case len(wrong) > 0:
		p.leave(key, "projectMounts")
	default:
		m.Target = target
		p.Mounts = append(p.Mounts, m)
		return true
	}
	return false
}

// fieldsOf writes a mount that is an object as docker run has it; empty if it is none.
func fieldsOf(value any) string {
	object, _ := value.(map[string]any)
	var fields []string
	for _, name := range []string{"type", "source", "src", "target", "destination", "dst", "readonly", "ro"} {
		if object[name] != nil {
			fields = append(fields, fmt.Sprintf("%s=%v", name, object[name]))
		}
	}
	return strings.Join(fields, ",")
}

// parseMount reads a mount as docker run --mount does, and fills in the variables of its target. It is not ok if
// something in it means nothing for a session.
func (p *Plan) parseMount(text string) (m asked, ok bool) {
	fields, err := csv.NewReader(strings.NewReader(text)).Read()
	if err != nil {
		return m, false
	}
	m.kind, ok = "volume", true
	for _, field := range fields {
		name, value, assigned := strings.Cut(strings.TrimSpace(field), "=")
		switch strings.ToLower(name) {
		case "type":
			m.kind = value
		case "source", "src":
			m.source = value
		case "target", "destination", "dst":
			m.target, ok = p.filled(value)
		case "readonly", "ro":
			m.readOnly = !assigned || value == "true" || value == "1"
		case "consistency":
		default:
			return m, false
		}
	}
	return m, ok
}
