//go:build linux

package docker_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"

	"slipway/backend/engine"
	"slipway/backend/engine/docker"
	"slipway/backend/engine/enginetest"
	"slipway/backend/guest/link"
	"slipway/backend/session"
)

// person and stranger are ordinary users of the machine: one runs the agent, and
// the other has files in a folder that is mounted.
const person, stranger = 1234, 4321

// secret is what only the stranger reads.
const secret = "the stranger's secret\n"

// entry is a file of an image.
type entry struct {
	tar.Header
	content string
}

func linkTo(at, target string) entry {
	return entry{Header: tar.Header{Typeflag: tar.TypeSymlink, Name: at, Linkname: target, Mode: 0o777}}
}

// importImage makes an image of a few files, without a program in it.
func importImage(t testing.TB, entries []entry, changes ...string) string {
	t.Helper()
	ref := fmt.Sprintf("slipway-test/hostile-%d-%d:1", os.Getpid(), time.Now().UnixNano())
	reply, err := api(t).ImageImport(t.Context(), image.ImportSource{Source: pack(t, entries), SourceName: "-"}, ref,
		image.ImportOptions{Changes: changes})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, reply); err != nil {
		t.Fatal(err)
	}
	if err := reply.Close(); err != nil {
		t.Fatal(err)
	}
	client := api(t)
	t.Cleanup(func() {
		client.ImageRemove(context.Background(), ref,
			image.RemoveOptions{Force: true})
	}) //nolint:errcheck // a leftover harms nobody
	return ref
}

// pack makes a tar of entries.
func pack(t testing.TB, entries []entry) *bytes.Buffer {
	t.Helper()
	var content bytes.Buffer
	w := tar.NewWriter(&content)
	for _, e := range entries {
		e.Size = int64(len(e.content))
		if err := w.WriteHeader(&e.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &content
}

// shared is a folder of the machine in which several people have files.
type shared struct {
	dir    string
	before map[string]string
}

func newShared(t testing.TB) *shared {
	t.Helper()
	s := &shared{dir: t.TempDir()}
	err := errors.Join(os.Chmod(s.dir, 0o755), os.Mkdir(filepath.Join(s.dir, "work"), 0o755))
	for name, uid := range map[string]int{".bashrc": stranger, "passwd": stranger, "group": 0, "work/notes": stranger} {
		file := filepath.Join(s.dir, name)
		err = errors.Join(err, os.WriteFile(file, []byte(secret), 0o600), os.Chown(file, uid, uid))
	}
	if err != nil {
		t.Fatal(err)
	}
	s.before = s.state(t)
	return s
}

// state says whose the folder's files are, who may do what, and what they hold.
// Docker makes the places for mounts of its own where a link of the image leads,
// and they stay empty.
func (s *shared) state(t testing.TB) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(s.dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var stat syscall.Stat_t
		if err := syscall.Lstat(path, &stat); err != nil {
			return err
		}
		if slices.Contains([]string{"guest", "hosts", "hostname", "resolv.conf"}, entry.Name()) && stat.Size == 0 {
			return nil
		}
		content := ""
		if entry.Type().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = string(data)
		}
		all[strings.TrimPrefix(path, s.dir)] = fmt.Sprintf("%d:%d %o %q", stat.Uid, stat.Gid, stat.Mode, content)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// An image is a stranger's work: no link of it leads the guest, which is root in
// the container, into a folder that is mounted there.
func TestHostileImagesLeadTheGuestNowhere(t *testing.T) {
	t.Parallel()
	const unsafe = session.CodeEngineUnsupported
	for _, c := range []struct {
		name   string
		image  []entry
		target string       // where the folder is mounted, as the person says it
		want   session.Code // of the failure, or of the guest's trouble
		said   string
	}{
		{"/home is a link", []entry{linkTo("home", "x")}, "/home/work/data", unsafe, "/home is a link"},
		{"/home/work is a link", []entry{linkTo("home/work", "../x")}, "/home/work/data", unsafe,
			"/home/work is a link"},
		{"/home/work is a link to the folder", []entry{linkTo("home/work", "/data")}, "/data", unsafe,
			"/home/work is a link"},
		{"the folder is led over the home", []entry{linkTo("a/b/c", "/home/work")}, "/a/b/c", unsafe,
			"/a/b/c is a link"},
		{"/.slipway is a link", []entry{linkTo(".slipway", "x")}, "/data", unsafe, "/.slipway is a link"},
		{"/.slipway/link is a link", []entry{linkTo(".slipway/link", "/x")}, "/data", unsafe,
			"/.slipway/link is a link"},
		{"the folder is led over the link", []entry{linkTo("a/b/c", "/.slipway/link")}, "/a/b/c", unsafe,
			"/a/b/c is a link"},
		{"the folder is led over the guest", []entry{linkTo("a/b/c/d", "/.slipway")}, "/a/b/c/d", unsafe,
			"/a/b/c/d is a link"},
		{"the folder is led over the guest from above", []entry{linkTo("a/b", "/.slipway")}, "/a/b/c/d", unsafe,
			"/a/b is a link"},
		{"the guest is led into the folder", []entry{linkTo(".slipway/guest", "/data/guest")}, "/data", unsafe,
			"/.slipway/guest is a link"},
		{"/dev is a link, which Docker replaces", []entry{linkTo("dev", "x")}, "/data", "", ""},
		{"/etc is a link, which Docker replaces", []entry{linkTo("etc", "/data")}, "/data", "", ""},
		{"the folder is led over /etc", []entry{linkTo("data", "/etc")}, "/data", unsafe, "/data is a link"},
		{"/etc/passwd is a link", []entry{linkTo("etc/passwd", "/data/passwd")}, "/data", "session_start_no-user",
			"/etc/passwd is a link"},
		{"/etc/skel is a link", []entry{linkTo("etc/skel", "/data")}, "/data", "", ""},
		{"/etc/skel is a link upwards", []entry{linkTo("etc/skel", "../data")}, "/data", "", ""},
		{"a start file is a link", []entry{linkTo("etc/skel/.bashrc", "/data/.bashrc")}, "/data", "", ""},
		{"the folder of python is a link", []entry{linkTo("var/lib/slipway/python", "/data")}, "/data",
			"session_start_uncooperative", ""},
		{"/var is a link", []entry{linkTo("var", "/data")}, "/data", "session_start_uncooperative", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder, e := newShared(t), open(t, docker.Config{Instance: instanceOf(t), Guest: real})
			spec := newContainer(instanceOf(t), "")
			spec.Image = importImage(t, c.image)
			spec.Guest.UID, spec.Guest.GID = person, person
			spec.Guest.Env = []session.EnvVar{{Name: "SLIPWAY_GPU_COOPERATIVE", Value: "1"}}
			spec.Mounts = []session.Mount{{Source: folder.dir, Target: c.target}}
			var files *link.Client
			id, err := e.Create(t.Context(), spec)
			forget(t, spec)
			if err == nil {
				if err := e.Start(t.Context(), id); err != nil {
					t.Fatal(err)
				}
				files, err = begun(t, e, id)
			}
			if code := session.CodeOf(err); code != c.want || err != nil && (!strings.Contains(err.Error(), c.said) ||
				session.AsError(err, "").Hint == "") {
				t.Errorf("got %v, want %q and %q", err, c.want, c.said)
			}
			if now := folder.state(t); !maps.Equal(now, folder.before) {
				t.Errorf("the folder was touched:\n was %v\n  is %v", folder.before, now)
			}
			if c.want == unsafe {
				return
			}
			listing, err := files.ListFiles(t.Context(), session.ListRequest{Path: session.Home})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range listing.Entries {
				t.Errorf("%s is in the new home", f.Name)
			}
		})
	}
}

// A home is the person's to change, so what is in it is looked at before each start.
func TestALinkInTheHomeLeadsNothingOverTheGuest(t *testing.T) {
	t.Parallel()
	for name, own := range map[string]string{"of the session": "", "that is mounted": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			e, data := open(t, docker.Config{Instance: instanceOf(t)}), t.TempDir()
			first := newContainer(instanceOf(t), "")
			first.Mounts = []session.Mount{{Source: data, Target: session.Home + "/data"}}
			if own != "" {
				first.Mounts = append(first.Mounts, session.Mount{Source: own, Target: session.Home})
			}
			id := started(t, e, first)
			planted := pack(t, []entry{linkTo("more", "/.slipway")})
			if err := api(t).CopyToContainer(t.Context(), id, session.Home, planted,
				container.CopyToContainerOptions{}); err != nil {
				t.Fatal(err)
			}
			second := first
			second.Name = strings.TrimSuffix(first.Name, "1") + "2"
			second.Mounts = append(slices.Clip(first.Mounts),
				session.Mount{Source: data, Target: session.Home + "/more"})
			_, err := e.Create(t.Context(), second)
			wantCode(t, err, session.CodeEngineUnsupported)
			if !strings.Contains(err.Error(), "/home/work/more is a link") {
				t.Error(err)
			}
			if _, err := e.Inspect(t.Context(), second.Name); session.CodeOf(err) != session.CodeNoContainer {
				t.Errorf("its container stays: %v", err)
			}
		})
	}
}

// The home of a session begins empty, whatever the image has in its place.
func TestALinkInTheImagesHomeIsNotInTheSessions(t *testing.T) {
	t.Parallel()
	e := open(t, docker.Config{Instance: instanceOf(t)})
	c := newContainer(instanceOf(t), "")
	c.Image = importImage(t, []entry{linkTo("home/work/data", "/.slipway")})
	c.Mounts = []session.Mount{{Source: t.TempDir(), Target: session.Home + "/data"}}
	id := started(t, e, c)
	stat, err := api(t).ContainerStatPath(t.Context(), id, session.Home+"/data")
	if err != nil || stat.Mode&fs.ModeSymlink != 0 || !stat.Mode.IsDir() {
		t.Errorf("%+v, %v", stat, err)
	}
}

// A container that cannot be made leaves no home behind, and one that others use stays.
func TestAContainerThatCannotBeMadeLeavesNoHome(t *testing.T) {
	t.Parallel()
	e := open(t, docker.Config{Instance: instanceOf(t)})
	c := newContainer(instanceOf(t), "")
	c.Image = importImage(t, []entry{linkTo("a", "/.slipway")})
	c.Mounts = []session.Mount{{Source: t.TempDir(), Target: "/a"}}
	_, err := e.Create(t.Context(), c)
	wantCode(t, err, session.CodeEngineUnsupported)
	wantNoVolume(t, c)
	other := c
	other.Name, other.Image, other.Mounts = strings.TrimSuffix(c.Name, "1")+"2", enginetest.ImageMinimal, nil
	home := "slipway-" + c.Labels[engine.LabelSession]
	started(t, e, other)
	_, err = e.Create(t.Context(), c)
	wantCode(t, err, session.CodeEngineUnsupported)
	wantVolume(t, home, true)
}

// begun waits until a guest is set up, or says why it is not. Trouble that it
// tells of is an error, and the session goes on.
func begun(t testing.TB, e *docker.Engine, id string) (*link.Client, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	conn, err := e.Guest(ctx, id)
	if err != nil {
		return nil, err
	}
	client, err := link.Connect(ctx, conn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() }) //nolint:errcheck // it may be broken by then
	var trouble error
	ready := errors.New("ready")
	err = client.Events(ctx, func(e link.Event) error {
		if e.Error != nil {
			trouble = session.NewError(e.Error.Code, e.Error.Message, e.Error.Hint)
		}
		if e.Ready {
			return ready
		}
		return nil
	})
	if !errors.Is(err, ready) {
		t.Fatalf("the guest did not become ready: %v", err)
	}
	return client, trouble
}
