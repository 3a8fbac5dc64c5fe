package agenttest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"slipway/backend/session"
)

// noise is content that is not repeated by accident.
func noise(size int, seed uint64) []byte {
	data := make([]byte, size)
	source := rand.NewChaCha8([32]byte{byte(seed)})
	_, _ = source.Read(data) // it cannot fail
	return data
}

func sumOf(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }

// upload sends the rest of an upload, until it is complete.
func (s *suite) upload(place session.Place, up session.Upload, data []byte) {
	s.Helper()
	for s.ctx.Err() == nil {
		up.Offset = must(s, with2(s.agent.UploadOffset, place, up))
		n, err := s.agent.WriteUpload(s.ctx, place, up, bytes.NewReader(data[up.Offset:]))
		if err == nil {
			if n != int64(len(data)) {
				s.Fatalf("%d of %d bytes came", n, len(data))
			}
			return
		}
		if !s.Mortal || !lost(err) {
			s.Fatal(err)
		}
		s.pause()
	}
	s.Fatal("the upload did not end")
}

// content reads a part of a file, from the beginning again if it is cut.
func (s *suite) content(place session.Place, req session.ReadRequest) []byte {
	s.Helper()
	return must(s, func(ctx context.Context) ([]byte, error) {
		from, err := s.agent.ReadFile(ctx, place, req)
		if err != nil {
			return nil, err
		}
		defer from.Close()
		return io.ReadAll(from)
	})
}

func (s *suite) finish(place session.Place, req session.FinishRequest) (session.FileInfo, error) {
	return try(s, with2(s.agent.FinishUpload, place, req))
}

func caseUpload(s *suite) {
	place := session.Place{Session: s.running()}
	data := noise(3_000_000, 1)
	up := session.Upload{Path: "up/loaded.bin", Key: "key1"}
	s.do(func(ctx context.Context) error { return s.agent.MakeDirectory(ctx, place, "up", true) })
	s.upload(place, up, data[:1_000_001])
	offset := must(s, with2(s.agent.UploadOffset, place, up))
	if offset != 1_000_001 {
		s.Errorf("it stands at %d", offset)
	}
	beyond := up
	beyond.Offset = offset + 1
	refused(s, "a gap", session.CodeFileConflict, func(ctx context.Context) (int64, error) {
		return s.agent.WriteUpload(ctx, place, beyond, bytes.NewReader(nil))
	})
	req := session.FinishRequest{Upload: up,
		Finish: session.Finish{Size: int64(len(data)), SHA256: sumOf(data), Mode: 0o640}}
	refused(s, "half of it", session.CodeFileConflict, with2(s.agent.FinishUpload, place, req))
	s.upload(place, up, data)
	wrong := req
	wrong.SHA256 = sumOf(nil)
	refused(s, "another checksum", session.CodeFileChanged, with2(s.agent.FinishUpload, place, wrong))
	info, err := s.finish(place, req)
	if err != nil || info.Name != "loaded.bin" || info.Kind != session.KindFile || info.Size != req.Size ||
		info.Mode != 0o640 {
		s.Fatalf("finished as %+v, %v", info, err)
	}
	if again, err := s.finish(place, req); err != nil || again.Version != info.Version {
		s.Errorf("finished again as %+v, %v", again, err)
	}
	if sum := must(s, with2(s.agent.ChecksumFile, place, up.Path)); sum != req.SHA256 {
		s.Error("the checksum is another")
	}
	listing := must(s, with2(s.agent.ListFiles, place, session.ListRequest{Path: "/home/work/up"}))
	if len(listing.Entries) != 1 || listing.Total != 1 || listing.Path != "/home/work/up" ||
		listing.Entries[0].Name != "loaded.bin" {
		s.Errorf("beside it lies %+v", listing)
	}
	s.conflicts(place)
}

// conflicts uploads onto existing files.
func (s *suite) conflicts(place session.Place) {
	old, fresh := []byte("old"), []byte("fresh")
	for i, conflict := range []session.Conflict{"", session.ConflictFail, session.ConflictReplace,
		session.ConflictKeep} {
		up := session.Upload{Path: session.FilePath(fmt.Sprintf("up/there-%d.txt", i)), Key: "key2"}
		s.upload(place, up, old)
		if _, err := s.finish(place, session.FinishRequest{Upload: up,
			Finish: session.Finish{Size: int64(len(old))}}); err != nil {
			s.Fatal(err)
		}
		s.upload(place, up, fresh)
		info, err := s.finish(place, session.FinishRequest{Upload: up,
			Finish: session.Finish{Size: int64(len(fresh)), SHA256: sumOf(fresh),
				Conflict: conflict}})
		switch {
		case conflict == session.ConflictReplace:
			if got := s.content(place, session.ReadRequest{Path: up.Path}); err != nil || !bytes.Equal(got, fresh) {
				s.Errorf("replaced: %q, %v", got, err)
			}
		case conflict == session.ConflictKeep:
			want := session.FilePath(fmt.Sprintf("there-%d (2).txt", i))
			if err != nil || info.Name != want {
				s.Errorf("kept beside the other as %q, %v", info.Name, err)
			}
		default:
			want(s, "a name that is taken", err, session.CodeFileExists)
			s.do(func(ctx context.Context) error { return s.agent.DropUpload(ctx, place, up) })
			if got := s.content(place, session.ReadRequest{Path: up.Path}); !bytes.Equal(got, old) {
				s.Errorf("what was there is %q", got)
			}
		}
	}
}

func caseRead(s *suite) {
	place := session.Place{Session: s.running()}
	data := noise(2_000_000, 2)
	up := session.Upload{Path: "/tmp/read me", Key: "key3"}
	s.upload(place, up, data)
	info, err := s.finish(place, session.FinishRequest{Upload: up, Finish: session.Finish{Size: int64(len(data))}})
	s.ok(err)
	for _, part := range [][2]int64{{0, 0}, {1_234_567, 0}, {10, 5}, {1_000_000, 999_999}, {1_999_999, 100},
		{2_000_000, 0}, {3_000_000, 7}} {
		end := int64(len(data))
		if part[1] > 0 {
			end = min(end, part[0]+part[1])
		}
		want := data[min(part[0], int64(len(data))):end:end]
		if part[0] >= end {
			want = nil
		}
		if got := s.content(place, session.ReadRequest{Path: up.Path, Offset: part[0], Length: part[1],
			Version: info.Version}); !bytes.Equal(got, want) {
			s.Errorf("%d bytes at %d came as %d others", part[1], part[0], len(got))
		}
	}
	read := func(req session.ReadRequest) error {
		_, err := try(s, func(ctx context.Context) (struct{}, error) {
			from, err := s.agent.ReadFile(ctx, place, req)
			if err == nil {
				err = from.Close()
			}
			return struct{}{}, err
		})
		return err
	}
	want(s, "another version", read(session.ReadRequest{Path: up.Path, Version: "1"}), session.CodeFileChanged)
	want(s, "nothing", read(session.ReadRequest{Path: "/tmp/nothing"}), session.CodeFileNotFound)
	want(s, "a directory", read(session.ReadRequest{Path: "/tmp"}), session.CodeFileConflict)
	want(s, "no path", read(session.ReadRequest{Path: "a\x00b"}), session.CodeFileInvalid)
	want(s, "a kernel that is not there", s.stat(session.Place{Session: place.Session, Kernel: "sub9"}, "/tmp"),
		session.DetailNotFound)
}

func (s *suite) stat(place session.Place, path session.FilePath) error {
	return s.void(failure(with2(s.agent.StatFile, place, path)))
}

func caseFiles(s *suite) {
	place := session.Place{Session: s.running()}
	mkdir := func(p session.FilePath, parents bool) error {
		return s.void(func(ctx context.Context) error { return s.agent.MakeDirectory(ctx, place, p, parents) })
	}
	move := func(from, to session.FilePath) error {
		return s.void(func(ctx context.Context) error { return s.agent.MoveFile(ctx, place, from, to) })
	}
	remove := func(p session.FilePath, all bool) error {
		return s.void(func(ctx context.Context) error { return s.agent.RemoveFile(ctx, place, p, all) })
	}
	odd := session.FilePath("tree/line\nbreak \xff\xfe ü")
	for _, p := range []session.FilePath{"tree/a/b/c", "tree/B", odd} {
		if err := mkdir(p, true); err != nil {
			s.Fatal(err)
		}
	}
	want(s, "no parents", mkdir("none/of/these", false), session.CodeFileNotFound)
	listing := must(s, with2(s.agent.ListFiles, place, session.ListRequest{Path: "tree", Limit: 2}))
	if len(listing.Entries) != 2 || !listing.More || listing.Total != 3 || listing.Entries[0].Name != "a" ||
		listing.Entries[1].Name != "B" {
		s.Errorf("listed %+v", listing)
	}
	listing = must(s, with2(s.agent.ListFiles, place, session.ListRequest{Path: "tree", After: "B"}))
	if len(listing.Entries) != 1 || listing.More || "tree/"+listing.Entries[0].Name != odd ||
		listing.Entries[0].Kind != session.KindDirectory {
		s.Errorf("after it %+v", listing)
	}
	if !s.Mortal { // where a repetition may not be known, it is refused
		want(s, "onto another", move("tree/a", "tree/B"), session.CodeFileExists)
		want(s, "what is not empty", remove("tree/a", false), session.CodeFileConflict)
		want(s, "a second time", mkdir("tree/B", false), session.CodeFileExists)
		if err := move(odd, "tree/plain"); err != nil {
			s.Error(err)
		}
		want(s, "what was moved", remove(odd, false), session.CodeFileNotFound)
		if err := remove("tree", true); err != nil {
			s.Error(err)
		}
		want(s, "what is gone", remove("tree", true), session.CodeFileNotFound)
	}
	want(s, "the home", remove("/home/work", true), session.CodeFileConflict)
	refused(s, "nowhere", session.CodeFileNotFound,
		with2(s.agent.ListFiles, place, session.ListRequest{Path: "nowhere"}))
}

func caseAttributes(s *suite) {
	f := s.folder(session.FolderRequest{Name: "attributes-" + suffix()})
	at := time.Unix(1_700_000_000, 123_456_789).UTC()
	for where, place := range map[string]session.Place{"a session": {Session: s.running()},
		"a folder": {Folder: f.ID}} {
		link := func(path, target session.FilePath) error {
			return s.void(func(ctx context.Context) error { return s.agent.MakeLink(ctx, place, path, target) })
		}
		s.do(func(ctx context.Context) error { return s.agent.MakeDirectory(ctx, place, "kept/in", true) })
		s.store(place, "kept/file", "content")
		targets := map[session.FilePath]session.FilePath{"near": "file", "in": "", "file": "", "far": "/etc/../nowhere",
			"up": "../../../..", "\xff": "\xfe\n"}
		for name, target := range targets {
			if target == "" {
				want(s, "onto what is there", link("kept/"+name, "file"), session.CodeFileExists)
				continue
			}
			for range 2 {
				s.ok(link("kept/"+name, target))
			}
			want(s, "onto another link", link("kept/"+name, "other"), session.CodeFileExists)
		}
		set := session.Attributes{Mode: 0o550, Modified: at}
		for _, path := range []session.FilePath{"kept/file", "kept/in"} {
			s.do(func(ctx context.Context) error { return s.agent.SetAttributes(ctx, place, path, set) })
		}
		for _, info := range must(s, with2(s.agent.ListFiles, place, session.ListRequest{Path: "kept"})).Entries {
			target, known := targets[info.Name]
			if !known || info.Target != target || info.Link != (target != "") ||
				!info.Link && (info.Mode != set.Mode || !info.Modified.Equal(at)) {
				s.Errorf("in %s: %+v, want the target %q", where, info, target)
			}
		}
		near := must(s, with2(s.agent.StatFile, place, "kept/near"))
		if !near.Link || near.Target != "file" || near.Kind != session.KindFile || near.Mode != set.Mode {
			s.Errorf("in %s a link is %+v", where, near)
		}
		err := s.void(func(ctx context.Context) error { return s.agent.SetAttributes(ctx, place, "/", set) })
		want(s, "attributes of the root", err, session.CodeFileConflict)
	}
	must(s, with(s.agent.TrashFolder, f.ID))
	s.do(func(ctx context.Context) error { return s.agent.DeleteFolder(ctx, f.ID) })
}

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
	if len(launched.Folders) != 4 || launched.Folders[0].Folder != f.ID ||
		launched.Folders[0].Target != "/home/work/in" || !launched.Folders[1].ReadOnly ||
		launched.Folders[2].Folder != auto.ID || !launched.Folders[2].Auto || !launched.Folders[2].ReadOnly ||
		launched.Folders[3].Name != session.CacheFolder || !launched.Folders[3].Auto {
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
		p := s.preview(s.spec(session.Spec{Mounts: []session.Mount{mount}}), 1)
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

func caseKeptHome(s *suite) {
	keep := session.Lifetime{KeepHome: new(session.Duration(24 * time.Hour))}
	spec := session.Spec{Name: "home-" + suffix(), Lifetime: keep}
	first := s.launch(spec)
	first = s.awaitStatus(first.ID, session.Running)
	home := first.HomeFolder()
	if home == nil || home.Name != spec.Name {
		s.Fatalf("mounted are %+v", first.Folders)
	}
	s.store(session.Place{Session: first.ID}, "notes", "kept")
	refused(s, "a home in use", session.CodeFolderConflict, with(s.agent.TrashFolder, home.Folder))
	s.terminate(first.ID, false)
	s.awaitEnd(first.ID)
	if got := s.content(session.Place{Folder: home.Folder}, session.ReadRequest{Path: "notes"}); string(got) != "kept" {
		s.Errorf("it holds %q", got)
	}
	f := must(s, with(s.agent.GetFolder, home.Folder))
	if f.Home == nil || f.Home.Session != first.ID || f.Home.Keep != *keep.KeepHome {
		s.Errorf("it is %+v, %+v", f, f.Home)
	}

	inner := s.folder(session.FolderRequest{Name: "inner-" + suffix()})
	again := s.launch(session.Spec{Lifetime: keep, Mounts: []session.Mount{
		{Folder: spec.Name, Target: session.Home}, {Folder: inner.Name}}})
	again = s.awaitStatus(again.ID, session.Running)
	place := session.Place{Session: again.ID}
	asked := slices.DeleteFunc(again.Folders, func(m session.FolderMount) bool { return m.Auto })
	if got := s.content(place, session.ReadRequest{Path: "notes"}); string(got) != "kept" || len(asked) != 2 {
		s.Errorf("the next session has %+v and in it %q", again.Folders, got)
	}
	s.store(place, session.FilePath(inner.Name+"/made"), "inside")
	s.terminate(again.ID, true)
	s.awaitEnd(again.ID)
	if got := s.content(session.Place{Folder: inner.ID}, session.ReadRequest{Path: "made"}); string(got) != "inside" {
		s.Errorf("the folder in the home holds %q", got)
	}
	f = must(s, with2(s.agent.UpdateFolder, home.Folder, session.FolderChange{Keep: true}))
	if f.Home != nil {
		s.Errorf("kept for good it is %+v", f.Home)
	}
	for _, id := range []session.FolderID{home.Folder, inner.ID} {
		must(s, with(s.agent.TrashFolder, id))
		s.do(func(ctx context.Context) error { return s.agent.DeleteFolder(ctx, id) })
	}
}
