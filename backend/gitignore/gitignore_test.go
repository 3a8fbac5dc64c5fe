package gitignore_test

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway/backend/gitignore"
)

// tree is what the tests ask git about: its directories end in a slash.
var tree = []string{
	"a", "b.log", "B.LOG", "build/", "build/a", "build/b.log", "build/deep/", "build/deep/a", "src/", "src/build",
	"src/a", "src/b.log", "src/deep/", "src/deep/a", "src/deep/er/", "src/deep/er/a", "src/deep/er/build/",
	"src/deep/er/build/a", "#hash", "!bang", "sp ", "sp", "[x]", "x", "-", "a-b", "a\\b", "가", "\xff", ".hidden", "^",
	"]", "q?", "qq", "tab\t", "a:b", "star*", "1", "_", "line\rend", "doc/", "doc/frotz/", "doc/frotz/x", "a1/", "a1/b",
}

// ignoredByGit asks git which paths of the tree it ignores. files are the files with rules, by their directory.
func ignoredByGit(t *testing.T, dir string, files map[string]string) []string {
	t.Helper()
	for at, content := range files {
		if err := os.WriteFile(filepath.Join(dir, at, gitignore.Name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	defer func() {
		for at := range files {
			os.Remove(filepath.Join(dir, at, gitignore.Name))
		}
	}()
	ask := exec.CommandContext(t.Context(), "git", "check-ignore", "-z", "--stdin", "--no-index")
	ask.Dir = dir
	ask.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"XDG_CONFIG_HOME=/nonexistent")
	ask.Stdin = strings.NewReader(strings.ReplaceAll(strings.Join(tree, "\x00"), "/\x00", "\x00"))
	out, err := ask.Output()
	if err != nil && ask.ProcessState.ExitCode() != 1 { // 1: it ignores none
		t.Fatal(err)
	}
	found := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	found = slices.DeleteFunc(found, func(name string) bool { return name == "" })
	slices.Sort(found)
	return found
}

// ignored says which paths of the tree the rules ignore, down from the root.
func ignored(files map[string]string) []string {
	rules := map[string]gitignore.Rules{".": gitignore.Rules{}.With("", []byte(files["."]))}
	out := map[string]bool{}
	var found []string
	for _, name := range tree {
		name, directory := strings.CutSuffix(name, "/")
		parent := path.Dir(name)
		of := rules[parent]
		out[name] = out[parent] || of.Ignores(name, directory)
		if directory {
			if content, ok := files[name]; ok {
				of = of.With(name, []byte(content))
			}
			rules[name] = of
		}
		if out[name] {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

func repository(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Fatal("install git")
	}
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range tree {
		at := filepath.Join(dir, name)
		var err error
		if strings.HasSuffix(name, "/") {
			err = os.Mkdir(at, 0o700)
		} else {
			err = os.WriteFile(at, nil, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestItIgnoresWhatGitIgnores(t *testing.T) {
	dir := repository(t)
	for _, text := range []string{
		"a", "/a", "a/", "build", "build/", "/build", "src/build", "*.log", "*.log\n!src/b.log",
		"*\n!src\n!src/**", "**/a", "src/**", "src/**/a", "src/**/build", "**", "/**", "**/", "/*\n!/src", "deep/",
		"deep/er", "**/deep/er", "src/*/a", "s?c/a", "[ab]", "[!a]", "[^a-q]", "[a-", "[]x]", "[]-^]",
		"[[:digit:]_]", "[[:nope:]]", "[[:]", "[z-a]", "[z-a][b]", "sr**/a", "src**/deep/a",
		"sr?**/a", "src/**\\a", "[a-", "[^z-a]", "[[x\\]]*", "\\#hash", "#hash", "\\!bang", "!bang", "sp\\ ",
		"sp ", "sp  ", "a\\", "a\\\\b", "\\a", "가", "?", "???", "[가]", "\xff", "\ufeffa", "a\r\nb.log\r", " ", "!",
		"/", "//", "a//", "src//a", "src/deep/**/", "***", "src/***/a", "src**a", "src/**a", "a**", "\\[x\\]",
		"star\\*", "q\\?", "*\t", "a\n!a", "!a\na", "build/\n!build/a", "doc/frotz", "frotz/", "doc/frotz/",
		"*/frotz", "**/frotz/x", "src/**\\/a", "[a/b]1", "a1?b", "a1[/]b", "a1*b", "[\\a]", "[\\", "[a-\\b]",
		"[a-\\", "[--a]", "[", "]", "[::]", "[[::]]", "[!]", "[^", "^",
	} {
		files := map[string]string{".": text}
		if got, want := ignored(files), ignoredByGit(t, dir, files); !slices.Equal(got, want) {
			t.Errorf("%q ignores %q, and git %q", text, got, want)
		}
	}
}

func TestItIgnoresWhatGitIgnoresAtRandom(t *testing.T) {
	dir := repository(t)
	pieces := []string{"a", "b", "build", "src", "deep", "er", "*", "**", "/", "/", "/", "?", "[a-z]", "[!b]", ".log",
		"!", "\\", " ", "[", "]", "-", "[[:alpha:]]", "x"}
	runs := 150
	if testing.Short() {
		runs = 20
	}
	for seed := range uint64(runs) {
		r := rand.New(rand.NewPCG(seed, 7))
		files := map[string]string{}
		for _, at := range []string{".", "src", "src/deep", "build"} {
			var text strings.Builder
			for range r.IntN(5) {
				if r.IntN(3) == 0 {
					text.WriteString("!")
				}
				for range 1 + r.IntN(5) {
					text.WriteString(pieces[r.IntN(len(pieces))])
				}
				text.WriteString("\n")
			}
			files[at] = text.String()
		}
		if got, want := ignored(files), ignoredByGit(t, dir, files); !slices.Equal(got, want) {
			t.Fatalf("%q ignores %q, and git %q", files, got, want)
		}
	}
}
