package offlimits

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"slipway/backend/hostfs"
	"slipway/backend/mountinfo"
	"slipway/backend/session"
)

// world is a machine in a directory: a home with Slipway's own files, data and an
// engine.
type world struct {
	dir    string
	places Places
}

func newWorld(t *testing.T) world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := world{dir: dir}
	for _, name := range []string{"home/.local/share/slipway/folders/a", "home/data", "home/.docker/run",
		"engine/volumes", "tmp/slipway-1000-abc", "data/deep"} {
		if err := os.MkdirAll(w.at(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w.places = Places{
		Own:    []string{w.at("home/.local/share/slipway"), w.at("tmp/slipway-1000-abc"), w.at("tmp/slipway-none")},
		Engine: w.at("engine"), Socket: w.at("home/.docker/run/docker.sock"), Home: w.at("home"),
	}
	return w
}

func (w world) at(name string) string { return filepath.Join(w.dir, name) }

func TestWhatMayBeMounted(t *testing.T) {
	w := newWorld(t)
	for link, to := range map[string]string{"link": "home/.local/share/slipway", "way": "home/.local",
		"plain": "data"} {
		if err := os.Symlink(w.at(to), w.at(link)); err != nil {
			t.Fatal(err)
		}
	}
	const refused = "refused"
	for _, c := range []struct {
		name, path string
		hidden     []string // for the agent's own person; refused alone: it cannot be mounted
		stranger   bool     // another person may mount it
	}{
		{"data", w.at("data"), nil, true},
		{"data behind a link", w.at("plain/deep"), nil, true},
		{"data in the home", w.at("home/data"), nil, true},
		{"the home", w.at("home"), []string{".docker/run", ".local/share/slipway"}, false},
		{"what holds the home", w.dir, []string{"engine", "home/.docker/run", "home/.local/share/slipway",
			"tmp/slipway-1000-abc"}, false},
		{"a part of the way to Slipway's own", w.at("home/.local"), []string{"share/slipway"}, false},
		{"a link to that part", w.at("way"), []string{"share/slipway"}, false},
		{"temporary files", w.at("tmp"), []string{"slipway-1000-abc"}, false},
		{"Slipway's own", w.at("home/.local/share/slipway"), []string{refused}, false},
		{"what lies in it", w.at("home/.local/share/slipway/folders/a"), []string{refused}, false},
		{"a link to it", w.at("link"), []string{refused}, false},
		{"what lies in it behind links", w.at("way/share/slipway/folders"), []string{refused}, false},
		{"sockets", w.at("tmp/slipway-1000-abc"), []string{refused}, false},
		{"the engine's data", w.at("engine/volumes"), []string{refused}, false},
		{"what holds the engine's socket", w.at("home/.docker/run"), []string{refused}, false},
		{"the whole machine", "/", []string{refused}, false},
		{"processes", "/proc", []string{refused}, false},
		{"one process", "/proc/self", []string{refused}, false},
		{"devices", "/dev", []string{refused}, false},
		{"memory as files", "/dev/shm", []string{refused}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, err := w.places.Look(c.path, false)
			slices.Sort(found.Hidden)
			switch {
			case slices.Equal(c.hidden, []string{refused}):
				if session.CodeOf(err) != "session_create_forbidden" || session.AsError(err, "").Hint == "" {
					t.Errorf("%+v, %v", found, err)
				}
			case err != nil || !slices.Equal(found.Hidden, c.hidden):
				t.Errorf("%+v, %v", found, err)
			}
			if _, err := w.places.Look(c.path, true); (err == nil) != c.stranger {
				t.Errorf("for another person: %v", err)
			}
		})
	}
	if _, err := w.places.Look(w.at("none"), false); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what is not there: %v", err)
	}
}

func TestPlacesOfASimulatedMachineAreOnItsDisk(t *testing.T) {
	w := newWorld(t)
	machine := Places{Machine: hostfs.FS{Root: w.dir}, Own: []string{"/data"}, Home: "/home"}
	if err := os.Symlink("data", w.at("link")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/data/deep": "/data/deep", "/link/deep": "/data/deep", "/data": "/data",
		"/home": "/home"} {
		found, err := machine.Look(path, false)
		if err != nil || found.Path != want || found.Source != w.at(want) || len(found.Hidden) > 0 {
			t.Errorf("%s: %+v, %v", path, found, err)
		}
		if _, err := machine.Look(path, true); (err != nil) != (path == "/home") {
			t.Errorf("%s for another person: %v", path, err)
		}
	}
	for _, path := range []string{"/", w.dir, w.at("data"), "/none"} {
		if found, err := machine.Look(path, false); err == nil {
			t.Errorf("%s may be mounted: %+v", path, found)
		}
	}
}

func FuzzParseMounts(f *testing.F) {
	f.Add("36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw\n", "/mnt2/a")
	f.Add(`1 1 0:1 /a\040b /c\134 rw - t s o`, "/c\\")
	f.Fuzz(func(t *testing.T, text, dir string) {
		names := mounts(mountinfo.Parse(text)).names(dir)
		if dir != "" && (len(names) == 0 || names[0] != dir) {
			t.Errorf("%q is not among the names of itself: %q", dir, names)
		}
	})
}
