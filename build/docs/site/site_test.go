package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheDocumentationBecomesPages(t *testing.T) {
	to := t.TempDir()
	if err := write("..", to); err != nil {
		t.Fatal(err)
	}
	documents, err := filepath.Glob("../*.md")
	if err != nil || len(documents) < 10 {
		t.Fatal(documents, err)
	}
	for _, path := range documents {
		name := strings.TrimSuffix(filepath.Base(path), ".md") + ".html"
		if name == "README.html" {
			name = "index.html"
		}
		page, err := os.ReadFile(filepath.Join(to, name))
		if err != nil {
			t.Errorf("the contents do not name it: %v", err)
			continue
		}
		if text := string(page); !strings.Contains(text, "<h1 id=") || strings.Contains(text, "<title> ·") ||
			strings.Contains(text, ".md\"") || strings.Count(text, `aria-current="page"`) != 1 {
			t.Errorf("%s is wrong", name)
		}
	}
	if _, err := os.Stat(filepath.Join(to, "pictures", "sessions.webp")); err != nil {
		t.Error(err)
	}
}

func TestALinkThatLeadsNowhereFails(t *testing.T) {
	for link, fails := range map[string]bool{"other.md": false, "other.md#two-words": false, "#two-words": true,
		"missing.md": true, "other.md#none": true, "https://example.org/a.md": false} {
		from := t.TempDir()
		files := map[string]string{contents: "# All\n\n## Some\n\n- [One](one.md)\n- [Other](other.md)\n",
			"one.md": "# One\n\n[a link](" + link + ")\n", "other.md": "# Other\n\n## Two words\n",
			"pictures/a.webp": ""}
		for name, text := range files {
			path := filepath.Join(from, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := write(from, t.TempDir()); (err != nil) != fails {
			t.Errorf("%s: %v", link, err)
		}
	}
}
