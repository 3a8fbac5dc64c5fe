package hub

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// FileCopying asks for a file, or a directory with its contents, to be copied from one place to another. The places may
// be on different machines; the files then pass through this computer.
type FileCopying struct {
	From FileEnd `json:"from"`
	// To may be a folder that does not exist: it is created on the named agent if there is no path.
	To      FileEnd `json:"to"`
	Replace bool    `json:"replace,omitempty"` // replace files that differ; otherwise they stop the copy
}

// FileEnd is a file or directory in a folder or in a running session.
type FileEnd struct {
	Session string `json:"session,omitempty"` // id or name; empty: a folder is meant
	Folder  string `json:"folder,omitempty"`  // id or name
	Agent   string `json:"agent,omitempty"`   // the folder's; empty if its name is enough
	Path    string `json:"path,omitempty"`    // empty: all of the folder, or the home directory
}

const (
	// partFolder is added to the name of a folder until all of it is copied, so that no session uses a part of it.
	partFolder = ".part"
	// deepestCopy limits how deep a copy follows directories: an untrusted machine could report endless ones.
	deepestCopy = 250
	// copiesAtOnce is how many files of one copy are sent at once, since a small one costs mostly round trips.
	copiesAtOnce = 8
	// resumeFrom is the size of a file from which an earlier part of it is looked for, which takes a round trip.
	resumeFrom = 256 << 10
)

// CopyFiles starts to copy files, as an operation that waits while an agent is not reached. What is copied stays when
// it ends early, and the same request continues there: files with the size and time of the source are not sent again.
func (t *transfers) CopyFiles(ctx context.Context, req FileCopying) (Operation, error) {
	c := &fileCopy{transfers: t, copyRule: copyRule{replace: req.Replace}, source: req.From.Path,
		target: req.To.Path, slots: make(chan struct{}, copiesAtOnce)}
	from, source, err := t.endOf(ctx, req.From)
	if err != nil {
		return Operation{}, err
	}
	to, _, err := t.endOf(ctx, req.To)
	if session.CodeOf(err) == session.CodeFolderNotFound && req.To.Agent != "" && req.To.Path == "" {
		c.creates.Name = req.To.Folder
		if req.From.Path == "" {
			c.creates.Permission, c.creates.Mode = source.Permission, source.Mode
		}
		if wrong := c.creates.Validate(); len(wrong) > 0 {
			return Operation{}, session.Invalid(wrong)
		}
		to.member, err = t.member(req.To.Agent)
	}
	if err != nil {
		return Operation{}, err
	}
	if from.place == to.place && inside(clean(c.target), clean(c.source)) {
		return Operation{}, session.NewError(session.CodeFileInvalid, "A directory cannot be copied into itself.",
			"Choose another destination.")
	}
	c.from, c.to = from, to
	name := cmp.Or(req.To.Session, req.To.Folder)
	key := strings.Join([]string{"copy", to.member.Name(), name, req.To.Path}, " ")
	subject := subjectAt(cmp.Or(source.Name, req.From.Session), from.member)
	return t.folders.operations.startOn(key, FileCopy, subject, func(ctx context.Context, work *Work) error {
		work.Concerns(to.member.Name())
		work.change(func(one *operation) { one.Folder = req.To.Folder })
		c.work = work
		return c.run(ctx)
	})
}

// copyEnd is where files are copied from or to.
type copyEnd struct {
	member *member
	place  session.Place
}

func (t *transfers) endOf(ctx context.Context, end FileEnd) (copyEnd, session.Folder, error) {
	if end.Session+end.Folder == "" {
		return copyEnd{}, session.Folder{}, session.NewError(session.CodeFileInvalid,
			"One side is neither a session nor a folder.", "Name one of them for each side.")
	}
	if end.Session != "" {
		m, id, err := t.find(ctx, end.Session)
		return copyEnd{m, session.Place{Session: id}}, session.Folder{}, err
	}
	m, f, err := t.folders.findFolder(ctx, end.Folder, end.Agent)
	return copyEnd{m, session.Place{Folder: f.ID}}, f, err
}

func clean(p string) string { return path.Join("/", p) }

func inside(inner, outer string) bool {
	return inner == outer || outer == "/" || strings.HasPrefix(inner, outer+"/")
}

// fileCopy is one run of CopyFiles.
type fileCopy struct {
	transfers      *transfers
	work           *Work
	step           string
	from, to       copyEnd
	source, target string
	copyRule
	except  []string // absolute paths of the source that are not looked at
	creates folderCreation
	slots   chan struct{} // holds a token for each part of the copy that is under way
	parts   sync.WaitGroup
	stop    context.CancelCauseFunc // ends all parts

	mu sync.Mutex // guards what follows
	copyCount
}

// folderCreation is the folder that a copy creates; no name: it exists.
type folderCreation struct {
	session.FolderRequest
	made func(session.FolderID) error // is called when it was created; nil: it is not
}

// copyRule says what becomes of what is at the destination and differs, and of what changes meanwhile.
type copyRule struct {
	replace bool
	mirror  bool // with replace: what is not at the source is removed, also directories
	steady  bool // with replace: a file that has changed since it was listed is kept
	live    bool // what changes or vanishes at the source is left for a later copy
}

type copyCount struct {
	files, present int   // links count as files
	skipped        int   // because they are neither files, directories nor links
	unlinked       int   // links that one of the agents cannot copy
	unset          int   // whose attributes the destination did not let be set
	changed        int   // that changed or vanished meanwhile, in a live copy
	done, total    int64 // bytes
	sent           int64 // bytes that were not there
}

func (c *fileCopy) run(ctx context.Context) error {
	c.work.Plan(Step{Name: "count", Title: "Count the files"}, Step{Name: "copy", Title: "Copy them"})
	var root session.FileInfo
	err := c.do(ctx, "count", func() (_ string, err error) {
		root, err = c.measure(ctx)
		return counted(c.files, c.total), err
	})
	if err != nil {
		return err
	}
	return c.do(ctx, "copy", func() (string, error) { return c.carry(ctx, root) })
}

// measure counts what is copied, and describes its root.
func (c *fileCopy) measure(ctx context.Context) (root session.FileInfo, err error) {
	root, err = c.stat(ctx, c.from, c.source)
	if err == nil && root.Kind == session.KindDirectory {
		err = c.count(ctx, c.source, 0)
	} else {
		c.files, c.total = 1, root.Size
	}
	return root, err
}

// carry copies what was measured.
func (c *fileCopy) carry(ctx context.Context, root session.FileInfo) (detail string, err error) {
	c.copyCount = copyCount{total: c.total}
	if err := c.open(ctx); err != nil {
		return "", err
	}
	c.advance(0)
	began := time.Now()
	var copying context.Context
	copying, c.stop = context.WithCancelCause(ctx)
	defer c.stop(nil)
	if err = c.copy(copying, root); err != nil {
		c.stop(err)
	}
	c.parts.Wait()
	if err = cmp.Or(context.Cause(copying), err); err == nil {
		err = c.close(ctx)
	}
	c.transfers.rates.learn(c.from.member, c.to.member, c.sent, time.Since(began))
	return c.detail(), err
}

// rates are the bytes a second of the last large copies, by the names of the two agents.
type rates struct{ by sync.Map }

func (r *rates) learn(from, to *member, sent int64, took time.Duration) {
	if sent >= 1<<20 {
		r.by.Store([2]string{from.Name(), to.Name()}, float64(sent)/took.Seconds())
	}
}

// seconds estimates how long a copy takes; nil if nothing large was copied that way yet.
func (r *rates) seconds(from, to *member, size int64) *float64 {
	rate, known := r.by.Load([2]string{from.Name(), to.Name()})
	if !known {
		return nil
	}
	return new(float64(size) / rate.(float64)) //nolint:forcetypeassert // as it was stored
}

// do runs a step. One that a person cancels has not failed.
func (c *fileCopy) do(ctx context.Context, step string, work func() (detail string, err error)) error {
	c.step = step
	c.work.Begin(c.step, "")
	detail, err := work()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return c.work.fail(c.step, err)
	}
	c.work.Tell(Step{Name: c.step, State: StepOK, Detail: detail})
	return nil
}

func counted(files int, size int64) string {
	if files == 1 {
		return fmt.Sprintf("1 file, %s", gpu.Bytes(size))
	}
	return fmt.Sprintf("%d files, %s", files, gpu.Bytes(size))
}

func (c *fileCopy) detail() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := counted(c.files, c.done)
	if c.present > 0 {
		text += fmt.Sprintf("; %d were there already", c.present)
	}
	if c.skipped > 0 {
		text += fmt.Sprintf("; %d skipped, which are neither files, directories nor links", c.skipped)
	}
	if c.unlinked > 0 {
		text += fmt.Sprintf("; %d skipped, which are links that one of the two sides cannot copy", c.unlinked)
	}
	if c.unset > 0 {
		text += fmt.Sprintf("; %d with other permissions or times than at the source", c.unset)
	}
	if c.changed > 0 {
		text += fmt.Sprintf("; %d skipped, which changed meanwhile", c.changed)
	}
	return text
}

// at returns the path of a file, which is never empty.
func at(p string) session.FilePath { return session.FilePath(cmp.Or(p, ".")) }

// until calls do until it succeeds or fails for another reason than that an agent is not reached.
func until[T any](ctx context.Context, c *fileCopy, do func() (T, error)) (T, error) {
	return answered(ctx, &retries{work: c.work, step: c.step}, do)
}

func answered[T any](ctx context.Context, r *retries, do func() (T, error)) (T, error) {
	for {
		got, err := do()
		switch {
		case err == nil:
			r.reached()
			return got, nil
		case ctx.Err() != nil:
			return got, ctx.Err()
		case !away(err):
			return got, err
		}
		if err := r.again(ctx, session.AsError(err, session.CodeOperationFailed).Message+
			" It continues automatically."); err != nil {
			return got, err
		}
	}
}

func (c *fileCopy) stat(ctx context.Context, end copyEnd, name string) (session.FileInfo, error) {
	return until(ctx, c, func() (session.FileInfo, error) {
		return end.member.Agent.StatFile(ctx, end.place, at(name))
	})
}

// each calls do for each entry of a directory.
func (c *fileCopy) each(ctx context.Context, end copyEnd, dir string, depth int,
	do func(name string, info session.FileInfo) error) error {
	if depth > deepestCopy {
		return session.NewError(session.CodeFileInvalid, "The directories are nested too deeply.",
			"Copy parts of them.")
	}
	for after, more := session.FilePath(""), true; more; {
		listing, err := until(ctx, c, func() (session.FileListing, error) {
			return end.member.Agent.ListFiles(ctx, end.place, session.ListRequest{Path: at(dir), After: after})
		})
		if err != nil {
			return err
		}
		for _, info := range listing.Entries {
			after = info.Name
			if end == c.from && slices.Contains(c.except, path.Join(clean(dir), string(info.Name))) {
				continue
			}
			if err := do(string(info.Name), info); err != nil {
				return err
			}
		}
		more = listing.More && len(listing.Entries) > 0
	}
	return nil
}

// copied reports whether an entry of a directory is copied at all. Older agents do not say where a link points.
func copied(name string, info session.FileInfo) bool {
	return (info.Target != "" || !info.Link && info.Kind != session.KindOther) && name != "." && name != ".." &&
		!strings.ContainsAny(name, "/\x00")
}

func (c *fileCopy) count(ctx context.Context, dir string, depth int) error {
	return c.each(ctx, c.from, dir, depth, func(name string, info session.FileInfo) error {
		switch {
		case !copied(name, info):
			return nil
		case isDirectory(info):
			return c.count(ctx, path.Join(dir, name), depth+1)
		case !info.Link:
			c.total += info.Size
		}
		c.files++
		return nil
	})
}

// open finds the folder that an earlier copy began, or creates it.
func (c *fileCopy) open(ctx context.Context) error {
	if c.creates.Name == "" {
		return nil
	}
	name, agent := c.creates.Name+partFolder, c.to.member.Name()
	f, err := until(ctx, c, func() (session.Folder, error) {
		lists, err := c.transfers.folders.foldersOf(ctx, []*member{c.to.member})
		if err != nil {
			return session.Folder{}, err
		}
		if i := slices.IndexFunc(lists[0], func(f session.Folder) bool {
			return f.Name == name && f.State == session.FolderReady
		}); i >= 0 {
			return lists[0][i], nil
		}
		one, err := c.transfers.folders.CreateFolder(ctx, agent, session.FolderRequest{Name: name})
		if err == nil && c.creates.made != nil {
			err = c.creates.made(one.ID)
		}
		return one, err
	})
	c.to.place = session.Place{Folder: f.ID}
	return err
}

// close gives the folder its name, now that all of it is there.
func (c *fileCopy) close(ctx context.Context) error {
	if c.creates.Name == "" {
		return nil
	}
	change := session.FolderChange{Name: &c.creates.Name}
	if c.creates.Permission != "" {
		change.Permission, change.Mode = &c.creates.Permission, &c.creates.Mode
	}
	_, err := until(ctx, c, func() (session.Folder, error) {
		return c.to.member.Agent.UpdateFolder(ctx, c.to.place.Folder, change)
	})
	if err == nil {
		c.creates = folderCreation{}
	}
	return err
}

// send sends the missing rest of a file and returns the checksum of the whole.
func (c *fileCopy) send(ctx context.Context, from string, up session.Upload,
	info session.FileInfo) (sum string, err error) {
	source, target := c.from.member.Agent, c.to.member.Agent
	if info.Size >= resumeFrom {
		offset, err := target.UploadOffset(ctx, c.to.place, up)
		if err != nil {
			return "", err
		}
		if offset <= info.Size {
			up.Offset = offset
		}
	}
	c.advance(up.Offset)
	body := &copyReader{ctx: ctx, copy: c, sum: sha256.New(), from: bytes.NewReader(nil)}
	defer func() {
		if err != nil { // what arrived is counted by the next attempt
			c.advance(-up.Offset - body.read)
		}
	}()
	if up.Offset < info.Size {
		content, err := source.ReadFile(ctx, c.from.place, session.ReadRequest{Path: session.FilePath(from),
			Offset: up.Offset, Version: info.Version})
		if err != nil {
			return "", err
		}
		defer content.Close()
		body.from = io.LimitReader(content, info.Size-up.Offset)
	}
	_, err = target.WriteUpload(ctx, c.to.place, up, body)
	switch {
	case body.err != nil:
		return "", body.err
	case err != nil:
		return "", err
	case up.Offset == 0:
		return hex.EncodeToString(body.sum.Sum(nil)), nil
	}
	return source.ChecksumFile(ctx, c.from.place, session.FilePath(from))
}

func (c *fileCopy) note(change func(*copyCount)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.copyCount)
}

func (c *fileCopy) advance(n int64) {
	c.note(func(now *copyCount) {
		now.done += n
		c.work.Progress(now.done, max(now.total, now.done))
	})
}

// copyReader is what is read of a file that is copied. It keeps the error of reading, which is not one of writing.
type copyReader struct {
	ctx  context.Context //nolint:containedctx // of the whole copy
	copy *fileCopy
	from io.Reader
	sum  hash.Hash
	read int64
	err  error
}

func (r *copyReader) Read(p []byte) (int, error) {
	if r.err = r.ctx.Err(); r.err != nil {
		return 0, r.err
	}
	n, err := r.from.Read(p)
	r.sum.Write(p[:n])
	r.read += int64(n)
	r.copy.note(func(c *copyCount) { c.sent += int64(n) })
	r.copy.advance(int64(n))
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}
