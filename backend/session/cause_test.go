package session

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

func TestACauseIsSaidInPhrases(t *testing.T) {
	c := Because("session_run_task-failed", Say("taskFailed", Fill("code", "3")), Say("readLog"))
	if c.Message != "The startup command ended with exit code 3." || c.Hint != "Read the session's log." {
		t.Errorf("in English: %q, %q", c.Message, c.Hint)
	}
	why := errors.New("why")
	e := c.Failure(why)
	if !errors.Is(e, why) || !reflect.DeepEqual(e.Cause(), c) {
		t.Errorf("%+v is not an error of %+v", e, c)
	}
	if c := Because("session_run_lost", Say("containerLost"), Phrase{}); c.Hint != "" || c.Advice != nil {
		t.Errorf("advises %q, %+v where there is nothing to advise", c.Hint, c.Advice)
	}
}

// What is kept with a session is said by phrases, all of which have words. Only
// what crosses a link is made of an error, which brings its phrases along.
func TestEveryCauseIsSaidInPhrases(t *testing.T) {
	var (
		words = englishWords()
		bare  = regexp.MustCompile(`session\.Cause\{[^}]`)
		said  = regexp.MustCompile(`(?:\bSay\(|\bSay: +|\bcount\()"([A-Za-z-]+)"`)
		count int
	)
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if bare.Match(source) {
			t.Errorf("%s makes a cause without session.Because", path)
		}
		for _, key := range said.FindAllSubmatch(source, -1) {
			count++
			if _, known := words[string(key[1])]; !known && key[1][len(key[1])-1] != '-' { // a status follows
				t.Errorf("%s says %q, which phrases.json has no words for", path, key[1])
			}
		}
		return nil
	})
	if err != nil || count < 50 {
		t.Errorf("%d phrases were found in the source: %v", count, err)
	}
}
