package agent

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"slipway/backend/engine"
	"slipway/backend/session"
	"slipway/backend/store"
)

// mountable are the folders that a person may mount.
func (a *Agent) mountable(owner string) ([]session.Folder, error) {
	all, err := a.store.Folders()
	return slices.DeleteFunc(all, func(f session.Folder) bool { return f.Owner != owner || f.State != session.FolderReady }), err
}

// findFolders says which folders a launch of somebody's would mount: those that
// its spec names, and those of theirs whose names begin with a dot. Fields say
// which of them are not there. In the spec that is returned folders are named
// by their names, whatever the request called them.
func (a *Agent) findFolders(owner string, spec session.Spec) (session.Spec, []session.FolderMount, []session.FieldError, error) {
	own, err := a.mountable(owner)
	if err != nil {
		return spec, nil, nil, err
	}
	spec.Mounts = slices.Clone(spec.Mounts)
	var wrong []session.FieldError
	var found []session.FolderMount
	for i := range spec.Mounts {
		m := &spec.Mounts[i]
		if m.Folder == "" {
			continue
		}
		at := slices.IndexFunc(own, func(f session.Folder) bool { return f.Name == m.Folder })
		if at < 0 {
			at = slices.IndexFunc(own, func(f session.Folder) bool { return string(f.ID) == m.Folder })
		}
		field := fmt.Sprintf("mounts[%d]", i)
		if at < 0 {
			wrong = append(wrong, session.FieldError{Field: field + ".folder", Code: session.CodeNoFolder, Message: fmt.Sprintf("There is no folder %s on this machine.", quoted(m.Folder)), Hint: "Create it, or choose another; slipway folder ls lists them."})
			continue
		}
		if m.Folder = own[at].Name; m.Path != "" || own[at].Linked() {
			if _, err := a.folders.disk.Find(own[at], m.Path); err != nil {
				e := session.AsError(err, session.CodeInvalidSource)
				wrong = append(wrong, session.FieldError{Field: field + ".path", Code: session.CodeInvalidSource, Message: e.Message, Hint: e.Hint})
				continue
			}
		}
		found = append(found, session.FolderMount{Folder: own[at].ID, Name: own[at].Name, Path: m.Path, Target: session.MountTarget(*m), ReadOnly: m.ReadOnly || own[at].Permission == session.FolderReadOnly})
	}
	return spec, append(found, automatic(own, spec, found)...), wrong, nil
}

func quoted(name string) string {
	if session.ValidateFolderName(name) == nil {
		return name
	}
	return fmt.Sprintf("%q", name)
}

// automatic are the folders that are mounted by their names, unasked: all that
// begin with a dot, except where the spec mounts them or something in their place.
func automatic(own []session.Folder, spec session.Spec, found []session.FolderMount) []session.FolderMount {
	var mounts []session.FolderMount
	for _, f := range own {
		mount := session.FolderMount{Folder: f.ID, Name: f.Name, Target: session.MountTarget(session.Mount{Folder: f.Name}), ReadOnly: f.Permission == session.FolderReadOnly, Auto: true}
		named := slices.ContainsFunc(found, func(m session.FolderMount) bool { return m.Folder == f.ID })
		taken := slices.ContainsFunc(spec.Mounts, func(m session.Mount) bool { return session.Overlap(session.MountTarget(m), mount.Target) })
		if f.Auto() && !named && !taken {
			mounts = append(mounts, mount)
		}
	}
	slices.SortFunc(mounts, func(a, b session.FolderMount) int { return strings.Compare(a.Name, b.Name) })
	return mounts
}

// stillThere fails where a folder that a session mounts is none any more.
func stillThere(tx *store.Tx, s session.Session) error {
	for _, m := range s.Folders {
		f, err := tx.Folder(m.Folder)
		if err == nil && f.State == session.FolderReady && f.Owner == s.Owner {
			continue
		}
		return &session.Error{Code: session.CodeInvalid, Message: fmt.Sprintf("The folder %s was put into the trash meanwhile.", m.Name), Hint: "Restore it, or choose another.",
			Fields: []session.FieldError{{Field: "mounts", Code: session.CodeNoFolder, Message: fmt.Sprintf("There is no folder %s on this machine.", m.Name), Hint: "Create it, or choose another."}}}
	}
	return nil
}

// mounts returns what is mounted into the containers of a session, and how each
// part of a folder is known again: its path may lead elsewhere by the time that
// the engine follows it.
func (a *Agent) mounts(s session.Session) ([]session.Mount, []engine.Pin, error) {
	var list []session.Mount
	var pins []engine.Pin
	for _, m := range s.Spec.Mounts {
		if m.Folder == "" {
			list = append(list, m)
		}
	}
	for _, m := range s.Folders {
		f, err := a.store.Folder(m.Folder)
		if err != nil {
			return nil, nil, err
		}
		source, err := a.folders.disk.Find(f, m.Path)
		if err != nil {
			return nil, nil, err
		}
		list = append(list, session.Mount{Source: source.Path, Target: m.Target, ReadOnly: m.ReadOnly})
		if m.Path != "" && runtime.GOOS == "linux" {
			pins = append(pins, engine.Pin{Target: m.Target, Device: source.Device, Inode: source.Inode})
		}
	}
	return list, pins, nil
}

// changedFolders notes that a session may have changed what it has mounted.
func (a *Agent) changedFolders(s session.Session) {
	for _, m := range s.Folders {
		if !m.ReadOnly {
			a.folders.touched(m.Folder)
		}
	}
}
