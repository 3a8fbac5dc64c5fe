package archtest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// treeFiles are the files of the working tree that git does not ignore, by
// their paths in the module.
func treeFiles(t *testing.T, root string) []string {
	t.Helper()
	files, err := listTree(root)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func listTree(root string) ([]string, error) {
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w; run this test in a git checkout", err)
	}
	var files []string
	for _, path := range strings.Split(strings.TrimRight(string(out), "\x00"), "\x00") {
		if _, err := os.Lstat(filepath.Join(root, path)); err == nil { // not deleted in the working tree
			files = append(files, path)
		}
	}
	return slices.Compact(files), nil
}

// ban is a pattern that no text of the tree may hold.
type ban struct {
	pattern *regexp.Regexp
	parts   []string // one of them is in whatever the pattern matches; looked for first, because it is quick
	advice  string
	only    []string // suffixes of the paths it concerns; none: all
	except  []string // path prefixes that it does not concern
	after   string   // what makes it right when it stands shortly before; empty: nothing
}

// shortly is how many bytes before a pattern its excuse may stand.
const shortly = 150

// The patterns are put together from parts so that this file does not hold
// what it forbids.
var bans = []ban{
	{
		pattern: regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`),
		parts:   []string{"TO" + "DO", "FIX" + "ME", "XX" + "X"},
		advice:  "do it now, or write an issue",
	},
	{
		pattern: regexp.MustCompile(`(^|[^\w/.-])/(work/(main|shared)|root/|tmp/brief|home/[a-z]+/go/)`),
		parts:   []string{"/work/" + "main", "/work/" + "shared", "/ro" + "ot/", "/tmp/" + "brief", "/go/"},
		advice:  "a path of one machine means nothing on another; make it relative or configurable",
	},
	{
		pattern: regexp.MustCompile(`"resolved": "https?://([^r]|r[^e]|re[^g]|registry\.[^n]|registry\.n[^p])`),
		parts:   []string{`"resolved"`},
		advice:  "the lock file names a registry that others do not have; run npm with its default registry",
		only:    []string{"package-lock.json"},
	},
	{
		pattern: regexp.MustCompile(`(?m)^\s*registry\s*=`),
		parts:   []string{"registry"},
		advice:  "which registry to use is the machine's choice; leave it out",
		only:    []string{".npmrc"},
	},
	{
		pattern: regexp.MustCompile(`\b(export )?GO(PROXY|SUMDB|NOSUMDB|FLAGS)=\S*://`),
		parts:   []string{"GOPROXY=", "GOSUMDB=", "GONOSUMDB=", "GOFLAGS="},
		advice:  "which proxy to use is the machine's choice; leave it out",
	},
	{
		pattern: regexp.MustCompile(`\bt[b]?\.Skip(f|Now)?\(`),
		parts:   []string{".Skip"},
		advice: "a test that skips proves nothing; make what it needs, or fail; only testing.Short() may leave one " +
			"out",
		only:  []string{".go"},
		after: "testing.Short()",
	},
	{
		pattern: regexp.MustCompile(`\b(it|test|describe)\.(skip|only|todo|fixme)\(`),
		parts:   []string{".skip(", ".only(", ".todo(", ".fixme("},
		advice:  "run every test or remove it",
		only:    []string{".ts", ".tsx", ".mjs"},
	},
	{
		pattern: regexp.MustCompile(`(: any\b|\bas any\b|<any>)`),
		parts:   []string{": any", "as any", "<any>"},
		advice:  "say what it is; unknown if nobody can know",
		only:    []string{".ts", ".tsx"},
	},
	{
		pattern: regexp.MustCompile(`(?m)^export default `),
		parts:   []string{"export default "},
		advice:  "export it by name",
		only:    []string{".ts", ".tsx"},
		except: []string{"frontend/vite.config", "frontend/notebook/vite.config", "frontend/vitest.config",
			"frontend/playwright.config", "frontend/eslint.config", "frontend/e2e/"},
	},
}

// find returns where content holds what is forbidden.
func (b ban) find(content []byte) [][]int {
	if !slices.ContainsFunc(b.parts, func(part string) bool { return bytes.Contains(content, []byte(part)) }) {
		return nil
	}
	return slices.DeleteFunc(b.pattern.FindAllIndex(content, -1), func(at []int) bool {
		return b.after != "" && bytes.Contains(content[max(0, at[0]-shortly):at[0]], []byte(b.after))
	})
}

func TestNothingForbiddenStandsInTheTree(t *testing.T) {
	root := moduleRoot(t)
	for _, path := range treeFiles(t, root) {
		content, err := os.ReadFile(filepath.Join(root, path))
		if err != nil || bytes.IndexByte(content, 0) >= 0 { // a folder of another kind, or not text
			continue
		}
		for _, b := range bans {
			if !b.concerns(path) {
				continue
			}
			for _, at := range b.find(content) {
				line := bytes.Count(content[:at[0]], []byte("\n")) + 1
				t.Errorf("%s:%d: %q: %s", path, line, strings.TrimSpace(string(content[at[0]:at[1]])), b.advice)
			}
		}
	}
}

func (b ban) concerns(path string) bool {
	if len(b.only) > 0 && !slices.ContainsFunc(b.only,
		func(suffix string) bool { return strings.HasSuffix(path, suffix) }) {
		return false
	}
	if path == "frontend/package-lock.json" && len(b.only) == 0 {
		return false
	}
	return !slices.ContainsFunc(b.except, func(prefix string) bool { return strings.HasPrefix(path, prefix) })
}

func TestFrontendFilesAreShort(t *testing.T) {
	root := moduleRoot(t)
	for _, path := range treeFiles(t, root) {
		if !strings.HasPrefix(path, "frontend/") || strings.Contains(path, ".gen.") {
			continue
		}
		if ext := filepath.Ext(path); ext != ".ts" && ext != ".tsx" {
			continue
		}
		content, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Error(err)
			continue
		}
		longest := maxFrontendFile
		if strings.Contains(path, ".test.") || strings.HasPrefix(path, "frontend/e2e/") {
			longest = maxTestFile
		}
		if lines := bytes.Count(content, []byte("\n")); lines > longest {
			t.Errorf("%s has %d lines, more than %d; give each of its ideas a file", path, lines, longest)
		}
	}
}

func TestPatternsFindWhatTheyForbid(t *testing.T) {
	for text, want := range map[string]bool{
		"// TO" + "DO later":             true,
		"cd /work" + "/main && make":     true,
		"/home/work" + "/main.py":        false,
		"the shell starts in /home/work": false,
		`"resolved": "https://registry.` + `npmjs.org/antd/-/antd-6.0.0.tgz"`: false,
		`"resolved": "https://mirror.example/antd/-/antd-6.0.0.tgz"`:          true,
		"registry" + "=https://mirror.example":                                true,
		"t.Sk" + `ip("no docker")`:                                            true,
		"if testing.Short() {\n\tt.Sk" + `ip("long")`:                         false,
		"\tit.on" + "ly('x', () => {":                                         true,
		"const x = y as a" + "ny;":                                            true,
	} {
		found := slices.ContainsFunc(bans, func(b ban) bool { return len(b.find([]byte(text))) > 0 })
		if found != want {
			t.Errorf("%q is found: %v, want %v", text, found, want)
		}
	}
}

// TestPathsOfTheMapExist checks the files that documents name. In backend/README.md a path begins at backend, or at the
// directory of the interface that the sentence is about.
func TestPathsOfTheMapExist(t *testing.T) {
	root := moduleRoot(t)
	files := treeFiles(t, root)
	named := regexp.MustCompile("`([A-Za-z0-9_./*-]+\\.(?:go|ts|tsx|sh|md))`")
	for _, document := range []string{"README.md", "SECURITY.md", "backend/README.md", "tunnel/SPEC.md"} {
		content, err := os.ReadFile(filepath.Join(root, document))
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range named.FindAllSubmatch(content, -1) {
			path := strings.ReplaceAll(regexp.QuoteMeta(string(at[1])), `\*`, `[^/]*`)
			pattern := regexp.MustCompile(`(^|/)` + path + `$`)
			if !slices.ContainsFunc(files, pattern.MatchString) {
				t.Errorf("%s names %s, which does not exist", document, at[1])
			}
		}
	}
}
