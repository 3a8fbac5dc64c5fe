package node

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/backend/session"
)

func TestALogHasTwoFilesAtMost(t *testing.T) {
	dir := t.TempDir()
	writer, err := openLogWriter(filepath.Join(dir, "main1.log"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat(strings.Repeat("x", 99)+"\n", 10_000)
	for range 100 { // 100 MB
		writer.add([]byte(text))
	}
	writer.copy(strings.NewReader("the last line, without an end"))
	if err := writer.close(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Fatalf("there are %v, %v", entries, err)
	}
	for _, entry := range entries {
		if info, err := entry.Info(); err != nil || info.Size() > maxLogFile || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", entry.Name(), info, err)
		}
	}
	log, err := OpenLog(context.Background(), dir, "main1", session.LogOptions{Tail: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	got, err := io.ReadAll(log)
	if want := strings.Repeat("x", 99) + "\nthe last line, without an end\n"; err != nil || string(got) != want {
		t.Errorf("the end is %q, %v", got, err)
	}
}

func TestLongLinesAreWrittenInPieces(t *testing.T) {
	for _, length := range []int{0, 1, maxLogLine - 1, maxLogLine, maxLogLine + 1, 3*maxLogLine + 7} {
		for _, step := range []int{1 << 20, 4096, 1000} {
			dir := t.TempDir()
			writer, err := openLogWriter(filepath.Join(dir, "main1.log"))
			if err != nil {
				t.Fatal(err)
			}
			want := strings.Repeat("y", length) + "\nnext\n"
			for rest := []byte(want); len(rest) > 0; {
				n := min(step, len(rest))
				writer.add(rest[:n])
				rest = rest[n:]
			}
			if err := writer.close(); err != nil {
				t.Fatal(err)
			}
			log, err := OpenLog(context.Background(), dir, "main1", session.LogOptions{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(log)
			_ = log.Close()
			if err != nil || string(got) != want {
				t.Errorf("%d bytes by %d: %d bytes, %v", length, step, len(got), err)
			}
			raw, err := os.ReadFile(filepath.Join(dir, "main1.log"))
			if err != nil {
				t.Fatal(err)
			}
			for piece := range bytes.Lines(raw) {
				if _, ok := ParseLogLine(bytes.TrimSuffix(piece, []byte{'\n'})); !ok || len(piece) > maxLogLine+64 {
					t.Fatalf("a piece is %.60q", piece)
				}
			}
		}
	}
}
