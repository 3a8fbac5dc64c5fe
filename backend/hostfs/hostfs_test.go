package hostfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// world is a simulated machine in a directory, with a secret beside it that links on its disk lead to.
func world(t *testing.T) (f FS, secret string) {
	t.Helper()
	dir := t.TempDir()
	f, secret = FS{Root: filepath.Join(dir, "disk"), Home: "/home/ada"}, filepath.Join(dir, "secret")
	err := errors.Join(os.MkdirAll(filepath.Join(f.Root, "data", "set"), 0o755), os.Mkdir(secret, 0o755),
		os.WriteFile(filepath.Join(f.Root, "data", "file"), nil, 0o600),
		os.Symlink("set", filepath.Join(f.Root, "data", "link")),
		os.Symlink(secret, filepath.Join(f.Root, "data", "absolute")),
		os.Symlink("../../secret", filepath.Join(f.Root, "data", "relative")))
	if err != nil {
		t.Fatal(err)
	}
	return f, secret
}

func TestASimulatedMachineIsItsRoot(t *testing.T) {
	f, _ := world(t)
	entries, err := f.ReadDir("/data")
	if err != nil || len(entries) != 5 {
		t.Errorf("%v, %v", entries, err)
	}
	for path, want := range map[string]string{"/": "/", "/data/set": "/data/set", "/data/link/../link": "/data/set",
		"/../../data": "/data"} {
		if real, err := f.Resolve(path); err != nil || real != want {
			t.Errorf("%s is %s, %v", path, real, err)
		}
	}
	if f.Host("/data/set") != filepath.Join(f.Root, "data", "set") || f.Host("/../x") != filepath.Join(f.Root, "x") {
		t.Errorf("paths here are %s and %s", f.Host("/data/set"), f.Host("/../x"))
	}
	if clean, absolute := f.Clean("/data/./set/"); clean != "/data/set" || !absolute || f.HomeDir() != "/home/ada" ||
		f.Join("/", "..") != "/" {
		t.Errorf("%s, %v", clean, absolute)
	}
	if !f.Writable("/data") || f.Writable("/none") {
		t.Error("what is writable is not")
	}
	_, err = f.Stat("/none")
	if !errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), f.Root) {
		t.Errorf("what is missing: %v", err)
	}
}

func TestNothingLeadsOutOfASimulatedMachine(t *testing.T) {
	f, secret := world(t)
	for _, path := range []string{secret, "/data/absolute", "/data/relative", "/../secret", "/data/../../secret"} {
		for name, call := range map[string]func() error{
			"stat":    func() error { _, err := f.Stat(path); return err },
			"list":    func() error { _, err := f.ReadDir(path); return err },
			"open":    func() error { _, err := f.OpenRoot(path); return err },
			"resolve": func() error { _, err := f.Resolve(path); return err },
		} {
			if err := call(); err == nil || strings.Contains(err.Error(), f.Root) {
				t.Errorf("%s of %s: %v", name, path, err)
			}
		}
		if f.Writable(path) {
			t.Errorf("%s is writable", path)
		}
	}
}

func TestTheZeroValueIsThisComputer(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", dir)
	var f FS
	info, err := f.Stat(dir)
	real, realErr := f.Resolve(filepath.Join(dir, "..", filepath.Base(dir)))
	if err := errors.Join(err, realErr); err != nil || !info.IsDir() || real != dir || f.Host(dir) != dir ||
		f.HomeDir() != dir || !f.Writable(dir) {
		t.Errorf("%s, %s, %v", real, f.HomeDir(), err)
	}
}
