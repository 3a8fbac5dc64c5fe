package enginetest

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"slipway/backend/engine"
	"slipway/backend/guest/link"
	"slipway/backend/session"
)

// outside is beside the mounted directories. No container may see it.
const outside = "what lies outside"

// caseMounts mounts a directory writable and read-only, and one inside of it. Links in it must not lead out of it.
func caseMounts(s *suite) {
	dir := s.TempDir()
	folder, beside := filepath.Join(dir, "folder"), filepath.Join(dir, "beside")
	err := errors.Join(os.Chmod(dir, 0o755), os.MkdirAll(filepath.Join(folder, "part", "deep"), 0o755),
		os.Mkdir(beside, 0o755), os.Chmod(folder, 0o777), //nolint:gosec // whoever the container's user is
		os.WriteFile(filepath.Join(folder, "part", "deep", "file"), []byte("inside"), 0o644),
		os.WriteFile(filepath.Join(beside, "secret"), []byte(outside), 0o644),
		os.Symlink(beside, filepath.Join(folder, "absolute")),
		os.Symlink("../beside", filepath.Join(folder, "relative")),
		os.Symlink("part/deep", filepath.Join(folder, "within")))
	s.ok(err)
	c := s.container("")
	c.Mounts = []session.Mount{
		{Source: folder, Target: "/home/work/data"}, {Source: folder, Target: "/home/work/fixed", ReadOnly: true},
		{Source: filepath.Join(folder, "part"), Target: "/home/work/part"},
	}
	client := s.mounted(c)
	for path, want := range map[session.FilePath]string{"data/part/deep/file": "inside",
		"fixed/part/deep/file": "inside", "part/deep/file": "inside", "data/within/file": "inside"} {
		if got, err := readIn(s, client, path); got != want || err != nil {
			s.Errorf("%s holds %q, %v", path, got, err)
		}
	}
	for _, path := range []session.FilePath{"data/absolute/secret", "data/relative/secret", "fixed/absolute/secret",
		"data/../../../.." + session.FilePath(beside) + "/secret", "part/../beside/secret"} {
		if got, err := readIn(s, client, path); err == nil || strings.Contains(got, outside) {
			s.Errorf("%s shows %q, %v", path, got, err)
		}
	}
	if err := writeIn(s, client, "data/new", "from inside"); err != nil {
		s.Errorf("writing to a mount: %v", err)
	}
	if got, err := os.ReadFile(filepath.Join(folder, "new")); string(got) != "from inside" || err != nil {
		s.Errorf("what was written holds %q, %v", got, err)
	}
	if err := writeIn(s, client, "fixed/new", "changed"); session.CodeOf(err) != session.CodeFileForbidden {
		s.Errorf("writing to what is only to be read: %v", err)
	}
	if err := writeIn(s, client, "data/relative/secret", "changed"); err == nil {
		s.Error("a file was written through a link that leads out")
	}
	if got, err := os.ReadFile(filepath.Join(beside, "secret")); string(got) != outside || err != nil {
		s.Errorf("what lies outside holds %q, %v", got, err)
	}
}

func (s *suite) mounted(c engine.Container) *link.Client {
	s.Helper()
	id := s.run(c)
	client := s.connect(id)
	s.ready(client)
	return client
}

func readIn(s *suite, client *link.Client, path session.FilePath) (string, error) {
	from, err := client.ReadFile(s.ctx, session.ReadRequest{Path: path})
	if err != nil {
		return "", err
	}
	defer from.Close() //nolint:errcheck // it is only read
	data, err := io.ReadAll(from)
	return string(data), err
}

func writeIn(s *suite, client *link.Client, path session.FilePath, content string) error {
	up := session.Upload{Path: path, Key: "k"}
	if _, err := client.WriteUpload(s.ctx, up, strings.NewReader(content)); err != nil {
		return err
	}
	_, err := client.FinishUpload(s.ctx, session.FinishRequest{Upload: up,
		Finish: session.Finish{Size: int64(len(content)),
			Conflict: session.ConflictReplace}})
	return err
}
