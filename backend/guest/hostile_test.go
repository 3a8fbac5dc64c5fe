//go:build linux

package guest_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"slipway/backend/guest/link"
	"slipway/backend/session"
)

// stranger is the user of the machine whose files lie in a mounted folder.
const stranger = 4321

// secret is what the stranger's file holds, which only the stranger reads.
const secret = "the stranger's secret\n"

// folder is a folder of the machine with files of others, as a session mounts it.
type folder struct {
	dir    string
	before map[string]string
}

func newFolder(t testing.TB) *folder {
	t.Helper()
	f := &folder{dir: t.TempDir()}
	must(t, os.Chmod(f.dir, 0o755))
	for name, uid := range map[string]int{"passwd": stranger, "group": stranger, ".bashrc": stranger, "roots": 0,
		"work/inner": stranger} {
		file := filepath.Join(f.dir, name)
		must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must(t, os.WriteFile(file, []byte(secret), 0o600))
		must(t, os.Chown(file, uid, uid))
	}
	f.before = f.state(t)
	return f
}

// state is everything that may be said of the folder's files.
func (f *folder) state(t testing.TB) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, filepath.WalkDir(f.dir, func(path string, _ os.DirEntry, err error) error {
		var stat syscall.Stat_t
		if err == nil {
			err = syscall.Lstat(path, &stat)
		}
		all[strings.TrimPrefix(path, f.dir)] = fmt.Sprint(stat.Uid, stat.Gid, stat.Mode, stat.Size, stat.Mtim,
			stat.Ctim)
		return err
	}))
	return all
}

// untouched fails if anything in the folder has changed.
func (f *folder) untouched(t testing.TB) {
	t.Helper()
	if after := f.state(t); !maps.Equal(after, f.before) {
		t.Errorf("the mounted folder was touched:\n was %v\n  is %v", f.before, after)
	}
}

// image puts symbolic links into a container, each of whose targets begins where
// the link lies.
func (b *box) image(links map[string]string) {
	b.t.Helper()
	for at, target := range links {
		at = filepath.Join(b.root, at)
		must(b.t, os.MkdirAll(filepath.Dir(at), 0o755))
		must(b.t, os.RemoveAll(at))
		must(b.t, os.Symlink(target, at))
	}
}

// Images that have a link where the guest works as root, so that it would work in
// a mounted folder, are not run.
func TestImagesThatLeadTheGuestAwayAreRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		links map[string]string
		mount string // where the folder lands in the container's root
		said  string
	}{
		{"the parent of the home", map[string]string{"home": "x"}, "x/work/data", "/home is a link"},
		{"the home", map[string]string{"home/work": "../x"}, "x/data", "/home/work is a link"},
		{"the home, straight into the folder", map[string]string{"home/work": "../data"}, "data",
			"/home/work is a link"},
		{"a folder over the home", nil, "home/work", "/home/work is not what Slipway has mounted there"},
		{"the folder of devices", map[string]string{"dev": "data"}, "data", "/dev is a link"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, b := newFolder(t), newBox(t, false)
			must(t, os.MkdirAll(filepath.Join(b.root, c.mount), 0o755))
			b.image(c.links)
			if c.mount == "home/work" { // a link has led it there, above the session's own
				b.binds = append(b.binds, t.TempDir()+":/home/work")
			}
			b.binds = append(b.binds, f.dir+":/"+c.mount)
			b.start()
			go func() { // a guest that runs all the same ends with what it must not do
				if conn, err := b.listener.Accept(); err == nil {
					client, err := link.Connect(t.Context(), conn)
					if err == nil {
						_ = client.Events(t.Context(), func(e link.Event) error {
							if e.Ready {
								_ = b.cmd.Process.Kill()
							}
							return nil
						})
					}
				}
			}()
			code := b.exit()
			f.untouched(t)
			if code != 123 || !strings.Contains(b.output.String(), "slipway-guest: "+c.said) {
				t.Errorf("the guest ended with %d and said %q, want 123 and %q", code, b.output.String(), c.said)
			}
		})
	}
}

// The guest's own folder cannot be looked for in another place.
func TestImagesThatMoveTheGuestsFolderAreRefused(t *testing.T) {
	for _, name := range []string{".slipway", ".slipway/link", ".slipway/spool", ".slipway/config.json"} {
		t.Run(name, func(t *testing.T) {
			f, b := newFolder(t), newBox(t, false)
			b.binds = append(b.binds, f.dir+":/data")
			b.moved = name
			b.start()
			go func() {
				if conn, err := b.listener.Accept(); err == nil {
					_ = conn.Close()
					_ = b.cmd.Process.Kill()
				}
			}()
			code := b.exit()
			f.untouched(t)
			if said := "/" + name + " is a link"; code != 123 || !strings.Contains(b.output.String(), said) {
				t.Errorf("the guest ended with %d and said %q, want 123 and %q", code, b.output.String(), said)
			}
		})
	}
}

// What a session can do without is left out where the image has a link.
func TestLinksOfAnImageAreNotFollowed(t *testing.T) {
	for _, c := range []struct {
		name  string
		links map[string]string
		mount string
		want  session.Code // of the trouble; empty: none
	}{
		{"/etc", map[string]string{"etc": "data"}, "data", "session_start_no-user"},
		{"/etc/passwd", map[string]string{"etc/passwd": "../data/passwd"}, "data", "session_start_no-user"},
		{"/etc/group", map[string]string{"etc/group": "../data/group"}, "data", "session_start_no-user"},
		{"/etc/shadow", map[string]string{"etc/shadow": "../data/passwd"}, "data", "session_start_no-user"},
		{"a folder over /etc", nil, "etc", "session_start_no-user"},
		{"/etc/skel", map[string]string{"etc/skel": "../data"}, "data", ""},
		{"a folder over /etc/skel", nil, "etc/skel", ""},
		{"a start file", map[string]string{"etc/skel/.bashrc": "../../data/.bashrc"}, "data", ""},
		{"the folder of python", map[string]string{"var/lib/slipway/python": "../../../data"}, "data",
			"session_start_uncooperative"},
		{"its parent", map[string]string{"var/lib": "../data"}, "data", "session_start_uncooperative"},
		{"the directory of packages", map[string]string{"opt/slipway": "../data"}, "data", "session_start_no-home"},
		{"a folder over it", nil, "opt/slipway", "session_start_no-home"},
		{"a folder in it", nil, "opt/slipway/bin", ""},
		{"a link in it", map[string]string{"opt/slipway/lib": "../../data"}, "data", ""},
		{"the profiles of shells", map[string]string{"etc/profile.d": "../data"}, "data", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, b := newFolder(t), newBox(t, false)
			b.image(c.links)
			b.binds = append(b.binds, f.dir+":/"+c.mount)
			b.settings.Env = append(b.settings.Env, session.EnvVar{Name: "SLIPWAY_GPU_COOPERATIVE", Value: "1"})
			client := b.start().connect()
			told := settled(t, client)
			if code := codeOf(told); code != c.want {
				t.Errorf("the trouble is %+v, want %q", told, c.want)
			}
			f.untouched(t)
			for _, copied := range []string{"home/work/.bashrc", "home/work/passwd", "etc/passwd", "etc/group",
				"etc/shadow"} {
				if data, err := os.ReadFile(filepath.Join(b.root, copied)); err == nil && strings.Contains(string(data),
					secret) && c.links[copied] == "" && c.mount != "etc" && c.links["etc"] == "" {
					t.Errorf("%s holds what only the stranger may read", copied)
				}
			}
			if got := run(t, client, "/hello"); got.code != 0 {
				t.Errorf("the session does not run: %+v", got)
			}
		})
	}
}

// settled returns the trouble that the guest has told of by the time it is ready.
func settled(t testing.TB, client *link.Client) *session.Cause {
	t.Helper()
	var told *session.Cause
	await(t, watch(t, client), "ready", func(e link.Event) bool {
		if e.Error != nil {
			told = e.Error
		}
		return e.Ready
	})
	return told
}

func codeOf(c *session.Cause) session.Code {
	if c == nil {
		return ""
	}
	return c.Code
}

// User files that cannot be read to their end are left as they are.
func TestUserFilesThatAreNone(t *testing.T) {
	for name, make := range map[string]func(path string) error{
		"a pipe":      func(path string) error { return unix.Mkfifo(path, 0o644) },
		"a device":    func(path string) error { return unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))) },
		"a directory": func(path string) error { return os.Mkdir(path, 0o755) },
		"a socket":    func(path string) error { return unix.Mknod(path, unix.S_IFSOCK|0o666, 0) },
		"10 GiB of nothing": func(path string) error {
			if err := os.WriteFile(path, nil, 0o644); err != nil {
				return err
			}
			return os.Truncate(path, 10<<30)
		},
	} {
		for _, file := range []string{"etc/passwd", "etc/group", "etc/shadow", "etc/skel/.bashrc", "etc/skel", "etc"} {
			t.Run(name+" as "+file, func(t *testing.T) {
				b := newBox(t, false)
				path := filepath.Join(b.root, file)
				must(t, os.MkdirAll(filepath.Dir(path), 0o755))
				must(t, make(path))
				client := b.start().connect()
				told := settled(t, client)
				want := session.CodeNoUser
				if strings.Contains(file, "skel") || name == "a directory" && file == "etc" {
					want = ""
				}
				if code := codeOf(told); code != want {
					t.Errorf("the trouble is %+v, want %q", told, want)
				}
				if info, err := os.Stat(filepath.Join(b.root, "home/work/.bashrc")); err == nil {
					t.Errorf("it was copied: %d bytes", info.Size())
				}
				if got := run(t, client, "/hello"); got.code != 0 {
					t.Errorf("the session does not run: %+v", got)
				}
			})
		}
	}
}

// An image may give its root directory to the person's user, whose processes then
// put links where the guest has its folders, while it goes on working as root.
func TestWhatThePersonMovesLeadsNowhere(t *testing.T) {
	f, b := newFolder(t), newBox(t, true)
	must(t, os.Chown(b.root, b.settings.UID, b.settings.GID))
	must(t, os.Chown(filepath.Join(b.root, ".slipway"), b.settings.UID, b.settings.GID))
	b.binds = append(b.binds, f.dir+":/data")
	client := b.start().connect()
	settled(t, client)
	const move = "mv /.slipway /.moved && mkdir /.slipway && ln -s /data /.slipway/spool && " +
		"ln -s /data /.slipway/link && mv /etc /etc-moved; mv /home /home-moved; " +
		"ln -s /data /etc; ln -s /data /home; ls -ld /.slipway/spool"
	if got := run(t, client, "/bin/sh", "-c", move); got.code != 0 {
		t.Fatalf("the attack does not begin: %+v", got)
	}
	s := open(t, client, session.TerminalRequest{Cols: 80, Rows: 24, Command: []string{"/bin/sh", "-c",
		"yes | head -c 400000; echo done"}})
	s.expect("done")
	f.untouched(t)
	if files, err := os.ReadDir(filepath.Join(b.root, ".moved/spool")); err != nil || len(files) == 0 {
		t.Errorf("the terminal's output is not where it belongs: %v, %v", files, err)
	}
	must(t, client.Close())
	again := b.connect() // the guest finds the agent's socket, not the one that a person made
	if got := run(t, again, "/hello"); got.code != 0 {
		t.Errorf("got %+v", got)
	}
}
