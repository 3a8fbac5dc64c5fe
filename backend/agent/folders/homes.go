package folders

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"slipway/backend/agent/records"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

// AddHome gives a session whose home is kept a folder as its home, unless it has one. The folder exists from the start,
// so nothing is copied at the end and a crash loses nothing.
func (f *Folders) AddHome(d *records.Draft) error {
	if !d.Spec.KeepsHome() || d.HomeFolder() != nil {
		return nil
	}
	return addHome(d, &session.FolderHome{Session: d.ID, Name: d.Name, Keep: *d.Spec.KeepHome})
}

// addHome adds the record of a folder that is the home of a session. home is nil if it is kept for good.
func addHome(d *records.Draft, home *session.FolderHome) error {
	all, err := d.ListFolders()
	if err != nil {
		return err
	}
	if err := roomFor(all); err != nil {
		return err
	}
	one := session.Folder{ID: session.FolderID(session.NewID()), Name: d.Name, Owner: d.Owner,
		Permission: session.FolderReadWrite, Mode: session.FolderGeneral, State: session.FolderReady, CreatedAt: d.Now}
	for number := 2; nameFree(all, one) != nil; number++ {
		ending := "-" + strconv.Itoa(number)
		one.Name = d.Name[:min(len(d.Name), session.FolderNames.Max-len(ending))] + ending
	}
	one.Home = home
	d.Folders = append(slices.Clip(d.Folders),
		session.FolderMount{Folder: one.ID, Name: one.Name, Target: session.Home})
	return d.PutFolder(one)
}

// KeepHome has the home of a session that is parked kept for good. One that is not a folder becomes one, which
// [Folders.TakeHome] fills.
func KeepHome(d *records.Draft) error {
	mounted := d.HomeFolder()
	if mounted == nil {
		return addHome(d, nil)
	}
	one, err := d.Folder(mounted.Folder)
	if err != nil || one.Home == nil {
		return err
	}
	one.Home = nil
	return d.PutFolder(one)
}

// TakeHome copies the home of a session's container, which has ended, into the folder that is its home from now on. It
// can be repeated. tell is called with what is copied.
func (f *Folders) TakeHome(ctx context.Context, s session.Session, tell func(gpu.Bytes)) error {
	one, err := f.config.Records.Folder(s.HomeFolder().Folder)
	if err != nil {
		return err
	}
	home, err := f.config.Engine.Home(ctx, s.Container())
	if err != nil {
		return err
	}
	defer home.Close()
	return f.disk.Unpack(ctx, one, home, tell)
}

// prepareHome makes the directory of a new home, and the mount points in it as the owner's. A container engine would
// make them as root and follow links.
func (f *Folders) prepareHome(one session.Folder, home session.FolderMount, s session.Session) error {
	if one.Home != nil && one.Home.Session == s.ID && f.disk.Missing(one) {
		if err := f.disk.Make(one); err != nil {
			return err
		}
	}
	var targets []string
	for _, m := range s.Spec.Mounts {
		targets = append(targets, m.Target)
	}
	for _, m := range s.Folders {
		targets = append(targets, m.Target)
	}
	for _, target := range targets {
		if below, ok := strings.CutPrefix(target, session.Home+"/"); ok {
			if err := f.disk.MakeDirectory(one, path.Join(home.Path, below)); err != nil {
				return err
			}
		}
	}
	return nil
}

// unfitHome says why a folder cannot be mounted as it is asked for, if it is or would be the home of a session. A home
// belongs to one session: another one could replace the mount points in it by links before the first one starts.
func unfitHome(m session.FolderMount, one session.Folder, users []session.FolderUser) session.Phrase {
	home := m.Target == session.Home
	switch {
	case home && one.Linked():
		return session.Say("targetHomeLinked", session.Fill("name", one.Name))
	case home && m.ReadOnly:
		return session.Say("targetHomeReadOnly")
	}
	for _, user := range users {
		if home || user.Home {
			return session.Say("targetHomeTaken", session.Fill("session", user.Name), session.Fill("name", one.Name))
		}
	}
	return session.Phrase{}
}

// settleHomes follows the kept homes. One that no session uses is deleted if it is empty, or if it was kept for its
// time since the last session ended. It returns when the next one is to be deleted, or zero.
func (f *Folders) settleHomes(ctx context.Context) (next time.Time, err error) {
	f.mu.Lock()
	ended := f.ended
	f.ended = map[session.FolderID]bool{}
	f.mu.Unlock()
	all, err := f.config.Records.Folders()
	if err != nil {
		return next, err
	}
	users, err := f.folderUsers()
	if err != nil {
		return next, err
	}
	for _, one := range all {
		if one.Home == nil || one.State != session.FolderReady {
			continue
		}
		until := one.Home.Until
		if used := len(users[one.ID]) > 0; used != (until == nil) || ended[one.ID] ||
			!used && f.config.Clock.Until(*until) <= 0 {
			if until, err = f.settleHome(ctx, one, ended[one.ID]); err != nil {
				return next, err
			}
		}
		if until != nil && (next.IsZero() || until.Before(next)) {
			next = *until
		}
	}
	return next, nil
}

// settleHome stores what has become of a kept home, and returns when it is to be deleted. ended: a session that used it
// has ended.
func (f *Folders) settleHome(ctx context.Context, one session.Folder, ended bool) (until *time.Time, err error) {
	empty, err := f.disk.Empty(ctx, one)
	if err != nil {
		return nil, err
	}
	err = f.config.Records.Update(func(tx *store.Tx) error {
		one, err := tx.Folder(one.ID)
		if err != nil || one.Home == nil || one.State != session.FolderReady {
			return cmp.Or(err, records.ErrUnchanged)
		}
		users, err := tx.FolderUsers(one.ID)
		if err != nil {
			return err
		}
		home, now := *one.Home, f.config.Clock.Now().UTC()
		fresh := ended || home.Until == nil
		switch {
		case len(users) > 0:
			home.Until = nil
		case empty || !fresh && !now.Before(*home.Until):
			one.State = session.FolderDeleting
		case fresh:
			home.Until = new(now.Add(time.Duration(home.Keep)))
		}
		one.Home, until = &home, home.Until
		return tx.PutFolder(one)
	})
	return until, err
}
