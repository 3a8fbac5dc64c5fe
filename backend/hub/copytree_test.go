package hub_test

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway/backend/agent"
	"slipway/backend/agent/simulated"
	"slipway/backend/hub"
	"slipway/backend/hub/hubtest"
	"slipway/backend/session"
)

// node is an entry of a tree of files: a directory if it has children, else a link if it has a target, else a file.
type node struct {
	children map[string]*node
	target   string
	content  string
	mode     fs.FileMode
	at       time.Time
}

// grove makes random trees.
type grove struct{ *rand.Rand }

func (g grove) pick(from ...string) string { return from[g.IntN(len(from))] }

func (g grove) time() time.Time { return time.Unix(1_700_000_000+g.Int64N(1e7), g.Int64N(1e9)) }

func (g grove) file() *node {
	return &node{content: strings.Repeat(g.pick("a", "b", "c"), g.IntN(3000)), at: g.time(),
		mode: []fs.FileMode{0o644, 0o600, 0o444, 0o755}[g.IntN(4)]}
}

func (g grove) directory(depth int) *node {
	d := &node{children: map[string]*node{}, at: g.time(), mode: []fs.FileMode{0o755, 0o700, 0o555, 0o775}[g.IntN(4)]}
	for range g.IntN(6) {
		d.children[g.name()] = g.node(depth + 1)
	}
	return d
}

func (g grove) name() string {
	return g.pick("a", "B", "b", "c.txt", ".hidden", "line\nbreak", "\xff\xfe", "가나", "-rf", "d d", "e", "f")
}

func (g grove) node(depth int) *node {
	switch n := g.IntN(10); {
	case n < 3 && depth < 4:
		return g.directory(depth)
	case n < 5:
		return &node{target: g.pick("a", "../b", "/etc/passwd", "nowhere", "..", ".", "../../../..", "\xff", "a/b/c")}
	}
	return g.file()
}

// change changes some of a tree, and leaves the rest.
func (g grove) change(d *node, depth int) {
	for _, name := range slices.Sorted(maps.Keys(d.children)) {
		switch one := d.children[name]; g.IntN(8) {
		case 0:
			delete(d.children, name)
		case 1:
			d.children[name] = g.node(depth + 1)
		case 2:
			one.mode ^= 0o020
		case 3:
			one.content, one.at = strings.ToUpper(one.content), one.at.Add(time.Duration(1+g.Int64N(1e9)))
		default:
			if one.children != nil {
				g.change(one, depth+1)
			}
		}
	}
	for range g.IntN(3) {
		if name := g.name(); d.children[name] == nil {
			d.children[name] = g.node(depth + 1)
		}
	}
}

// write makes a directory what a tree says, with its times.
func (n *node) write(t *testing.T, at string) {
	t.Helper()
	var err error
	switch {
	case n.children != nil:
		if err := os.Mkdir(at, 0o700); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
		for name, child := range n.children {
			child.write(t, filepath.Join(at, name))
		}
	case n.target != "":
		if err := os.Symlink(n.target, at); err != nil {
			t.Fatal(err)
		}
		return
	default:
		err = os.WriteFile(at, []byte(n.content), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(at, n.mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(at, n.at, n.at); err != nil {
		t.Fatal(err)
	}
}

// lines describes all below a tree, one line for each path.
func (n *node) lines(at string, into map[string]string) map[string]string {
	for name, child := range n.children {
		inner := filepath.Join(at, name)
		switch {
		case child.children != nil:
			into[inner] = fmt.Sprintf("directory %v %d", child.mode, child.at.UnixNano())
			child.lines(inner, into)
		case child.target != "":
			into[inner] = "link " + child.target
		default:
			into[inner] = fmt.Sprintf("file %v %d %s", child.mode, child.at.UnixNano(), child.content)
		}
	}
	return into
}

// onDisk describes a directory as lines does.
func onDisk(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	if err := filepath.WalkDir(dir, func(at string, entry fs.DirEntry, err error) error {
		if err != nil || at == dir {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		var line string
		switch {
		case entry.IsDir():
			line = fmt.Sprintf("directory %v %d", info.Mode().Perm(), info.ModTime().UnixNano())
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(at)
			if err != nil {
				return err
			}
			line = "link " + target
		default:
			content, err := os.ReadFile(at)
			if err != nil {
				return err
			}
			line = fmt.Sprintf("file %v %d %s", info.Mode(), info.ModTime().UnixNano(), content)
		}
		found[strings.TrimPrefix(at, dir+"/")] = line
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return found
}

// same fails unless two descriptions are equal.
func same(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for name := range maps.Keys(want) {
		if got[name] != want[name] {
			t.Errorf("%s: %q is %.80q, want %.80q", what, name, got[name], want[name])
		}
	}
	for name := range maps.Keys(got) {
		if want[name] == "" {
			t.Errorf("%s: there is also %q, a %.80q", what, name, got[name])
		}
	}
}

// pair is a hub over two machines, each with the folder data, which is a directory of this one.
type pair struct {
	world
	near, lab session.Agent
	from, to  string // the directories
}

var (
	fromNear = hub.FileEnd{Folder: "data", Agent: "local"}
	toFar    = hub.FileEnd{Folder: "data", Agent: "lab"}
)

// newPair opens two machines. change may replace parts of them.
func newPair(t *testing.T, change func(p *pair)) *pair {
	t.Helper()
	p := &pair{}
	open := func(dir *string) session.Agent {
		return simulated.Open(t, func(c *agent.Config) {
			*dir = filepath.Join(c.Dir, "disk", "scratch", "data")
		}).Agent()
	}
	p.near, p.lab = open(&p.from), open(&p.to)
	if change != nil {
		change(p)
	}
	p.world = world{shelf: &hubtest.Shelf{}}
	p.Hub = openOn(t, p.shelf, []hub.Member{{Name: "local", Local: true, Agent: p.near}, {Name: "lab", Agent: p.lab}})
	for name, dir := range map[string]string{"local": p.from, "lab": p.to} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unlock(t, dir) })
		if _, err := p.CreateFolder(t.Context(), name,
			session.FolderRequest{Name: "data", Path: "/scratch/data"}); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// unlock lets a directory be changed.
func unlock(t *testing.T, dir string) {
	t.Helper()
	if err := filepath.WalkDir(dir, func(at string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			err = os.Chmod(at, 0o755)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

// plant makes a directory what a tree says.
func plant(t *testing.T, dir string, tree *node) {
	t.Helper()
	unlock(t, dir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
			t.Fatal(err)
		}
	}
	tree.write(t, dir)
}

// mirrors mirrors the first folder to the second, and fails unless that succeeds.
func (p *pair) mirrors(t *testing.T) hub.Operation {
	t.Helper()
	begun, err := p.Mirror(t.Context(), fromNear, toFar)
	if err != nil {
		t.Fatal(err)
	}
	return p.operation(t, begun.ID, ended)
}

// sending notes what is sent to an agent.
type sending struct {
	mu    sync.Mutex
	files []string
	bytes int64
}

func (s *sending) watch(to *session.Agent) {
	to.Uploads = watchedUploads{to.Uploads, func(up session.Upload, from io.Reader) io.Reader {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.files = append(s.files, string(up.Path))
		return countedBytes{from, s}
	}}
}

// take returns what was sent since the last time.
func (s *sending) take() (files []string, size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.files, s.bytes = nil, 0 }()
	slices.Sort(s.files)
	return s.files, s.bytes
}

type countedBytes struct {
	io.Reader
	sent *sending
}

func (c countedBytes) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.sent.mu.Lock()
	defer c.sent.mu.Unlock()
	c.sent.bytes += int64(n)
	return n, err
}

// content is what a line says of a file except its permissions, which need not be sent.
func content(line string) string {
	kind, rest, _ := strings.Cut(line, " ")
	_, rest, _ = strings.Cut(rest, " ")
	return kind + rest
}

func TestAMirrorIsTheTreeOfItsSource(t *testing.T) {
	var sent sending
	p := newPair(t, func(p *pair) { sent.watch(&p.lab) })
	for seed := range uint64(12) {
		g := grove{rand.New(rand.NewPCG(seed, 1))}
		tree, old := g.directory(0), map[string]string{}
		plant(t, p.to, &node{children: map[string]*node{}, mode: 0o755})
		for pass := range 4 {
			what := fmt.Sprintf("seed %d, pass %d", seed, pass)
			if pass > 1 { // nothing has changed since the first pass
				g.change(tree, 0)
			}
			plant(t, p.from, tree)
			want := tree.lines("", map[string]string{})
			if o := p.mirrors(t); o.State != hub.OperationDone || strings.Contains(o.Steps[1].Detail, "skipped") {
				t.Fatalf("%s: it ended as %+v, %+v", what, o, o.Error)
			}
			same(t, what, onDisk(t, p.to), want)
			var changed []string
			size := 0
			for name, line := range want {
				if strings.HasPrefix(line, "file") && content(line) != content(old[name]) {
					changed = append(changed, name)
					size += len(strings.SplitN(line, " ", 4)[3])
				}
			}
			slices.Sort(changed)
			if files, bytes := sent.take(); !slices.Equal(files, changed) || bytes != int64(size) {
				t.Errorf("%s: %q were sent, in %d bytes; want %q, in %d", what, files, bytes, changed, size)
			}
			if old = want; t.Failed() {
				return
			}
		}
	}
}

func TestACopyReplacesNoDirectoryAndNoLink(t *testing.T) {
	p := newPair(t, nil)
	at := time.Unix(1_700_000_000, 5)
	file := func(content string) *node { return &node{content: content, mode: 0o644, at: at} }
	directory := func(children map[string]*node) *node { return &node{children: children, mode: 0o755, at: at} }
	for name, c := range map[string]struct{ from, to *node }{
		"a file and a directory":       {file("x"), directory(map[string]*node{"kept": file("kept")})},
		"a directory and a file":       {directory(map[string]*node{"in": file("x")}), file("kept")},
		"a directory and a link":       {directory(map[string]*node{"in": file("x")}), &node{target: "other"}},
		"a file and a link to it":      {file("x"), &node{target: "other/same"}},
		"a link and a file":            {&node{target: "other"}, file("kept")},
		"a link and a directory":       {&node{target: "other"}, directory(map[string]*node{"kept": file("kept")})},
		"a link and another":           {&node{target: "other"}, &node{target: "elsewhere"}},
		"a file and a link to nothing": {file("x"), &node{target: "nothing"}},
	} {
		t.Run(name, func(t *testing.T) {
			there := directory(map[string]*node{"one": c.to, "other": directory(map[string]*node{"same": file("x")})})
			plant(t, p.from, directory(map[string]*node{"one": c.from}))
			plant(t, p.to, there)
			was := onDisk(t, p.to)
			req := hub.FileCopying{From: fromNear, To: toFar}
			if o := p.copies(t, req); session.CodeOf(o.Error) != session.CodeFileExists {
				t.Errorf("it ended as %+v", o)
			}
			same(t, "not replaced", onDisk(t, p.to), was)
			req.Replace = true
			o := p.copies(t, req)
			if c.to.children != nil {
				if session.CodeOf(o.Error) != session.CodeFileExists {
					t.Errorf("it ended as %+v", o)
				}
				same(t, "a directory", onDisk(t, p.to), was)
				return
			}
			there.children["one"] = c.from
			if o.State != hub.OperationDone {
				t.Errorf("it ended as %+v", o)
			}
			same(t, "replaced", onDisk(t, p.to), there.lines("", map[string]string{}))
		})
	}
}

// forgetful fails to list a directory, always or after its first part.
type forgetful struct {
	session.Files
	dir string
}

func (f forgetful) ListFiles(ctx context.Context, place session.Place,
	req session.ListRequest) (session.FileListing, error) {
	if string(req.Path) == f.dir && req.After != "" {
		return session.FileListing{}, session.NewError(session.CodeFileFailed, "The disk fails.", "Replace it.")
	}
	req.Limit = 1
	return f.Files.ListFiles(ctx, place, req)
}

func TestAMirrorRemovesNothingAfterHalfAListing(t *testing.T) {
	p := newPair(t, func(p *pair) { p.near.Files = forgetful{p.near.Files, "half"} })
	at := time.Unix(1_700_000_000, 5)
	half := func(names ...string) *node {
		d := &node{children: map[string]*node{}, mode: 0o755, at: at}
		for _, name := range names {
			d.children[name] = &node{content: name, mode: 0o644, at: at}
		}
		return &node{children: map[string]*node{"half": d}, mode: 0o755, at: at}
	}
	plant(t, p.from, half("a", "b"))
	plant(t, p.to, half("a", "b", "c"))
	was := onDisk(t, p.to)
	if o := p.mirrors(t); session.CodeOf(o.Error) != session.CodeFileFailed {
		t.Errorf("it ended as %+v", o)
	}
	same(t, "there", onDisk(t, p.to), was)
}

// older is an agent that knows neither links nor attributes.
type older struct{ session.Uploads }

var errOlder = session.NewError(session.CodeAgentUnsupported, "The agent is too old.", "Upgrade it.")

func (older) MakeLink(context.Context, session.Place, session.FilePath, session.FilePath) error {
	return errOlder
}
func (older) SetAttributes(context.Context, session.Place, session.FilePath, session.Attributes) error {
	return errOlder
}

// FinishUpload sets times as finely as older agents did.
func (o older) FinishUpload(ctx context.Context, place session.Place,
	req session.FinishRequest) (session.FileInfo, error) {
	req.Modified = req.Modified.Truncate(time.Microsecond)
	return o.Uploads.FinishUpload(ctx, place, req)
}

// untold lists files without the targets of links, as older agents do.
type untold struct{ session.Files }

func (u untold) ListFiles(ctx context.Context, place session.Place,
	req session.ListRequest) (session.FileListing, error) {
	listing, err := u.Files.ListFiles(ctx, place, req)
	for i := range listing.Entries {
		listing.Entries[i].Target = ""
	}
	return listing, err
}

func TestOlderAgentsCopyWithoutLinks(t *testing.T) {
	at := time.Unix(1_700_000_000, 123_456_789)
	file := &node{content: "content", mode: 0o600, at: at}
	tree := func(link *node) *node {
		return &node{mode: 0o755, at: at, children: map[string]*node{"link": link,
			"dir": {mode: 0o700, at: at, children: map[string]*node{"file": file}}}}
	}
	for name, c := range map[string]struct {
		change func(*pair)
		detail string
	}{
		"from one": {func(p *pair) { p.near.Files = untold{p.near.Files} },
			"1 skipped, which are links that one of the two sides cannot copy"},
		"to one": {func(p *pair) { p.lab.Files, p.lab.Uploads = untold{p.lab.Files}, older{p.lab.Uploads} },
			"1 skipped, which are links that one of the two sides cannot copy; " +
				"1 with other permissions or times than at the source"},
	} {
		t.Run(name, func(t *testing.T) {
			var sent sending
			p := newPair(t, func(p *pair) { c.change(p); sent.watch(&p.lab) })
			plant(t, p.from, tree(&node{target: "there"}))
			plant(t, p.to, &node{mode: 0o755, at: at, children: map[string]*node{"link": {target: "kept"}}})
			req := hub.FileCopying{From: fromNear, To: toFar, Replace: true}
			for _, present := range []string{"", "; 1 were there already"} {
				o := p.copies(t, req)
				if want := "1 file, 7 B" + present + "; " + c.detail; o.State != hub.OperationDone ||
					o.Steps[1].Detail != want {
					t.Errorf("it ended as %+v, want %q", o, want)
				}
			}
			if files, _ := sent.take(); len(files) != 1 {
				t.Errorf("%q were sent", files)
			}
			if target, err := os.Readlink(filepath.Join(p.to, "link")); target != "kept" || err != nil {
				t.Errorf("the link that was there leads to %q, %v", target, err)
			}
		})
	}
}

// lying is a source that lists a link, and a directory of the same name with a file in it.
type lying struct {
	session.Files
	entries *[]session.FileInfo
}

func (l lying) ListFiles(_ context.Context, _ session.Place, req session.ListRequest) (session.FileListing, error) {
	if req.Path == "one" {
		return session.FileListing{Entries: []session.FileInfo{{Name: "evil", Kind: session.KindFile}}}, nil
	}
	return session.FileListing{Entries: *l.entries}, nil
}

func (l lying) ReadFile(context.Context, session.Place, session.ReadRequest) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("")), nil
}

func TestNothingIsCopiedThroughALinkOfTheSource(t *testing.T) {
	link := session.FileInfo{Name: "one", Kind: session.KindOther, Link: true, Target: "../outside"}
	directory := session.FileInfo{Name: "one", Kind: session.KindDirectory, Mode: 0o755}
	at := time.Unix(1_700_000_000, 5)
	for name, runs := range map[string][][]session.FileInfo{
		"in one run":        {{link, directory}},
		"in the same, late": {{directory, link}},
		"in the next run":   {{link}, {directory}},
	} {
		for _, replace := range []bool{false, true} {
			t.Run(fmt.Sprint(name, replace), func(t *testing.T) {
				var entries []session.FileInfo
				p := newPair(t, func(p *pair) { p.near.Files = lying{p.near.Files, &entries} })
				outside := &node{mode: 0o755, at: at, children: map[string]*node{}}
				plant(t, p.to, &node{mode: 0o755, at: at, children: map[string]*node{"outside": outside}})
				req := hub.FileCopying{From: fromNear, To: toFar, Replace: replace}
				req.To.Path = "in"
				for _, entries = range runs {
					p.copies(t, req)
				}
				if left, err := os.ReadDir(filepath.Join(p.to, "outside")); err != nil || len(left) > 0 {
					t.Errorf("outside there is %v, %v", left, err)
				}
			})
		}
	}
}
