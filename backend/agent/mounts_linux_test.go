package agent

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"slipway/backend/engine"
	"slipway/backend/engine/sim/simtest"
	"slipway/backend/session"
)

// mountWorld is an agent whose own files lie in the home of its person, with data
// beside them.
func mountWorld(t *testing.T) (w *world, home string) {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"own/kernels", "data/deep", "data/other"} {
		if err := os.MkdirAll(filepath.Join(home, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	fake := newFake(t, simtest.Config{})
	return newWorld(t, fake, func(c *Config) {
		c.OffLimits.Own, c.OffLimits.Home = []string{filepath.Join(home, "own")},
			home
	}), home
}

// launched returns what the engine was given for a session with mounts, but for its cache.
func launched(w *world, mounts ...session.Mount) engine.Container {
	w.t.Helper()
	s := w.awaitStatus(w.launch(session.Spec{Mounts: mounts}).ID, session.Running)
	c, found := w.fake.Container(s.Kernels[0].Container)
	if !found {
		w.t.Fatal("there is no container")
	}
	c.Mounts = slices.DeleteFunc(c.Mounts, func(m session.Mount) bool { return m.Target == session.CachePath })
	c.Guest.Pins = slices.DeleteFunc(c.Guest.Pins, func(p engine.Pin) bool { return p.Target == session.CachePath })
	return c
}

func TestEveryMountIsPinnedAndHidesWhatIsOurs(t *testing.T) {
	w, home := mountWorld(t)
	linked, err := w.agent.CreateFolder(t.Context(),
		session.FolderRequest{Name: "linked", Path: filepath.Join(home, "data")})
	if err != nil {
		t.Fatal(err)
	}
	managed, err := w.agent.CreateFolder(t.Context(), session.FolderRequest{Name: "managed"})
	if err != nil {
		t.Fatal(err)
	}
	way := filepath.Join(t.TempDir(), "way")
	if err := os.Symlink(home, way); err != nil {
		t.Fatal(err)
	}
	c := launched(w, session.Mount{Source: home, Target: "/a"},
		session.Mount{Source: way, Target: "/b", ReadOnly: true},
		session.Mount{Folder: linked.Name, Target: "/c"}, session.Mount{Folder: linked.Name, Path: "deep",
			Target: "/d"}, session.Mount{Folder: managed.Name, Target: "/e"})
	if want := []string{"/a/own", "/b/own"}; !slices.Equal(c.Hidden, want) {
		t.Errorf("hidden are %q, not %q", c.Hidden, want)
	}
	want := map[string]string{"/a": home, "/b": home, "/c": filepath.Join(home, "data"),
		"/d": filepath.Join(home, "data", "deep"), "/e": filepath.Join(w.dir, "folders", string(managed.ID))}
	for _, m := range c.Mounts {
		var stat syscall.Stat_t
		if err := syscall.Lstat(m.Source, &stat); err != nil || m.Source != want[m.Target] {
			t.Errorf("%s shows %s, %v", m.Target, m.Source, err)
		}
		if !slices.Contains(c.Guest.Pins, engine.Pin{Target: m.Target, Device: stat.Dev, Inode: stat.Ino}) {
			t.Errorf("%s is not pinned: %+v", m.Target, c.Guest.Pins)
		}
	}
	if len(c.Mounts) != len(want) {
		t.Errorf("mounted are %+v", c.Mounts)
	}
}

// Between a launch and its start a session may wait for hours.
func TestWhatWasExchangedBeforeTheStartIsNotMounted(t *testing.T) {
	for name, mount := range map[string]func(w *world, dir string) session.Mount{
		"a directory of the machine": func(_ *world, dir string) session.Mount {
			return session.Mount{Source: dir,
				Target: "/a"}
		},
		"a linked folder": func(w *world, dir string) session.Mount {
			f, err := w.agent.CreateFolder(w.t.Context(), session.FolderRequest{Name: "linked", Path: dir})
			if err != nil {
				w.t.Fatal(err)
			}
			return session.Mount{Folder: f.Name, Target: "/a"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, home := mountWorld(t)
			dir := filepath.Join(home, "data")
			m := mount(w, dir)
			gate := w.fake.Block(simtest.CallImage)
			s := w.launch(session.Spec{Mounts: []session.Mount{m}})
			<-gate.Entered()
			if err := errors.Join(os.Rename(dir, dir+"-away"),
				os.Symlink(filepath.Join(home, "own"), dir)); err != nil {
				t.Fatal(err)
			}
			gate.Release()
			ended := w.await(s.ID, "its end", func(s session.Session) bool { return s.Status.Terminal() })
			if ended.Result == session.ResultSuccess || w.fake.Calls(simtest.CallCreate) > 0 {
				t.Errorf("it is %s, and %d containers were asked for", ended.Status,
					w.fake.Calls(simtest.CallCreate))
			}
		})
	}
}

func TestOthersAreGivenNothingThatHoldsWhatIsOurs(t *testing.T) {
	w, home := mountWorld(t)
	data := filepath.Join(home, "data")
	for _, path := range []string{home, filepath.Dir(home), filepath.Join(home, "own"),
		filepath.Join(home, "own", "kernels"), "/", "/proc", "/run/user"} {
		if err := w.agent.SetAllowance("bob", &session.Allowance{Folders: []string{path}}); err == nil {
			t.Errorf("%s is opened to others", path)
		} else if e := session.AsError(err, ""); e.Code.Detail() != session.DetailForbidden &&
			e.Code != "agent_call_invalid" && path != "/run/user" || e.Hint == "" {
			t.Errorf("%s: %+v", path, e)
		}
		if _, err := w.agent.CreateFolder(t.Context(), session.FolderRequest{Name: "of-bob", Owner: "bob",
			Path: path}); session.CodeOf(err) != "file_use_invalid" {
			t.Errorf("%s is linked for others: %v", path, err)
		}
		p, err := w.agent.Preview(t.Context(), "bob",
			session.Spec{Mounts: []session.Mount{{Source: path, Target: "/a"}}}, 1)
		if err != nil || !slices.ContainsFunc(p.Errors,
			func(e session.FieldError) bool { return e.Field == "mounts[0].source" }) {
			t.Errorf("%s may be mounted by others: %+v, %v", path, p.Errors, err)
		}
	}
	if err := w.agent.SetAllowance("bob", &session.Allowance{Folders: []string{data}}); err != nil {
		t.Errorf("data is not opened: %v", err)
	}
	for path, fine := range map[string]bool{data: true, filepath.Join(data, "deep"): false} {
		_, err := w.agent.CreateFolder(t.Context(), session.FolderRequest{Name: "of-ann", Owner: "ann", Path: path})
		if fine != (err == nil) {
			t.Errorf("%s is linked for another person than the one that has %s: %v", path, data, err)
		}
	}
	if err := w.agent.SetAllowance("eve",
		&session.Allowance{Folders: []string{filepath.Join(data, "other")}}); session.CodeOf(
		err) != "agent_call_invalid" {
		t.Errorf("a directory in a linked one of another person is opened: %v", err)
	}
}
