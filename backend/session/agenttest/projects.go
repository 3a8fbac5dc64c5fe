package agenttest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"slipway/backend/session"
)

func caseProject(s *suite) {
	f := s.folder(session.FolderRequest{Name: "project-1"})
	inside := session.Place{Folder: f.ID}
	for _, dir := range []session.FilePath{"paper", "proxied"} {
		s.do(func(ctx context.Context) error { return s.agent.MakeDirectory(ctx, inside, dir, true) })
	}
	req := session.ProjectRequest{Path: "paper", Environment: s.Image}
	read := func() session.Project { return must(s, with2(s.agent.ReadProject, f.ID, req)) }
	if p := read(); p.Kind != session.ProjectPlain || p.Image != s.Image || p.Dockerfile != "" {
		s.Errorf("a project without a file is %+v", p)
	}
	hush := rand.Text()
	build := with2(s.agent.BuildProject, f.ID, session.ProjectBuild{ProjectRequest: req,
		Secrets: []session.EnvVar{{Name: "TOKEN", Value: hush}}})
	refused(s, "a project with nothing to build", session.CodeImageInvalid, build)
	s.store(inside, "paper/Dockerfile", "FROM "+s.Image+"\nCOPY said /said\n"+
		"RUN --mount=type=secret,id=TOKEN,required=true test -s /run/secrets/TOKEN\n")
	s.store(inside, "paper/said", rand.Text())
	found := read()
	if found.Kind != session.ProjectDockerfile || found.File != "Dockerfile" || found.Present ||
		!strings.HasPrefix(found.Dockerfile, "FROM ") || !slices.Equal(found.Secrets, []string{"TOKEN"}) {
		s.Errorf("the project is %+v", found)
	}
	refused(s, "a connection for no build", session.CodeOperationNotFound,
		with2(s.agent.LendConnection, f.ID, session.ProxyToken(rand.Text())))
	s.store(inside, "proxied/Dockerfile", "FROM "+s.Image+"\nARG HTTP_PROXY\n")
	refused(s, "a build that stores its proxy", session.CodeImageInvalid, with2(s.agent.BuildProject, f.ID,
		session.ProjectBuild{ProjectRequest: session.ProjectRequest{Path: "proxied"},
			Proxy: session.ProxyToken(rand.Text())}))
	w := s.work(must(s, build))
	if w.State != session.WorkDone || w.Ref != found.Image || w.Kind != session.WorkBuild {
		s.Errorf("the build ended as %+v, %+v", w, w.Error)
	}
	if record, err := json.Marshal(w); err != nil || strings.Contains(string(record), hush) {
		s.Errorf("the value of a secret is in %s, %v", record, err)
	}
	if !read().Present {
		s.Error("the image is not there")
	}
	if w := s.work(must(s, build)); w.State != session.WorkDone || w.Build != nil {
		s.Errorf("what was built already was built as %+v", w)
	}
	mountProject(s, f, inside)
	refused(s, "a clone of the machine's own files", session.CodeFileInvalid,
		func(ctx context.Context) (io.ReadWriteCloser, error) {
			return s.agent.CloneFolder(ctx, session.CloneRequest{Name: "cloned", Address: "file:///etc"})
		})
	refused(s, "a directory that is not there", session.CodeFileNotFound,
		with2(s.agent.ReadProject, f.ID, session.ProjectRequest{Path: "absent"}))
	refused(s, "a folder that is not there", session.CodeFolderNotFound,
		with2(s.agent.ReadProject, "nothing12345", req))
	err := s.void(func(ctx context.Context) error { return s.agent.RemoveImage(ctx, found.Image) })
	if err != nil && (!s.Mortal || session.CodeOf(err) != session.CodeNoImage) {
		s.Error(err)
	}
}

// mountProject launches a session with the mounts of a project that asks for a place, a directory and a volume.
func mountProject(s *suite, f session.Folder, inside session.Place) {
	s.Helper()
	volume := s.folder(session.FolderRequest{Name: "volume-1"})
	s.do(func(ctx context.Context) error { return s.agent.MakeDirectory(ctx, inside, "box/data", true) })
	s.store(inside, "box/data/said", "deep")
	s.store(inside, "box/.devcontainer.json", `{"image": "`+s.Image+`", "workspaceFolder": "/workspaces/box",
		"mounts": ["type=bind,source=${localWorkspaceFolder}/data,target=/srv/data,readonly",
			"source=`+volume.Name+`,target=/srv/volume"]}`)
	found := must(s, with2(s.agent.ReadProject, f.ID, session.ProjectRequest{Path: "box"}))
	want := []session.FolderMount{
		{Folder: f.ID, Name: f.Name, Path: "box", Target: "/workspaces/box"},
		{Folder: f.ID, Name: f.Name, Path: "box/data", Target: "/srv/data", ReadOnly: true},
		{Folder: volume.ID, Name: volume.Name, Target: "/srv/volume"},
	}
	if !slices.Equal(found.Mounts, want) || len(found.Left) > 0 {
		s.Fatalf("mounted are %+v, left %+v", found.Mounts, found.Left)
	}
	var mounts []session.Mount
	for _, m := range found.Mounts {
		mounts = append(mounts, session.Mount{Folder: string(m.Folder), Path: m.Path, Target: m.Target,
			ReadOnly: m.ReadOnly})
	}
	launched := s.launch(session.Spec{Mounts: mounts})
	if len(launched.Folders) < len(want) || !slices.Equal(launched.Folders[:len(want)], want) {
		s.Errorf("the session has %+v", launched.Folders)
	}
	s.terminate(launched.ID, true)
	s.awaitEnd(launched.ID)
}
