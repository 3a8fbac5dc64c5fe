package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	fences = regexp.MustCompile("(?ms)^```.*?^```$|^    .*?$|`[^`\n]*`")
	links  = regexp.MustCompile(`(!?)\[([^\]]*)\]\(([^)\s]+)\)`)
	titles = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	noName = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// documents are the texts for people, by their paths from the root of the module.
func documents(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(moduleRoot, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (slices.Contains([]string{"node_modules", ".git", ".cache", "bin", "shared"},
			entry.Name())):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		at, err := filepath.Rel(moduleRoot, path)
		found[at] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// heading is how a link names a heading: in small letters, with dashes for spaces.
func heading(title string) string {
	return strings.ReplaceAll(strings.ToLower(noName.ReplaceAllString(title, "")), " ", "-")
}

func TestLinksLeadSomewhere(t *testing.T) {
	all := documents(t)
	shown := map[string]bool{}
	for at, text := range all {
		for _, link := range links.FindAllStringSubmatch(fences.ReplaceAllString(text, ""), -1) {
			isPicture, words, to := link[1] != "", link[2], link[3]
			if strings.Contains(to, "://") {
				continue
			}
			file, title, _ := strings.Cut(to, "#")
			target := at
			if file != "" {
				target = filepath.Join(filepath.Dir(at), filepath.FromSlash(file))
			}
			if _, err := os.Stat(filepath.Join(moduleRoot, target)); err != nil {
				t.Errorf("%s: %s leads nowhere", at, to)
			}
			if title != "" && !slices.ContainsFunc(titles.FindAllStringSubmatch(all[target], -1),
				func(have []string) bool { return heading(have[1]) == title }) {
				t.Errorf("%s: %s names no heading", at, to)
			}
			if isPicture {
				shown[target] = true
				if len(strings.Fields(words)) < 2 {
					t.Errorf("%s: the picture %s is described by %q", at, to, words)
				}
			}
		}
	}
	if len(all) < 10 || len(shown) == 0 {
		t.Errorf("found %d documents and %d pictures", len(all), len(shown))
	}
	pictures, err := filepath.Glob(filepath.Join(moduleRoot, "build", "docs", "pictures", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range pictures {
		if at, err := filepath.Rel(moduleRoot, path); err != nil || !shown[at] {
			t.Errorf("no document shows %s (%v)", at, err)
		}
	}
}
