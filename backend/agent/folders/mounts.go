package folders

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"slipway/backend/engine"
	"slipway/backend/folder"
	"slipway/backend/offlimits"
	"slipway/backend/pace"
	"slipway/backend/session"
	"slipway/backend/store"
)

// Find returns the folders that a launch would mount: those that its spec names, and the owner's whose names begin with
// a dot. The field errors are about missing ones. In the returned spec, folders have their names, even if the request
// used ids.
func (f *Folders) Find(owner string, spec session.Spec) (session.Spec, []session.FolderMount, []session.FieldError,
	error) {
	all, err := f.config.Records.Folders()
	if err != nil {
		return spec, nil, nil, err
	}
	own := slices.DeleteFunc(all,
		func(f session.Folder) bool { return f.Owner != owner || f.State != session.FolderReady })
	var users map[session.FolderID][]session.FolderUser
	if len(own) > 0 {
		if users, err = f.folderUsers(); err != nil {
			return spec, nil, nil, err
		}
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
			wrong = append(wrong, session.Fault(field+".folder", session.KindNotFound,
				session.Say("folderGone", session.Fill("name", quoted(m.Folder)))))
			continue
		}
		if m.Folder = own[at].Name; m.Path != "" || own[at].Linked() {
			if _, err := f.disk.Find(own[at], m.Path); err != nil {
				e := session.AsError(err, session.CodeFileInvalid)
				wrong = append(wrong, session.FieldError{Field: field + ".path", Kind: session.KindInvalid,
					Message: e.Message, Hint: e.Hint})
				continue
			}
		}
		mount := session.FolderMount{Folder: own[at].ID, Name: own[at].Name, Path: m.Path,
			Target: session.MountTarget(*m), ReadOnly: m.ReadOnly || own[at].Permission == session.FolderReadOnly}
		if unfit := unfitHome(mount, own[at], users[own[at].ID]); unfit.Say != "" {
			wrong = append(wrong, session.Fault(field+".target", session.KindConflict, unfit))
			continue
		}
		found = append(found, mount)
	}
	if !f.getsNone(spec) {
		found = append(found, automatic(own, spec, found, users)...)
	}
	return spec, found, wrong, nil
}

func quoted(name string) string {
	if session.FolderNames.Check(name) == nil {
		return name
	}
	return fmt.Sprintf("%q", name)
}

// automatic are the folders that are mounted unasked: those that begin with a dot, unless the spec uses their place.
func automatic(own []session.Folder, spec session.Spec, found []session.FolderMount,
	users map[session.FolderID][]session.FolderUser) []session.FolderMount {
	var mounts []session.FolderMount
	for _, f := range own {
		mount := session.FolderMount{Folder: f.ID, Name: f.Name,
			Target:   session.MountTarget(session.Mount{Folder: f.Name}),
			ReadOnly: f.Permission == session.FolderReadOnly, Auto: true}
		named := slices.ContainsFunc(found, func(m session.FolderMount) bool { return m.Folder == f.ID })
		taken := slices.ContainsFunc(spec.Mounts, func(m session.Mount) bool {
			target := session.MountTarget(m)
			return target != session.Home && session.Overlap(target, mount.Target)
		})
		if f.Auto() && !named && !taken && unfitHome(mount, f, users[f.ID]).Say == "" {
			mounts = append(mounts, mount)
		}
	}
	slices.SortFunc(mounts, func(a, b session.FolderMount) int { return strings.Compare(a.Name, b.Name) })
	return mounts
}

// getsNone reports whether a session gets no folders unasked: a bare one, and where the engine can mount none.
func (f *Folders) getsNone(spec session.Spec) bool {
	return spec.Bare() || slices.Contains(f.config.Health.State().Info.Lacks, session.FeatureMounts)
}

// WithCache adds the mount of the owner's cache to those that [Folders.Find] found, and makes that folder if there is
// none yet. A launch does not fail for want of it.
func (f *Folders) WithCache(ctx context.Context, owner string, spec session.Spec,
	found []session.FolderMount) []session.FolderMount {
	taken := f.getsNone(spec) || slices.ContainsFunc(spec.Mounts, func(m session.Mount) bool {
		target := session.MountTarget(m)
		return m.Folder == session.CacheFolder || target != session.Home && session.Overlap(target, session.CachePath)
	}) || slices.ContainsFunc(found, func(m session.FolderMount) bool { return m.Name == session.CacheFolder })
	if taken {
		return found
	}
	made, err := f.CreateFolder(ctx, session.FolderRequest{Owner: owner, Name: session.CacheFolder})
	if err == nil {
		return append(found, session.FolderMount{Folder: made.ID, Name: made.Name, Target: session.CachePath,
			Auto: true})
	}
	if session.CodeOf(err) == session.CodeFolderExists { // made by another launch meanwhile
		if _, again, _, err := f.Find(owner, spec); err == nil {
			return again
		}
	}
	f.config.Log.Warn("a session has no cache folder", "owner", owner, "error", err)
	return found
}

// StillThere fails if a folder that a session mounts no longer exists.
func StillThere(tx *store.Tx, s session.Session) error {
	for _, m := range s.Folders {
		f, err := tx.Folder(m.Folder)
		if err == nil && f.State == session.FolderReady && f.Owner == s.Owner {
			continue
		}
		return &session.Error{Code: session.CodeInvalid,
			Message: fmt.Sprintf("The folder %s was moved to the trash in the meantime.", m.Name),
			Hint:    "Restore it, or choose another.",
			Fields: []session.FieldError{session.Fault("mounts", session.KindNotFound,
				session.Say("folderGone", session.Fill("name", m.Name)))}}
	}
	return nil
}

// Mounted is what a container mounts, and how the engine recognizes each directory, as its path may change.
type Mounted struct {
	List   []session.Mount
	Hidden []string // absolute paths in the container
	Pins   []engine.Pin
}

// add adds a mount. Where containers run elsewhere, the device number of its file system is another one there.
func (m *Mounted) add(found offlimits.Found, target string, readOnly, elsewhere bool) {
	m.List = append(m.List, session.Mount{Source: found.Source, Target: target, ReadOnly: readOnly})
	for _, hidden := range found.Hidden {
		m.Hidden = append(m.Hidden, path.Join(target, filepath.ToSlash(hidden)))
	}
	if runtime.GOOS == "linux" {
		if elsewhere {
			found.Device = 0
		}
		m.Pins = append(m.Pins, engine.Pin{Target: target, Device: found.Device, Inode: found.Inode})
	}
}

func (f *Folders) Mounts(s session.Session) (Mounted, error) {
	var all Mounted
	elsewhere := f.config.Health.State().Info.Elsewhere
	places, stranger := f.config.OffLimits(), s.Owner != f.config.Owner
	for _, m := range s.Spec.Mounts {
		if m.Folder != "" {
			continue
		}
		found, err := places.Look(m.Source, stranger)
		if err != nil && session.CodeOf(err) == "" {
			err = session.WrapError(err, session.CodeEngineInvalid,
				"The directory "+m.Source+" does not exist on this machine.",
				"Create it or choose another one.")
		}
		if err != nil {
			return Mounted{}, err
		}
		all.add(found, m.Target, m.ReadOnly, elsewhere)
	}
	users, err := f.folderUsers()
	if err != nil {
		return Mounted{}, err
	}
	for _, m := range s.Folders {
		one, err := f.config.Records.Folder(m.Folder)
		if err != nil {
			return Mounted{}, err
		}
		others := slices.DeleteFunc(slices.Clone(users[m.Folder]),
			func(u session.FolderUser) bool { return u.Session == s.ID })
		if unfit := unfitHome(m, one, others); unfit.Say != "" {
			return Mounted{}, session.NewError(session.CodeFolderConflict, unfit.English(), "")
		}
		if m.Target == session.Home {
			if err := f.prepareHome(one, m, s); err != nil {
				return Mounted{}, err
			}
		}
		source, err := f.disk.Find(one, m.Path)
		if err != nil {
			return Mounted{}, err
		}
		found := offlimits.Found{Source: source.Path, Device: source.Device, Inode: source.Inode}
		if one.Linked() {
			if found, err = places.Look(source.Path, stranger); err != nil {
				return Mounted{}, err
			}
			if found.Path != source.Path || runtime.GOOS == "linux" &&
				(found.Device != source.Device || found.Inode != source.Inode) {
				return Mounted{}, folder.Changed(one)
			}
		}
		all.add(found, m.Target, m.ReadOnly, elsewhere)
	}
	return all, nil
}

// Used notes that a session may have changed what it mounts, and whether it has ended.
func (f *Folders) Used(s session.Session) {
	for _, m := range s.Folders {
		if !m.ReadOnly {
			f.touched(m.Folder)
		}
		if s.Status.Terminal() {
			f.mu.Lock()
			f.ended[m.Folder] = true
			f.mu.Unlock()
			pace.Signal(f.due)
		}
	}
}

// CheckSource checks that a directory exists and that its owner may mount it.
func (f *Folders) CheckSource(owner, source string) *session.FieldError {
	info, err := f.config.Machine.Stat(source)
	e := &session.FieldError{Kind: session.KindInvalid}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		*e = session.Fault("", e.Kind, session.Say("sourceGone", session.Fill("path", source)))
	case err != nil:
		*e = session.Fault("", e.Kind, session.Say("sourceUnreadable", session.Fill("path", source)))
	case !info.IsDir():
		*e = session.Fault("", e.Kind, session.Say("sourceFile", session.Fill("path", source)))
	default:
		_, err := f.config.OffLimits().Look(source, owner != f.config.Owner)
		if err == nil {
			return nil
		}
		told := session.AsError(err, session.CodeFileInvalid)
		e.Kind, e.Message, e.Hint = session.KindForbidden, told.Message, told.Hint
	}
	return e
}

// Overlap returns the message that path lies in or around another person's directory, linked or opened to them, else
// none. Whoever may write to the outer one could replace the inner one by a link and so have another directory mounted.
// Several people may have the same directory, and person, whose agent it is, may have one around others'.
func Overlap(path, owner, person string, linked []session.Folder, opened map[string][]string) string {
	if path == "" {
		return ""
	}
	message := func(other, whose string) string {
		return fmt.Sprintf("The folders %s and %s overlap, and the second belongs to %s. Remove one of them.", path,
			other, whose)
	}
	around := func(outer, inner, whose string) bool { return liesIn(inner, outer) && whose != person }
	for _, f := range linked {
		if f.Linked() && f.Owner != owner && (around(path, f.Path, owner) || around(f.Path, path, f.Owner)) {
			return message(f.Path, f.Owner)
		}
	}
	for whose, dirs := range opened {
		for _, open := range dirs {
			if around(path, open, owner) || liesIn(path, open) {
				return message(open, whose)
			}
		}
	}
	return ""
}

func liesIn(path, folder string) bool { return strings.HasPrefix(path, folder+"/") }

const (
	maxEntries = 5000 // directories in one listing
	maxPath    = 4096 // bytes of the longest path on Linux
)

func (f *Folders) ListDirectories(ctx context.Context, asked string) (session.DirectoryListing, error) {
	machine := f.config.Machine
	path, absolute := machine.Clean(cmp.Or(asked, machine.HomeDir()))
	if len(asked) > maxPath || !absolute || strings.ContainsRune(asked, 0) {
		return session.DirectoryListing{}, session.NewError(session.CodeFileInvalid,
			"What was asked for is not an absolute path.", "Begin with /.")
	}
	entries, err := machine.ReadDir(path)
	if err != nil {
		return session.DirectoryListing{}, f.directoryError(path, err)
	}
	listing := session.DirectoryListing{Path: path, Entries: []session.DirectoryEntry{}}
	if parent := machine.Join(path, ".."); parent != path {
		listing.Parent = parent
	}
	for _, entry := range entries {
		if err := ctx.Err(); err != nil {
			return session.DirectoryListing{}, err // of a slow file system
		}
		if len(listing.Entries) == maxEntries {
			break
		}
		if at := machine.Join(path, entry.Name()); f.isDirectory(at, entry) {
			listing.Entries = append(listing.Entries,
				session.DirectoryEntry{Name: entry.Name(), Writable: machine.Writable(at)})
		}
	}
	slices.SortFunc(listing.Entries, func(a, b session.DirectoryEntry) int {
		return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
	})
	return listing, nil
}

func (f *Folders) isDirectory(at string, entry fs.DirEntry) bool {
	if entry.Type()&fs.ModeSymlink == 0 {
		return entry.IsDir()
	}
	info, err := f.config.Machine.Stat(at)
	return err == nil && info.IsDir()
}

func (f *Folders) directoryError(path string, err error) error {
	e := session.WrapError(err, session.CodeFileConflict, fmt.Sprintf("%s cannot be read.", path),
		"Choose another directory.")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Code, e.Message = session.CodeFileNotFound, fmt.Sprintf("There is no directory %s.", path)
	case errors.Is(err, fs.ErrPermission):
		e.Code, e.Message, e.Hint = session.CodeFileForbidden, fmt.Sprintf("You may not read %s.", path),
			"Choose a directory of your own, or ask its owner."
	default:
		if info, statErr := f.config.Machine.Stat(path); statErr == nil && !info.IsDir() {
			e.Code, e.Message = session.CodeFileNotFound, fmt.Sprintf("%s is not a directory.", path)
		}
	}
	return e
}
