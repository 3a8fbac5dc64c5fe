package generated

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAFileThatDiffersIsNamedAndThenWritten(t *testing.T) {
	root := t.TempDir()
	files := map[string][]byte{"a.ts": []byte("x")}
	if err := Update(root, files, false); err == nil {
		t.Error("files are written outside of a module")
	}
	if err := os.WriteFile(filepath.Join(root, "go.mod"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := Update(root, files, true)
	if err == nil || !strings.Contains(err.Error(), "a.ts is out of date; run make gen") {
		t.Errorf("checked: %v, want the name of the file and what to run", err)
	}
	for range 2 {
		if err := Update(root, files, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := Update(root, files, true); err != nil {
		t.Errorf("what was written is out of date: %v", err)
	}
}
