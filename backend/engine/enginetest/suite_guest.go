package enginetest

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"slipway/backend/engine"
	"slipway/backend/guest/link"
	"slipway/backend/session"
)

var guestCases = []engineCase{
	{"the guest greets and becomes ready", func(s *suite) {
		_, client := s.attached(s.container(""))
		if hello := client.Hello(); hello.Version != link.Version {
			s.Errorf("the guest speaks version %d, want %d", hello.Version, link.Version)
		}
	}},
	{"a lost guest connection is made again", func(s *suite) {
		id, first := s.attached(s.container(""))
		first.Close() //nolint:errcheck // that it is lost is the point
		second := s.connect(id)
		s.ready(second)
		if s.DropGuest != nil {
			s.DropGuest(s.T, id)
			s.lost(second)
			s.ready(s.connect(id))
		}
		if !s.inspect(id).Running {
			s.Error("losing the connection ended the container")
		}
	}},
	{"asking again replaces the guest connection", func(s *suite) {
		id := s.start("")
		first := s.connect(id)
		second := s.connect(id)
		s.ready(second)
		s.lost(first)
	}},
	{"a guest connection breaks when the container ends", func(s *suite) {
		id, client := s.attached(s.container(""))
		s.ok(s.engine.Stop(s.ctx, id, 2*time.Second))
		s.lost(client)
	}},
	{"a guest connection breaks when the container is removed", func(s *suite) {
		id, client := s.attached(s.container(""))
		s.ok(s.engine.Remove(s.ctx, id))
		s.lost(client)
	}},
	// The case mounts a directory writable and read-only, and one inside of it. Links in it must not lead out of it.
	{"directories are mounted to be written, to be read, and in part", func(s *suite) {
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
		_, client := s.attached(c)
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
	}},
	{"an administrator changes the image's files, and has no mounts", func(s *suite) {
		for _, admin := range []bool{false, true} {
			c := s.container("")
			c.Guest.UID, c.Guest.GID = 1234, 1234
			if admin {
				c.Guest.UID, c.Guest.GID, c.Guest.Admin = 0, 0, true
			}
			_, client := s.attached(c)
			if err := writeIn(s, client, "/etc/made", "made"); (err == nil) != admin {
				s.Errorf("writing to the image with admin=%t: %v", admin, err)
			}
		}
		c := s.container("")
		c.Guest.UID, c.Guest.GID, c.Guest.Admin = 0, 0, true
		c.Mounts = []session.Mount{{Source: s.TempDir(), Target: "/data"}}
		if _, err := s.engine.Create(s.ctx, c); session.CodeOf(err) != session.CodeEngineInvalid {
			s.Errorf("a mount for an administrator: %v", err)
		}
	}},
	// It tries only what the guests dial in their own containers: not every engine has addresses.
	{"a server is reached in its own container alone", func(s *suite) {
		_, first, second := s.apart()
		server, other := s.connect(first), s.connect(second)
		s.ready(server)
		s.ready(other)
		ctx, cancel := context.WithTimeout(s.ctx, patience)
		defer cancel()
		if _, err := server.StartService(ctx, link.ServiceRequest{ID: "server", Argv: s.Serve, Port: ServePort,
			Timeout: patience}); err != nil {
			s.Fatalf("the server does not start: %v", err)
		}
		conn, err := server.Dial(ctx, ServePort)
		if err != nil {
			s.Fatalf("it is not reached: %v", err)
		}
		conn.Close() //nolint:errcheck // nothing to lose
		if conn, err := other.Dial(ctx, ServePort); err == nil {
			conn.Close() //nolint:errcheck // nothing to lose
			s.Error("it is reached from another container")
		}
	}},
}

func (s *suite) connect(id string) *link.Client {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	conn, err := s.engine.Guest(ctx, id)
	if err != nil {
		s.Fatalf("guest: %v", err)
	}
	client, err := link.Connect(ctx, conn)
	if err != nil {
		s.Fatalf("hello: %v", err)
	}
	s.Cleanup(func() { client.Close() }) //nolint:errcheck // it may be broken by then
	return client
}

func (s *suite) ready(client *link.Client) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	seen := false
	err := client.Events(ctx, func(event link.Event) error {
		if event.Ready {
			seen = true
			cancel()
		}
		return nil
	})
	if !seen {
		s.Fatalf("the guest did not become ready: %v", err)
	}
}

func (s *suite) lost(client *link.Client) {
	s.Helper()
	select {
	case <-client.Done():
	case <-time.After(patience):
		s.Fatal("the connection goes on")
	}
}

// outside is beside the mounted directories. No container may see it.
const outside = "what lies outside"

// attached starts a container and waits until its guest is ready.
func (s *suite) attached(c engine.Container) (id string, client *link.Client) {
	s.Helper()
	id = s.run(c)
	client = s.connect(id)
	s.ready(client)
	return id, client
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
		Finish: session.Finish{Size: int64(len(content)), Conflict: session.ConflictReplace}})
	return err
}
