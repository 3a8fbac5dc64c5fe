package agenttest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"

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
	sum := must(s, with2(s.agent.ChecksumFile, place, up.Path))
	if sum != req.SHA256 {
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
