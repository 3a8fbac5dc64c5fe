package rotate

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheNewestRecordsStay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f := &File{Path: path, Most: 100, Files: 2}
	for i := range 30 {
		if _, err := fmt.Fprintf(f, "line %04d\n", i); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	newest, err := os.ReadFile(path)
	if err != nil || !strings.HasSuffix(string(newest), "line 0029\n") || len(newest) > 100 {
		t.Errorf("%q, %v", newest, err)
	}
	older, err := os.ReadFile(path + ".1")
	if err != nil || len(older) > 100 || len(older)%10 != 0 {
		t.Errorf("%q, %v", older, err)
	}
	if all := string(older) + string(newest); !strings.Contains(all, "line 0020") {
		t.Errorf("%q lacks what is recent", all)
	}
	if files, err := filepath.Glob(path + "*"); err != nil || len(files) != 2 {
		t.Errorf("%v, %v", files, err)
	}
}
