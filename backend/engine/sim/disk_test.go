package sim

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"testing"
)

// content are the files below a directory.
func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, path))
		found[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestTheDiskFollowsFromItsSeed(t *testing.T) {
	disk := func(seed uint64) string {
		dir := filepath.Join(t.TempDir(), "disk")
		if err := os.Mkdir(dir+".new", 0o700); err != nil { // a crash left it
			t.Fatal(err)
		}
		if err := MakeDisk(dir, "ada", seed); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	first, second, other := disk(1), disk(1), disk(2)
	files := content(t, first)
	for _, name := range []string{"home/ada/projects/vision/train.py", "data/imagenet-mini/labels.csv",
		"data/imagenet-mini/train/harbour/0000.png", "data/wikitext-mini/train.txt",
		"scratch/checkpoints/resnet18/metrics.csv"} {
		if files[name] == "" {
			t.Errorf("%s is missing or empty", name)
		}
	}
	if !maps.Equal(files, content(t, second)) || maps.Equal(files, content(t, other)) {
		t.Error("files do not follow from the seed")
	}
	if err := os.Remove(filepath.Join(first, "data", "wikitext-mini", "train.txt")); err != nil {
		t.Fatal(err)
	}
	if err := MakeDisk(first, "ada", 1); err != nil || len(content(t, first)) != len(files)-1 {
		t.Errorf("a disk that is there was made again: %v", err)
	}
}
