package hub_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/backend/hub"
	"slipway/backend/session"
)

const syncCommand = "slipway folder sync data@local data@lab"

func TestASendOverwritesNothingThatChangedThere(t *testing.T) {
	p := newPair(t, nil)
	send := hub.FileSyncing{Send: true}
	plant(t, p.from, directory(map[string]*node{"mine": file("m"), "theirs": file("t"), "both": file("b"),
		"gone": file("g"), "kept": file("k"), ".gitignore": file("*.log\n"), "x.log": file("x"),
		".git": directory(map[string]*node{"HEAD": file("main")}),
		"dir":  directory(map[string]*node{"old": file("o")})}))
	p.synced(t, "first", send)
	want := map[string]string{"mine": "file m", "theirs": "file t", "both": "file b", "gone": "file g",
		"kept": "file k", ".gitignore": "file *.log\n", ".git": "directory", ".git/HEAD": "file main",
		"dir": "directory", "dir/old": "file o"}
	same(t, "after the first, there", read(t, p.to), want)

	here := directory(map[string]*node{"mine": newer("mine", 1), "theirs": file("t"), "both": newer("here", 1),
		"kept": file("k"), ".gitignore": file("*.log\n"), "new": file("n"),
		".git": directory(map[string]*node{"HEAD": file("side")}),
		"dir":  directory(map[string]*node{"old": file("o"), "added": file("a")})})
	plant(t, p.from, here)
	put(t, filepath.Join(p.to, "theirs"), []byte("changed there"))
	put(t, filepath.Join(p.to, "both"), []byte("edited there"))
	put(t, filepath.Join(p.to, "out"), []byte("made there"))
	for _, name := range []string{"dir", "kept"} {
		if err := os.RemoveAll(filepath.Join(p.to, name)); err != nil {
			t.Fatal(err)
		}
	}
	there := read(t, p.to)
	o, asked := p.syncs(t, send)
	if o.State != hub.OperationFailed || len(asked) > 0 || session.CodeOf(o.Error) != session.CodeFileConflict ||
		o.Error.Message != `Changed on local and on lab: "both".` || !strings.Contains(o.Error.Hint, syncCommand) {
		t.Errorf("with a file that changed on both sides it ends as %+v, %+v, after %+v", o, o.Error, asked)
	}
	same(t, "refused, there", read(t, p.to), there)

	put(t, filepath.Join(p.to, "both"), []byte("here"))
	o = p.synced(t, "second", send)
	if !strings.HasPrefix(o.Steps[0].Detail, "4 to lab; not synced, because changed on lab or deleted: 5 files.") ||
		!strings.HasSuffix(o.Steps[0].Detail, syncCommand) {
		t.Errorf("it says %q", o.Steps[0].Detail)
	}
	want = map[string]string{"mine": "file mine", "theirs": "file changed there", "both": "file here", "gone": "file g",
		"out": "file made there", "new": "file n", ".gitignore": "file *.log\n", ".git": "directory",
		".git/HEAD": "file main", "dir": "directory", "dir/added": "file a"}
	same(t, "after the second, there", read(t, p.to), want)
	same(t, "after the second, here", read(t, p.from), plain(here.lines("", map[string]string{})))

	o, asked = p.syncs(t, hub.FileSyncing{}, "yes") // which knows what has become of each file
	if o.State != hub.OperationDone || len(asked) != 1 ||
		!strings.Contains(asked[0].Text, "2 files on local and 1 file") {
		t.Errorf("a sync asks %+v and ends as %+v", asked, o)
	}
	if got := read(t, p.from); got["theirs"] != "file changed there" || got["out"] != "file made there" ||
		got["dir/old"] != "" {
		t.Errorf("after a sync there is here %q", got)
	}
}

func TestASendRefusesAFolderOfOtherFiles(t *testing.T) {
	p := newPair(t, nil)
	plant(t, p.from, directory(map[string]*node{"a": file("a")}))
	plant(t, p.to, directory(map[string]*node{"other": file("o")}))
	o, _ := p.syncs(t, hub.FileSyncing{Send: true})
	if session.CodeOf(o.Error) != session.CodeFileExists || !strings.Contains(o.Error.Hint, "--folder") ||
		!strings.Contains(o.Error.Hint, syncCommand) {
		t.Errorf("it ends as %+v, %+v", o, o.Error)
	}
	same(t, "refused, there", read(t, p.to), map[string]string{"other": "file o"})
	p.synced(t, "both ways", hub.FileSyncing{})
	p.synced(t, "then", hub.FileSyncing{Send: true})
}

// TestACutFirstSendContinues ends a first send before the files of .git are there.
func TestACutFirstSendContinues(t *testing.T) {
	cut := true
	p := newPair(t, func(p *pair) {
		p.lab.Uploads = watchedUploads{p.lab.Uploads, func(up session.Upload, from io.Reader) io.Reader {
			if cut && strings.HasPrefix(string(up.Path), ".git/") {
				return io.MultiReader(denied{})
			}
			return from
		}}
	})
	plant(t, p.from, directory(map[string]*node{"a": file("a"),
		".git": directory(map[string]*node{"HEAD": file("main")})}))
	if o, _ := p.syncs(t, hub.FileSyncing{Send: true}); o.State != hub.OperationFailed {
		t.Fatalf("it ends as %+v", o)
	}
	cut = false
	p.synced(t, "again", hub.FileSyncing{Send: true})
	same(t, "there", read(t, p.to), map[string]string{"a": "file a", ".git": "directory", ".git/HEAD": "file main"})
}

// denied reads nothing.
type denied struct{}

func (denied) Read([]byte) (int, error) {
	return 0, session.NewError(session.CodeFileForbidden, "Denied.", "")
}
