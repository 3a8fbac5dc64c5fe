package agenttest

import (
	"context"
	"slices"

	"slipway/backend/session"
)

// folder creates a folder.
func (s *suite) folder(req session.FolderRequest) session.Folder {
	s.Helper()
	f, err := s.agent.CreateFolder(s.ctx, req)
	for err != nil && s.Mortal && (lost(err) || session.CodeOf(err).Detail() == session.DetailExists) {
		if found := s.folderNamed(req.Name); found.ID != "" {
			return found // the answer was lost
		}
		s.pause()
		f, err = s.agent.CreateFolder(s.ctx, req)
	}
	s.ok(err)
	return f
}

// folderNamed is the folder of a name; zero if there is none.
func (s *suite) folderNamed(name string) session.Folder {
	s.Helper()
	list := must(s, with(s.agent.ListFolders, session.FolderFilter{}))
	if i := slices.IndexFunc(list, func(f session.Folder) bool { return f.Name == name }); i >= 0 {
		return list[i]
	}
	return session.Folder{}
}

func (s *suite) store(place session.Place, path session.FilePath, text string) {
	s.Helper()
	up := session.Upload{Path: path, Key: "folder"}
	s.upload(place, up, []byte(text))
	if _, err := s.finish(place, session.FinishRequest{Upload: up, Finish: session.Finish{Size: int64(len(text)),
		Conflict: session.ConflictReplace}}); err != nil {
		s.Fatal(err)
	}
}

func caseFolders(s *suite) {
	f := s.folder(session.FolderRequest{Name: "data-1"})
	if f.Name != "data-1" || f.Owner == "" || f.Agent == "" || f.State != session.FolderReady ||
		f.Permission != session.FolderReadWrite {
		s.Fatalf("made %+v", f)
	}
	refused(s, "a name with a slash", session.CodeFileInvalid,
		with(s.agent.CreateFolder, session.FolderRequest{Name: "a/b"}))
	refused(s, "none", session.CodeFolderNotFound, with(s.agent.GetFolder, "nothing12345"))
	inside := session.Place{Folder: f.ID}
	s.do(func(ctx context.Context) error { return s.agent.MakeDirectory(ctx, inside, "sub", true) })
	s.store(inside, "sub/file", "content")
	want(s, "two places", s.stat(session.Place{Folder: f.ID, Session: "abcdefghijkl"}, "sub"), session.CodeFileInvalid)
	s.mountFolder(f, inside)
	s.endFolder(f)
}

func (s *suite) mountFolder(f session.Folder, inside session.Place) {
	s.Helper()
	auto := s.folder(session.FolderRequest{Name: ".auto-1", Permission: session.FolderReadOnly})
	launched := s.launch(session.Spec{Mounts: []session.Mount{{Folder: f.Name, Path: "sub", Target: "in"},
		{Folder: string(f.ID), Target: "all", ReadOnly: true}}})
	if len(launched.Folders) != 3 || launched.Folders[0].Folder != f.ID ||
		launched.Folders[0].Target != "/home/work/in" || !launched.Folders[1].ReadOnly ||
		launched.Folders[2].Folder != auto.ID || !launched.Folders[2].Auto || !launched.Folders[2].ReadOnly {
		s.Errorf("mounted are %+v", launched.Folders)
	}
	s.awaitStatus(launched.ID, session.Running)
	place := session.Place{Session: launched.ID}
	if got := s.content(place, session.ReadRequest{Path: "in/file"}); string(got) != "content" {
		s.Errorf("inside it is %q", got)
	}
	s.store(place, "in/made", "inside")
	if got := s.content(inside, session.ReadRequest{Path: "sub/made"}); string(got) != "inside" {
		s.Errorf("outside it is %q", got)
	}
	for _, path := range []session.FilePath{"all/no", ".auto-1/no"} {
		want(s, "what is only to be read",
			s.void(func(ctx context.Context) error { return s.agent.MakeDirectory(ctx, place, path, false) }),
			session.CodeFileForbidden)
	}
	refused(s, "a folder in use", session.CodeFolderConflict, with(s.agent.TrashFolder, f.ID))
	name := "data-2"
	renamed := must(s, with2(s.agent.UpdateFolder, f.ID, session.FolderChange{Name: &name}))
	if renamed.Name != name || len(renamed.UsedBy) != 1 || renamed.UsedBy[0].Session != launched.ID {
		s.Errorf("renamed to %+v", renamed)
	}
	s.terminate(launched.ID, true)
	s.awaitEnd(launched.ID)
	must(s, with(s.agent.TrashFolder, auto.ID))
	for _, mount := range []session.Mount{{Folder: "none"}, {Folder: name, Path: "nowhere"}, {Folder: auto.Name}} {
		p := must(s, with2(s.agent.Preview, "", s.spec(session.Spec{Mounts: []session.Mount{mount}})))
		if len(p.Errors) != 1 {
			s.Errorf("%+v would be mounted: %+v", mount, p.Errors)
		}
	}
}

func (s *suite) endFolder(f session.Folder) {
	s.Helper()
	trash := func() session.Folder { return must(s, with(s.agent.TrashFolder, f.ID)) }
	if !s.Mortal {
		want(s, "what is not in the trash", s.agent.DeleteFolder(s.ctx, f.ID), session.CodeFolderConflict)
	}
	if got := trash(); got.State != session.FolderTrashed || got.TrashedAt == nil {
		s.Errorf("in the trash is %+v", got)
	}
	err := s.void(func(ctx context.Context) error {
		return s.agent.MakeDirectory(ctx, session.Place{Folder: f.ID}, "more", false)
	})
	want(s, "a change in the trash", err, session.CodeFileForbidden)
	other := s.folder(session.FolderRequest{Name: "data-2"})
	refused(s, "a name that is taken", session.CodeFolderExists, with(s.agent.RestoreFolder, f.ID))
	must(s, with(s.agent.TrashFolder, other.ID))
	if got := must(s, with(s.agent.RestoreFolder, f.ID)); got.State != session.FolderReady || got.TrashedAt != nil {
		s.Errorf("restored is %+v", got)
	}
	if got := s.content(session.Place{Folder: f.ID}, session.ReadRequest{Path: "sub/made"}); string(got) != "inside" {
		s.Errorf("restored holds %q", got)
	}
	trash()
	if got := must(s, with(s.agent.StopDeleting, f.ID)); got.State != session.FolderTrashed || got.Removed != nil {
		s.Errorf("what nobody deletes is stopped as %+v", got)
	}
	if err := s.void(func(ctx context.Context) error { return s.agent.DeleteFolder(ctx, f.ID) }); err != nil &&
		(!s.Mortal || session.CodeOf(err).Detail() != session.DetailNotFound) {
		s.Fatal(err)
	}
	for err = nil; err == nil && s.ctx.Err() == nil; s.pause() {
		_, err = try(s, with(s.agent.GetFolder, f.ID))
	}
	want(s, "what was deleted", err, session.CodeFolderNotFound)
	refused(s, "what was deleted cannot be stopped", session.CodeFolderNotFound, with(s.agent.StopDeleting, f.ID))
}
