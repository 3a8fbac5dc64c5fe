package logs

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway/backend/session"
)

func TestLongLogKeepsItsEnd(t *testing.T) {
	for _, piece := range []int{1, 7, 4096} {
		dir := t.TempDir()
		l := &Logs{Config{Dir: dir}}
		if err := os.MkdirAll(l.dir("id"), 0o700); err != nil {
			t.Fatal(err)
		}
		final := filepath.Join(l.dir("id"), "main1.log")
		w := &rotating{path: final + ".part", cap: 1000}
		var whole strings.Builder
		for i := range 500 {
			fmt.Fprintf(&whole, "2026-01-01T00:00:00Z line %d\n", i)
		}
		text := whole.String()
		for len(text) > 0 {
			n := min(piece, len(text))
			if _, err := w.Write([]byte(text[:n])); err != nil {
				t.Fatal(err)
			}
			text = text[n:]
		}
		if err := w.commit(final); err != nil {
			t.Fatal(err)
		}
		w.discard()
		read := func(opts session.LogOptions) string {
			opts.Kernel = "main1"
			log, err := l.openKept("id", opts)
			if err != nil || log == nil {
				t.Fatal(log, err)
			}
			defer log.Close()
			data, err := io.ReadAll(log)
			if err != nil {
				t.Fatal(err)
			}
			return string(data)
		}
		lines := strings.Split(strings.TrimSpace(read(session.LogOptions{})), "\n")
		if !strings.Contains(lines[0], "were not kept") || lines[len(lines)-1] != "line 499" || len(lines) < 35 ||
			len(lines) > 80 {
			t.Errorf("pieces of %d: %d lines from %q to %q", piece, len(lines), lines[0], lines[len(lines)-1])
		}
		for i := 2; i < len(lines); i++ {
			var before, now int
			fmt.Sscanf(lines[i-1], "line %d", &before)
			if fmt.Sscanf(lines[i], "line %d", &now); now != before+1 {
				t.Errorf("%q follows %q", lines[i], lines[i-1])
			}
		}
		if got := read(session.LogOptions{Tail: 2,
			Timestamps: true}); got != "2026-01-01T00:00:00Z line 498\n2026-01-01T00:00:00Z line 499\n" {
			t.Errorf("tail %q", got)
		}
		entries, err := os.ReadDir(l.dir("id"))
		if err != nil || len(entries) != 3 {
			t.Errorf("files %v, %v", entries, err)
		}
		for _, e := range entries {
			if info, err := e.Info(); err != nil || info.Size() > 1100 {
				t.Errorf("%s has %d bytes, %v", e.Name(), info.Size(), err)
			}
		}
	}
}

func TestEndlessLineIsCut(t *testing.T) {
	w := &rotating{path: filepath.Join(t.TempDir(), "x"), cap: 100}
	for _, text := range append(slices.Repeat([]string{strings.Repeat("a", 33)}, 50), "b\nnext\n") {
		if n, err := w.Write([]byte(text)); err != nil || n != len(text) {
			t.Fatal(n, err)
		}
	}
	if err := w.commit(w.path + ".log"); err != nil {
		t.Fatal(err)
	}
	older, err := os.ReadFile(w.path + ".log.1")
	if err != nil || string(older) != strings.Repeat("a", 125)+"\n" {
		t.Errorf("%d bytes, %v", len(older), err)
	}
	if newer, err := os.ReadFile(w.path + ".log"); err != nil || string(newer) != "next\n" {
		t.Errorf("then %q, %v", newer, err)
	}
	if dropped, err := os.ReadFile(w.path + ".log.dropped"); err != nil || string(dropped) != fmt.Sprint(50*33+2-125) {
		t.Errorf("dropped %s, %v", dropped, err)
	}
}
