package agent

import (
	"fmt"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"slipway/backend/engine"
	"slipway/backend/folder"
	"slipway/backend/offlimits"
	"slipway/backend/session"
	"slipway/backend/store"
)

// mountable are the folders that a person may mount.
func (a *Agent) mountable(owner string) ([]session.Folder, error) {
	all, err := a.store.Folders()
	return slices.DeleteFunc(all, func(f session.Folder) bool {
		return f.Owner != owner ||
			f.State != session.FolderReady
	}), err
}

// findFolders says which folders a launch of somebody's would mount: those that
// its spec names, and those of theirs whose names begin with a dot. Fields say
// which of them are not there. In the spec that is returned folders are named
// by their names, whatever the request called them.
func (a *Agent) findFolders(owner string, spec session.Spec) (session.Spec, []session.FolderMount, []session.FieldError,
	error) {
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
			wrong = append(wrong, session.FieldError{Field: field + ".folder", Code: session.CodeNoFolder,
				Message: fmt.Sprintf("There is no folder %s on this machine.", quoted(m.Folder)),
				Hint:    "Create it, or choose another; slipway folder ls lists them."})
			continue
		}
		if m.Folder = own[at].Name; m.Path != "" || own[at].Linked() {
			if _, err := a.folders.disk.Find(own[at], m.Path); err != nil {
				e := session.AsError(err, session.CodeInvalidSource)
				wrong = append(wrong, session.FieldError{Field: field + ".path", Code: session.CodeInvalidSource,
					Message: e.Message, Hint: e.Hint})
				continue
			}
		}
		found = append(found, session.FolderMount{Folder: own[at].ID, Name: own[at].Name, Path: m.Path,
			Target: session.MountTarget(*m), ReadOnly: m.ReadOnly || own[at].Permission == session.FolderReadOnly})
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
		mount := session.FolderMount{Folder: f.ID, Name: f.Name,
			Target:   session.MountTarget(session.Mount{Folder: f.Name}),
			ReadOnly: f.Permission == session.FolderReadOnly, Auto: true}
		named := slices.ContainsFunc(found, func(m session.FolderMount) bool { return m.Folder == f.ID })
		taken := slices.ContainsFunc(spec.Mounts,
			func(m session.Mount) bool { return session.Overlap(session.MountTarget(m), mount.Target) })
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
		return &session.Error{Code: session.CodeInvalid,
			Message: fmt.Sprintf("The folder %s was put into the trash meanwhile.", m.Name),
			Hint:    "Restore it, or choose another.",
			Fields: []session.FieldError{{Field: "mounts", Code: session.CodeNoFolder,
				Message: fmt.Sprintf("There is no folder %s on this machine.", m.Name),
				Hint:    "Create it, or choose another."}}}
	}
	return nil
}

// offLimits are the places that no session may see.
func (a *Agent) offLimits() offlimits.Places {
	info := a.health.State().Info
	places := a.config.OffLimits
	places.Own = append(slices.Clip(places.Own), a.config.Dir)
	places.Engine, places.Socket = info.DataRoot, info.Socket
	return places
}

// mounted is what a container has mounted, and how each directory is known again:
// its path may lead elsewhere by the time that the engine follows it.
type mounted struct {
	list   []session.Mount
	hidden []string // absolute paths in the container
	pins   []engine.Pin
}

// add mounts a directory that was judged.
func (m *mounted) add(found offlimits.Found, target string, readOnly bool) {
	m.list = append(m.list, session.Mount{Source: found.Path, Target: target, ReadOnly: readOnly})
	for _, hidden := range found.Hidden {
		m.hidden = append(m.hidden, path.Join(target, filepath.ToSlash(hidden)))
	}
	if runtime.GOOS == "linux" {
		m.pins = append(m.pins, engine.Pin{Target: target, Device: found.Device, Inode: found.Inode})
	}
}

// mounts returns what is mounted into the containers of a session.
func (a *Agent) mounts(s session.Session) (mounted, error) {
	var all mounted
	places, stranger := a.offLimits(), s.Owner != a.config.Owner
	for _, m := range s.Spec.Mounts {
		if m.Folder != "" {
			continue
		}
		found, err := places.Look(m.Source, stranger)
		if err != nil && session.CodeOf(err) == "" {
			err = &session.Error{Code: "engine_create_mount-missing", Message: "The directory " + m.Source +
				" does not exist on this machine.", Hint: "Create it or choose another one.", Err: err}
		}
		if err != nil {
			return mounted{}, err
		}
		all.add(found, m.Target, m.ReadOnly)
	}
	for _, m := range s.Folders {
		f, err := a.store.Folder(m.Folder)
		if err != nil {
			return mounted{}, err
		}
		source, err := a.folders.disk.Find(f, m.Path)
		if err != nil {
			return mounted{}, err
		}
		found := offlimits.Found{Path: source.Path, Device: source.Device, Inode: source.Inode}
		if f.Linked() {
			if found, err = places.Look(source.Path, stranger); err != nil {
				return mounted{}, err
			}
			if found.Path != source.Path || runtime.GOOS == "linux" &&
				(found.Device != source.Device || found.Inode != source.Inode) {
				return mounted{}, folder.Changed(f)
			}
		}
		all.add(found, m.Target, m.ReadOnly)
	}
	return all, nil
}

// changedFolders notes that a session may have changed what it has mounted.
func (a *Agent) changedFolders(s session.Session) {
	for _, m := range s.Folders {
		if !m.ReadOnly {
			a.folders.touched(m.Folder)
		}
	}
}
