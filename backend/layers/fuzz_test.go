package layers

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway/backend/session"
)

func TestATargetThatNeverEndsItsLineIsNotHeardOut(t *testing.T) {
	endless := bufio.NewReaderSize(strings.NewReader(`{"part":"`+strings.Repeat("x", 2*mostTold)), mostTold)
	if _, err := readTold(endless); session.CodeOf(err) != session.CodeImageInvalid {
		t.Errorf("%v", err)
	}
	if left := endless.Buffered(); left > mostTold {
		t.Errorf("%d bytes are kept of it", left)
	}
}

func FuzzTold(f *testing.F) {
	f.Add([]byte(`{"part":"config","offset":2,"whole":true}` + "\n" +
		`{"failure":{"code":"operation_run_failed","message":"x"}}` + "\n"))
	f.Add([]byte(`{"offset":-1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		lines := bufio.NewReaderSize(bytes.NewReader(data), mostTold)
		for range len(data) + 1 {
			if _, err := readTold(lines); err != nil {
				return
			}
		}
		t.Fatal("there are more lines than bytes")
	})
}

// FuzzDescription reads what may be left of a description after a power cut.
func FuzzDescription(f *testing.F) {
	f.Add([]byte(`{"id":"sha256:` + strings.Repeat("a", 64) + `"}`))
	f.Add([]byte("{"))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, partsFile), data, 0o600); err != nil {
			t.Fatal(err)
		}
		depot := &Depot{config: Config{Now: time.Now}}
		if one, err := depot.read(dir, "name"); err == nil && (Check(one.parts) != nil || one.key.folder() != "name") {
			t.Fatalf("%+v was taken", one.parts)
		}
	})
}
