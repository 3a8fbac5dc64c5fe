package hub_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway/backend/hub"
	"slipway/backend/session"
)

// syncs syncs the two folders and answers each question with the next answer. It returns what was asked.
func (p *pair) syncs(t *testing.T, req hub.FileSyncing, answers ...string) (hub.Operation, []hub.Prompt) {
	t.Helper()
	req.This.Folder, req.This.Agent, req.That.Folder, req.That.Agent = "data", "local", "data", "lab"
	begun, err := p.SyncFiles(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	var asked []hub.Prompt
	for {
		o := p.operation(t, begun.ID, func(o hub.Operation) bool { return ended(o) || o.Prompt != nil })
		if ended(o) {
			return o, asked
		}
		asked = append(asked, *o.Prompt)
		if len(answers) == 0 {
			t.Fatalf("it asks %q", o.Prompt.Text)
		}
		if _, err := p.AnswerOperation(o.ID, o.Prompt.ID, answers[0]); err != nil {
			t.Fatal(err)
		}
		answers = answers[1:]
	}
}

// synced fails unless a sync succeeds without a question.
func (p *pair) synced(t *testing.T, what string, req hub.FileSyncing) hub.Operation {
	t.Helper()
	o, _ := p.syncs(t, req)
	if o.State != hub.OperationDone {
		t.Fatalf("%s: it ended as %+v, %+v", what, o, o.Error)
	}
	return o
}

// plain leaves out what a sync need not keep equal: permissions, and times.
func plain(lines map[string]string) map[string]string {
	short := map[string]string{}
	for name, line := range lines {
		switch parts := strings.SplitN(line, " ", 4); parts[0] {
		case "file":
			short[name] = "file " + parts[3]
		case "directory":
			short[name] = "directory"
		default:
			short[name] = line
		}
	}
	return short
}

func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	return plain(onDisk(t, dir))
}

// clone copies a tree.
func (n *node) clone() *node {
	if n == nil {
		return nil
	}
	other := *n
	if n.children != nil {
		other.children = map[string]*node{}
		for name, child := range n.children {
			other.children[name] = child.clone()
		}
	}
	return &other
}

// is reports whether two nodes are equal, apart from what a directory is besides its contents.
func (n *node) is(other *node) bool {
	switch {
	case n == nil || other == nil:
		return n == other
	case n.children == nil || other.children == nil:
		return n.children == nil && other.children == nil && n.target == other.target &&
			(n.target != "" || n.content == other.content && n.mode == other.mode && n.at.Equal(other.at))
	}
	return maps.EqualFunc(n.children, other.children, (*node).is)
}

func (n *node) child(name string) *node {
	if n == nil {
		return nil
	}
	return n.children[name]
}

// merged is what a sync makes of two trees, which were equal to old before: what changed wins over what did not, and
// over what was deleted. Of what changed on both sides, it keeps the one of this side, or else the other.
func merged(this, that, old *node, keepThis bool) *node {
	directory := func(n *node) bool { return n != nil && n.children != nil }
	switch {
	case directory(this) && (that == nil || directory(that)) || directory(that) && this == nil:
		d := &node{children: map[string]*node{}}
		for _, side := range []*node{this, that} {
			if side == nil {
				continue
			}
			d.mode, d.at = side.mode, side.at
			for name := range side.children {
				if child := merged(this.child(name), that.child(name), old.child(name), keepThis); child != nil {
					d.children[name] = child
				}
			}
		}
		if len(d.children) == 0 && directory(old) && (this == nil || that == nil) {
			return nil
		}
		return d
	case this.is(old):
		return that
	case that.is(old), that == nil:
		return this
	case this == nil:
		return that
	case this.children == nil && that.children == nil && this.content == that.content && this.target == that.target,
		keepThis:
		return this
	}
	return that
}

const nothing = "0 to lab, 0 to local, 0 to delete, 0 changed on both sides"

func TestASyncIsAThreeWayMerge(t *testing.T) {
	var toLab, toNear sending
	p := newPair(t, func(p *pair) { toLab.watch(&p.lab); toNear.watch(&p.near) })
	for seed := range uint64(14) {
		g := grove{rand.New(rand.NewPCG(seed, 9))}
		this, that := g.directory(0), g.directory(0)
		old := (*node)(nil)
		req := hub.FileSyncing{Delete: true, Keep: []hub.Keeping{hub.KeepThis, hub.KeepThat}[seed%2]}
		// A path in the folder of its own, so that each pair begins without a state.
		req.This.Path, req.That.Path = fmt.Sprint("run", seed), fmt.Sprint("run", seed)
		from, to := filepath.Join(p.from, req.This.Path), filepath.Join(p.to, req.That.Path)
		for _, dir := range []string{from, to} {
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for pass := range 5 {
			what := fmt.Sprintf("seed %d, pass %d", seed, pass)
			plant(t, from, this)
			plant(t, to, that)
			root := merged(this, that, old, req.Keep == hub.KeepThis)
			want := plain(root.lines("", map[string]string{}))
			p.synced(t, what, req)
			same(t, what+", here", read(t, from), want)
			same(t, what+", there", read(t, to), want)
			toLab.take()
			toNear.take()
			was := onDisk(t, to)
			o := p.synced(t, what+", again", req)
			if len(o.Steps) != 1 || o.Steps[0].Detail != nothing {
				t.Errorf("%s: again it does %+v", what, o.Steps)
			}
			same(t, what+", again", onDisk(t, to), was)
			if t.Failed() {
				return
			}
			old = root.clone()
			this, that = root.clone(), root.clone()
			g.change(this, 0)
			g.change(that, 0)
		}
	}
}

// at is the time of the files of the tests.
var at = time.Unix(1_700_000_000, 5)

func file(content string) *node { return &node{content: content, mode: 0o644, at: at} }

func newer(content string, seconds int) *node {
	return &node{content: content, mode: 0o644, at: at.Add(time.Duration(seconds) * time.Second)}
}

func directory(children map[string]*node) *node {
	return &node{children: children, mode: 0o755, at: at}
}

func TestWhatChangedOnBothSidesIsAsked(t *testing.T) {
	old := directory(map[string]*node{"a.txt": file("old"), "b": file("old"), "kept": file("kept")})
	this := directory(map[string]*node{"a.txt": newer("here", 1), "b": newer("mine", 1), "kept": file("kept")})
	that := directory(map[string]*node{"a.txt": newer("their", 2), "b": directory(map[string]*node{"in": file("x")}),
		"kept": file("kept"), "a.conflict-lab.txt": file("taken")})
	for name, c := range map[string]struct {
		keep    hub.Keeping
		answers []string
		want    map[string]string
	}{
		"this, as asked": {answers: []string{"this", "this"},
			want: map[string]string{"a.txt": "file here", "b": "file mine"}},
		"that, after a wrong answer": {answers: []string{"what", "that", "that"},
			want: map[string]string{"a.txt": "file their", "b": "directory", "b/in": "file x"}},
		"each another": {answers: []string{"that", "this"},
			want: map[string]string{"a.txt": "file their", "b": "file mine"}},
		"both, for all": {answers: []string{"both all"}, want: map[string]string{"a.txt": "file here",
			"a.conflict-lab-2.txt": "file their", "b": "directory", "b/in": "file x", "b.conflict-local": "file mine"}},
		"that, unasked": {keep: hub.KeepThat,
			want: map[string]string{"a.txt": "file their", "b": "directory", "b/in": "file x"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, nil)
			plant(t, p.from, old)
			p.synced(t, "first", hub.FileSyncing{})
			plant(t, p.from, this)
			plant(t, p.to, that)
			o, asked := p.syncs(t, hub.FileSyncing{Keep: c.keep, Delete: true}, c.answers...)
			if o.State != hub.OperationDone || len(asked) != len(c.answers) {
				t.Fatalf("it ended as %+v, %+v, after %+v", o, o.Error, asked)
			}
			if len(asked) > 0 && (asked[0].Kind != hub.PromptKeep || asked[0].Remaining != 1 ||
				!slices.Equal(asked[0].Sides, []string{"local", "lab"}) || asked[0].Text != `"a.txt" changed on both `+
				`sides: 4 B of 2023-11-14 22:13 UTC on local, and 5 B of 2023-11-14 22:13 UTC on lab.`) {
				t.Errorf("it asks %+v", asked[0])
			}
			c.want["kept"], c.want["a.conflict-lab.txt"] = "file kept", "file taken"
			same(t, "here", read(t, p.from), c.want)
			same(t, "there", read(t, p.to), c.want)
			p.synced(t, "again", hub.FileSyncing{})
		})
	}
}

func TestADeletionIsAskedOnce(t *testing.T) {
	p := newPair(t, nil)
	full := directory(map[string]*node{"a": file("a"), "dir": directory(map[string]*node{"b": file("b"), "c": file("c"),
		"d": file("d"), "e": file("e"), "f": file("f")}), "kept": file("kept"), "mine": file("m")})
	plant(t, p.from, full)
	p.synced(t, "first", hub.FileSyncing{})
	this := directory(map[string]*node{"kept": file("kept"), "mine": file("m"), "new": file("new")})
	plant(t, p.from, this)
	if err := os.Remove(filepath.Join(p.to, "mine")); err != nil {
		t.Fatal(err)
	}
	want := `Delete 1 file on local and 6 files on lab? ` +
		`Deleted on the other side: "mine", "a", "dir/b", "dir/c", "dir/d", and 2 more.`
	o, asked := p.syncs(t, hub.FileSyncing{}, "no")
	if o.State != hub.OperationDone || len(asked) != 1 || asked[0].Text != want || asked[0].Kind != hub.PromptConfirm {
		t.Fatalf("it asks %+v and ends as %+v", asked, o)
	}
	if step := o.Steps[1]; step.State != hub.StepSkipped || step.Detail != "The next sync asks again." {
		t.Errorf("it says %+v", step)
	}
	there := plain(full.lines("", map[string]string{}))
	delete(there, "mine")
	there["new"] = "file new"
	same(t, "refused, there", read(t, p.to), there)
	same(t, "refused, here", read(t, p.from), plain(this.lines("", map[string]string{})))

	put(t, filepath.Join(p.to, "dir", "c"), []byte("changed")) // so it is copied back instead
	o, asked = p.syncs(t, hub.FileSyncing{}, "yes")
	if o.State != hub.OperationDone || len(asked) != 1 || !strings.Contains(asked[0].Text, "5 files on lab") {
		t.Fatalf("it asks %+v and ends as %+v", asked, o)
	}
	left := map[string]string{"kept": "file kept", "new": "file new", "dir": "directory", "dir/c": "file changed"}
	same(t, "there", read(t, p.to), left)
	same(t, "here", read(t, p.from), left)
	p.synced(t, "again", hub.FileSyncing{})
}

func TestIgnoredFilesAreSyncedOnDemand(t *testing.T) {
	p := newPair(t, nil)
	plant(t, p.from, directory(map[string]*node{".gitignore": file("*.log\nbuild/\n!keep.log\n"), "a": file("a"),
		"x.log": file("x"), "keep.log": file("k"), "build": directory(map[string]*node{"out": file("o")}),
		".git": directory(map[string]*node{"HEAD": file("here")}), "sub": directory(map[string]*node{
			".gitignore": file("!deep.log\n/only\n"), "deep.log": file("d"), "only": file("o"),
			".git": file("gitdir: elsewhere")})}))
	plant(t, p.to, directory(map[string]*node{"there.log": file("t"), "b": file("b"), "build": file("a file"),
		".git": directory(map[string]*node{"HEAD": file("there")})}))
	p.synced(t, "first", hub.FileSyncing{})
	want := map[string]string{".gitignore": "file *.log\nbuild/\n!keep.log\n", "a": "file a", "b": "file b",
		"keep.log": "file k", "sub": "directory", "sub/.gitignore": "file !deep.log\n/only\n", "sub/deep.log": "file d",
		"there.log": "file t", "build": "file a file", ".git": "directory", ".git/HEAD": "file there"}
	same(t, "there", read(t, p.to), want)

	// What is ignored keeps its directory, and is asked about by no deletion.
	if err := os.Remove(filepath.Join(p.to, "build")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(p.to, "sub")); err != nil {
		t.Fatal(err)
	}
	o, asked := p.syncs(t, hub.FileSyncing{}, "yes")
	if o.State != hub.OperationDone || len(asked) != 1 || !strings.Contains(asked[0].Text, "Delete 2 files on local?") {
		t.Fatalf("it asks %+v and ends as %+v", asked, o)
	}
	here := read(t, p.from)
	if here["sub/only"] != "file o" || here["sub/deep.log"] != "" || here["sub/.git"] == "" {
		t.Errorf("here there is %q", here)
	}
	p.synced(t, "again", hub.FileSyncing{})

	p.synced(t, "all", hub.FileSyncing{Ignored: true})
	there := read(t, p.to)
	if there["x.log"] != "file x" || there["build/out"] != "file o" || there["sub/only"] != "file o" ||
		there[".git/HEAD"] != "file there" || there["sub/.git"] != "" || read(t, p.from)["there.log"] != "file t" {
		t.Errorf("there is %q", there)
	}
}

func TestACutSyncContinues(t *testing.T) {
	var p *pair
	begun := make(chan string, 1)
	var mu sync.Mutex
	sent := map[string][]int64{}
	p = newPair(t, func(p *pair) {
		p.lab.Uploads = watchedUploads{p.lab.Uploads, func(up session.Upload, from io.Reader) io.Reader {
			mu.Lock()
			defer mu.Unlock()
			if sent[string(up.Path)] = append(sent[string(up.Path)], up.Offset); string(up.Path) != "big" ||
				len(sent["big"]) > 1 {
				return from
			}
			return &flow{Reader: from, at: []int64{5 << 20}, do: func() {
				if _, err := p.CancelOperation(<-begun); err != nil {
					t.Error(err)
				}
			}}
		}}
	})
	put(t, filepath.Join(p.from, "a"), []byte("a"))
	put(t, filepath.Join(p.to, "z"), []byte("z"))
	p.synced(t, "first", hub.FileSyncing{})
	put(t, filepath.Join(p.from, "big"), noise(12<<20))
	if err := os.Remove(filepath.Join(p.from, "z")); err != nil {
		t.Fatal(err)
	}
	first, err := p.SyncFiles(t.Context(), hub.FileSyncing{This: fromNear, That: toFar, Delete: true})
	if err != nil {
		t.Fatal(err)
	}
	begun <- first.ID
	if o := p.operation(t, first.ID, ended); o.State != hub.OperationCancelled {
		t.Fatalf("it ended as %+v", o)
	}
	if _, err := os.Stat(filepath.Join(p.to, "big")); !os.IsNotExist(err) {
		t.Errorf("a part is seen: %v", err)
	}
	if o := p.synced(t, "again", hub.FileSyncing{}); !strings.HasPrefix(o.Steps[0].Detail, "1 to lab, 0 to local, 0") {
		t.Errorf("it says %+v", o.Steps)
	}
	if got := sent["big"]; len(got) != 2 || got[1] < 1<<20 || len(sent["a"]) != 1 {
		t.Errorf("sent from %v", sent)
	}
	same(t, "there", read(t, p.to), read(t, p.from))
}

// TestASyncNeedsNoStateToContinue begins again as after a crash, which stored nothing.
func TestASyncNeedsNoStateToContinue(t *testing.T) {
	var sent sending
	p := newPair(t, func(p *pair) { sent.watch(&p.lab) })
	plant(t, p.from, directory(map[string]*node{"a": file("a"), "b": file("b"), "link": {target: "a"}}))
	plant(t, p.to, directory(map[string]*node{"a": newer("a", 7)}))
	for range 2 {
		p.synced(t, "crashed", hub.FileSyncing{})
		for _, key := range strings.Split(strings.Trim(p.shelf.Raw("hub.syncs"), `[]`), ",") {
			p.shelf.SetRaw("hub.sync."+strings.Trim(key, `"`), []byte("null"))
		}
	}
	if files, _ := sent.take(); !slices.Equal(files, []string{"b"}) {
		t.Errorf("%q were sent", files)
	}
	same(t, "there", read(t, p.to), read(t, p.from))
}

func TestAttributesAreSyncedWithoutContent(t *testing.T) {
	var sent sending
	p := newPair(t, func(p *pair) { sent.watch(&p.lab) })
	plant(t, p.from, directory(map[string]*node{"run.sh": file("x"), "old": file("y")}))
	p.synced(t, "first", hub.FileSyncing{})
	sent.take()
	plant(t, p.from, directory(map[string]*node{"run.sh": {content: "x", mode: 0o755, at: at}, "old": newer("y", 9)}))
	p.synced(t, "second", hub.FileSyncing{})
	if files, _ := sent.take(); len(files) > 0 {
		t.Errorf("%q were sent", files)
	}
	same(t, "there", onDisk(t, p.to), onDisk(t, p.from))
}

func TestWhatChangesDuringASyncIsLeft(t *testing.T) {
	p := newPair(t, func(p *pair) {
		p.lab.Uploads = watchedUploads{p.lab.Uploads, func(up session.Upload, from io.Reader) io.Reader {
			if up.Path == "a" {
				put(t, filepath.Join(p.to, "a"), []byte("written meanwhile"))
			}
			return from
		}}
	})
	put(t, filepath.Join(p.to, "a"), []byte("old"))
	p.synced(t, "first", hub.FileSyncing{})
	put(t, filepath.Join(p.from, "a"), []byte("here, newer"))
	o := p.synced(t, "second", hub.FileSyncing{})
	if last := o.Steps[len(o.Steps)-1]; last.State != hub.StepWarning || last.Remedy != "Sync again." {
		t.Errorf("it says %+v", last)
	}
	same(t, "there", read(t, p.to), map[string]string{"a": "file written meanwhile"})
	if _, asked := p.syncs(t, hub.FileSyncing{}, "that"); len(asked) != 1 {
		t.Errorf("then it asks %+v", asked)
	}
	same(t, "here", read(t, p.from), map[string]string{"a": "file written meanwhile"})
}

// crafted lists names that lead elsewhere, two entries of one name, and directories without an end.
type crafted struct {
	session.Files
	endless *bool
}

func (c crafted) ListFiles(_ context.Context, _ session.Place, req session.ListRequest) (session.FileListing, error) {
	entries := []session.FileInfo{{Name: "..", Kind: session.KindDirectory}, {Name: ".", Kind: session.KindDirectory},
		{Name: "../../evil", Kind: session.KindFile}, {Name: "a/b", Kind: session.KindFile},
		{Name: "one", Kind: session.KindDirectory, Mode: 0o755},
		{Name: "one", Kind: session.KindOther, Link: true, Target: "../outside"}}
	switch {
	case *c.endless:
		entries = entries[4:5]
	case req.Path == "one":
		entries = []session.FileInfo{{Name: "evil", Kind: session.KindFile}}
	case req.Path != ".":
		entries = nil
	}
	return session.FileListing{Entries: entries}, nil
}

func (c crafted) StatFile(context.Context, session.Place, session.FilePath) (session.FileInfo, error) {
	return session.FileInfo{Kind: session.KindDirectory, Mode: 0o755}, nil
}

func (c crafted) ReadFile(context.Context, session.Place, session.ReadRequest) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("")), nil
}

func TestASyncWithAHostileMachineStaysInItsFolder(t *testing.T) {
	endless := false
	p := newPair(t, func(p *pair) { p.lab.Files = crafted{p.lab.Files, &endless} })
	if err := os.Mkdir(filepath.Join(filepath.Dir(p.from), "outside"), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		o, _ := p.syncs(t, hub.FileSyncing{Keep: hub.KeepThat, Delete: true})
		if !ended(o) {
			t.Errorf("%+v", o)
		}
	}
	same(t, "here", read(t, p.from), map[string]string{"one": "link ../outside"})
	for _, at := range []string{"outside/evil", "evil"} {
		if _, err := os.Lstat(filepath.Join(filepath.Dir(p.from), at)); !os.IsNotExist(err) {
			t.Errorf("%s: %v", at, err)
		}
	}
	if err := os.Remove(filepath.Join(p.from, "one")); err != nil {
		t.Fatal(err)
	}
	endless = true
	if o, _ := p.syncs(t, hub.FileSyncing{}); o.State != hub.OperationFailed ||
		!strings.Contains(o.Error.Message, "nested too deeply") {
		t.Errorf("it ended as %+v", o)
	}
}

func TestASyncNeedsTwoFolders(t *testing.T) {
	p := newPair(t, nil)
	within, gone := toFar, toFar
	within.Path, gone.Folder = "a", "x"
	for name, c := range map[string]struct {
		req  hub.FileSyncing
		code session.Code
	}{
		"itself":     {hub.FileSyncing{This: toFar, That: toFar}, session.CodeFileInvalid},
		"inside":     {hub.FileSyncing{This: toFar, That: within}, session.CodeFileInvalid},
		"a session":  {hub.FileSyncing{This: hub.FileEnd{Session: "s"}, That: toFar}, session.CodeFileInvalid},
		"none":       {hub.FileSyncing{This: fromNear}, session.CodeFileInvalid},
		"no folder":  {hub.FileSyncing{This: fromNear, That: gone}, session.CodeFolderNotFound},
		"no keeping": {hub.FileSyncing{This: fromNear, That: toFar, Keep: "all"}, session.CodeFileInvalid},
	} {
		if _, err := p.SyncFiles(t.Context(), c.req); session.CodeOf(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheStateOfASyncIsOneForBothDirections(t *testing.T) {
	p := newPair(t, nil)
	plant(t, p.from, directory(map[string]*node{"a": file("a"), "b": newer("b", 3)}))
	p.synced(t, "first", hub.FileSyncing{})
	if err := os.Remove(filepath.Join(p.to, "a")); err != nil {
		t.Fatal(err)
	}
	begun, err := p.SyncFiles(t.Context(), hub.FileSyncing{This: toFar, That: fromNear, Delete: true})
	if err != nil {
		t.Fatal(err)
	}
	want := "0 to local, 0 to lab, 1 to delete, 0 changed on both sides"
	if o := p.operation(t, begun.ID, ended); o.State != hub.OperationDone || o.Steps[0].Detail != want {
		t.Errorf("it ended as %+v", o)
	}
	same(t, "here", read(t, p.from), map[string]string{"b": "file b"})
}

func TestWhatASyncStoresIsBounded(t *testing.T) {
	p := newPair(t, nil)
	keys := func() []string { return strings.Split(strings.Trim(p.shelf.Raw("hub.syncs"), `["]`), `","`) }
	for i := range 33 {
		name := fmt.Sprint("d", i)
		for _, dir := range []string{p.from, p.to} {
			if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if i == 1 {
			defer func(first string) {
				if got := p.shelf.Raw("hub.sync." + first); got != "null" || len(keys()) != 32 {
					t.Errorf("%d pairs are stored, and of the first %q", len(keys()), got)
				}
			}(keys()[0])
		}
		p.synced(t, name, hub.FileSyncing{This: hub.FileEnd{Path: name}, That: hub.FileEnd{Path: name}})
	}
	put(t, filepath.Join(p.from, ".gitignore"), []byte(strings.Repeat("?\n", 150<<10)))
	if o, _ := p.syncs(t, hub.FileSyncing{}); o.State != hub.OperationFailed ||
		!strings.Contains(o.Error.Message, "too large") {
		t.Errorf("it ended as %+v", o)
	}
	p.synced(t, "all", hub.FileSyncing{Ignored: true})
}
