//go:build desktop

package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadDrop(t *testing.T) {
	base := t.TempDir()
	made := func(name string) string {
		path := filepath.Join(base, name)
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	plain, other := made("paper"), made("other")
	file, link := filepath.Join(base, "a.csv"), filepath.Join(base, "link")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(plain, link); err != nil {
		t.Fatal(err)
	}
	t.Chdir(base)
	lines := made("two\nlines")
	for name, test := range map[string]struct {
		paths []string
		want  drop
	}{
		"a directory":              {[]string{plain}, drop{Path: plain}},
		"with a slash at its end":  {[]string{plain + "/"}, drop{Path: plain}},
		"a link to a directory":    {[]string{link}, drop{Path: link}},
		"with a line end":          {strings.Split(lines, "\n"), drop{Path: lines}},
		"with quotes and tags":     {[]string{made("</script>'\"\\")}, drop{Path: made("</script>'\"\\")}},
		"with a name in Korean":    {[]string{made("논문 초안")}, drop{Path: made("논문 초안")}},
		"with a name of no text":   {[]string{made("caf\xe9")}, drop{Unnamed: true}},
		"two directories":          {[]string{plain, other}, drop{}},
		"a file":                   {[]string{file}, drop{}},
		"a path that is gone":      {[]string{plain + "-gone"}, drop{}},
		"a relative path":          {[]string{"paper"}, drop{}},
		"something without a path": {[]string{""}, drop{}},
		"nothing":                  {nil, drop{}},
	} {
		if got := readDrop(test.paths); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

func TestDropOrigins(t *testing.T) {
	for system, want := range map[string]string{"windows": "http://127.0.0.1:1", "linux": "", "darwin": ""} {
		if got := dropOrigins(system, "http://127.0.0.1:1"); got != want {
			t.Errorf("%s: %q", system, got)
		}
	}
}
