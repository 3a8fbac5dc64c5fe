package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/build/generated"
)

func TestFilesAreCurrent(t *testing.T) {
	files, err := generate("../..")
	if err != nil {
		t.Fatal(err)
	}
	if err := generated.Update("../..", files, true); err != nil {
		t.Error(err)
	}
}

// TestOneMethodIsInFewFiles counts the files that the worked example of
// backend/README.md names: those that know one method and are written by hand.
func TestOneMethodIsInFewFiles(t *testing.T) {
	readme, err := os.ReadFile("../../backend/README.md")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	err = filepath.WalkDir("../../backend", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, ".gen.go") ||
			strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/agenttest/") {
			return err
		}
		source, err := os.ReadFile(path)
		if bytes.Contains(bytes.ToLower(source), []byte("settags(")) {
			found = append(found, strings.TrimPrefix(filepath.ToSlash(path), "../../backend/"))
		}
		return err
	})
	if err != nil || len(found) == 0 || len(found) > 4 {
		t.Errorf("SetTags is in %v, %v", found, err)
	}
	for _, path := range found {
		if !bytes.Contains(readme, []byte("`"+path+"`")) {
			t.Errorf("the worked example of backend/README.md does not name %s", path)
		}
	}
}

// TestDirectivesThatLackSomethingAreRefused has methods with directives that
// leave something open.
func TestDirectivesThatLackSomethingAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ directive, problem string }{
		"none":         {"\n", "no line that begins with //rpc:method"},
		"nobody":       {"name=get effect=read", "nobody has decided who may call it"},
		"no name":      {"effect=read who=owner", "no name"},
		"no effect":    {"name=get who=owner", `effect is ""`},
		"a wrong role": {"name=get effect=read who=root", `who is "root"`},
		"a wrong word": {"name=get effect=read who=owner colour=red", `"colour=red" means nothing`},
		"an admin":     {"name=get effect=read who=admin", "for the methods of Admin"},
		"few names":    {"name=get effect=read who=owner args=id,name", "2 names for 1 parameters"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			source := "package session\n\ntype Admin interface{}\n\ntype Agent struct{ Sessions }\n\n" +
				"type Sessions interface {\n//rpc:method" +
				strings.TrimSuffix(" "+c.directive, " \n") + "\n\tGet(ctx context.Context, id ID) (Session, error)\n}\n"
			if err := os.WriteFile(filepath.Join(dir, "agent.go"), []byte(source), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := readMethods(dir)
			if err == nil || !strings.Contains(err.Error(), c.problem) {
				t.Errorf("%v, and not %q", err, c.problem)
			}
		})
	}
}

// TestRulesByHandAreSaidToBe fails where the table and package access disagree
// on whether a rule is written by hand.
func TestRulesByHandAreSaidToBe(t *testing.T) {
	m := &method{Name: "Get", Params: []*param{{Name: "id", Type: "session.ID"}}, Result: "session.Session"}
	for who, byHand := range map[string]hand{whoCustom: {}, whoOwner: {"view.Get": true}} {
		m.Who = who
		if _, err := source("backend/access", generation{byHand, []*method{m}}); err == nil {
			t.Errorf("who=%s with %v by hand is no error", who, byHand)
		}
	}
}
