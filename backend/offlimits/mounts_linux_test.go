package offlimits

import (
	"os"
	"slices"
	"syscall"
	"testing"
)

func TestASecondMountOfAFileSystemHidesTheSame(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs root")
	}
	if os.Getuid() != 0 {
		t.Fatal("to mount it needs root, as in CI")
	}
	w := newWorld(t)
	for from, to := range map[string]string{"home/.local": "data/deep",
		"home/.local/share/slipway/folders": "home/data"} {
		if err := syscall.Mount(w.at(from), w.at(to), "", syscall.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Unmount(w.at(to), syscall.MNT_DETACH) })
	}
	if found, err := w.places.Look(w.at("data"), false); err != nil ||
		!slices.Equal(found.Hidden, []string{"deep/share/slipway"}) {
		t.Errorf("what holds another mount of it: %+v, %v", found, err)
	}
	for _, path := range []string{"data/deep/share/slipway", "data/deep/share/slipway/folders/a", "home/data",
		"home/data/a"} {
		if found, err := w.places.Look(w.at(path), false); err == nil {
			t.Errorf("%s is mounted: %+v", path, found)
		}
	}
	if _, err := w.places.Look(w.at("data"), true); err == nil {
		t.Error("another person may mount it")
	}
}
