package place

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestSocketsLieOutsideOfTheHome(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // there they stay in the home
	}
	home, run, temporary := Home{Dir: filepath.Join(t.TempDir(), "home")}, t.TempDir(), t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", run)
	t.Setenv("TMPDIR", temporary)
	dir, err := home.MakeRuntimeDir()
	if err != nil || filepath.Dir(dir) != run {
		t.Fatalf("%s, %v", dir, err)
	}
	if again, err := home.MakeRuntimeDir(); again != dir || err != nil {
		t.Errorf("asked again it is %s, %v", again, err)
	}
	if other, err := (Home{Dir: home.Dir + "2"}).MakeRuntimeDir(); other == dir || err != nil {
		t.Errorf("another home has %s, %v", other, err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := home.MakeRuntimeDir(); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
}

// Whoever shares the temporary files may have made a directory first, or a link.
func TestADirectoryOfSomebodyElseIsNotUsed(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // see above
	}
	at := func(name string) string { return filepath.Join(t.TempDir(), name) }
	trap, link, file, own := t.TempDir(), at("link"), at("file"), at("own")
	if err := errors.Join(os.Symlink(trap, link), os.WriteFile(file, nil, 0o600), os.Mkdir(own, 0o777)); err != nil {
		t.Fatal(err)
	}
	refused := []string{link, file, filepath.Join(at("none"), "dir")}
	if os.Getuid() == 0 { // and may give it to somebody else
		theirs := at("theirs")
		if err := errors.Join(os.Mkdir(theirs, 0o777), os.Chown(theirs, 65534, 65534)); err != nil {
			t.Fatal(err)
		}
		refused = append(refused, theirs)
	}
	for _, dir := range refused {
		if err := makePrivate(dir); err == nil {
			t.Errorf("%s is used", dir)
		}
	}
	if err := makePrivate(own); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(own); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	if info, err := os.Stat(trap); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("what the link leads to was changed: %v, %v", info, err)
	}
}
