package enginetest

import (
	"os"
	"path/filepath"
	"testing"
)

// WriteFiles writes files below a directory, which it makes: pairs of a path and a content.
func WriteFiles(t testing.TB, dir string, files ...string) {
	t.Helper()
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(dir, files[i])
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = os.WriteFile(path, []byte(files[i+1]), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
