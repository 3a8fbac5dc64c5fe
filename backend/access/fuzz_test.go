package access

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"slipway/backend/session"
)

// FuzzAudit reads a log into which anything was written, as a full disk, a crash
// or somebody's editor leaves it: what is whole is read.
func FuzzAudit(f *testing.F) {
	f.Add([]byte(`{"at":"2026-01-02T03:04:05Z","owner":"ann","role":"user","method":"launch","outcome":"ok"}` + "\n"))
	f.Add([]byte(`{"at":"2026-01-02T03:04:05Z","owner":"ann","me`))
	f.Add([]byte("\x00\x00\x00\n\n[]\nnull\n{\"at\":7}\n"))
	f.Add(make([]byte, 100<<10)) // longer than any line of ours
	f.Fuzz(func(t *testing.T, junk []byte) {
		path := filepath.Join(t.TempDir(), "audit.log")
		whole := `{"at":"2030-01-02T03:04:05Z","owner":"bob","role":"admin","method":"rename","outcome":"ok"}`
		if err := os.WriteFile(path, slices.Concat(junk, []byte("\n"+whole+"\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		entries, err := readAudit(path, personMost)
		if err != nil || len(entries) == 0 {
			t.Fatalf("%d entries, %v", len(entries), err)
		}
		if last := entries[len(entries)-1]; last.Owner != "bob" ||
			!last.At.Equal(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)) {
			t.Fatalf("the last is %+v", last)
		}
		_ = session.AuditQuery{Limit: 1, Text: string(junk)}.Matches(entries[0])
	})
}
