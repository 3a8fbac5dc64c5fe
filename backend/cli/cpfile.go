package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"slipway/backend/api"
	"slipway/backend/client"
	"slipway/backend/files"
	"slipway/backend/pace"
	"slipway/backend/session"
)

// keyOf returns the name of a copy, by which it is resumed.
func keyOf(parts ...string) string {
	sum := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(sum, "%d %s", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil))[:24]
}

// upload copies one file to the session.
func (j *copying) upload(ctx context.Context, source, target string) error {
	file, err := os.Open(source)
	if err != nil {
		return noLocal(source, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return noLocal(source, err)
	}
	if !info.Mode().IsRegular() {
		j.leaveOut(source)
		return nil
	}
	if !j.force || j.update { // check before sending everything
		switch there, err := j.stat(ctx, target); {
		case err == nil && j.update && there.Size == info.Size() && // a machine keeps times to the microsecond
			there.Modified.Sub(info.ModTime()).Abs() < time.Microsecond:
			return nil
		case err == nil && j.force:
		case err == nil:
			return fail(session.CodeFileExists, target+" already exists.", "Add -f to replace it.")
		case !isNotFound(err):
			return err
		}
	}
	full, err := filepath.Abs(source)
	if err != nil {
		return err
	}
	key := keyOf(full, strconv.FormatInt(info.Size(), 10), info.ModTime().UTC().Format(time.RFC3339Nano))
	sum := make(chan string, 1)
	go func() { sum <- localSum(io.NewSectionReader(file, 0, info.Size())) }()
	if err := j.send(ctx, source, info.Size(), target, key); err != nil {
		return err
	}
	checksum := <-sum
	if now, err := os.Stat(source); err != nil || now.Size() != info.Size() || !now.ModTime().Equal(info.ModTime()) {
		return fail(session.CodeFileChanged, source+" changed while it was copied.", "Copy it again.")
	}
	finish := api.FinishRequest{
		Finish: session.Finish{Size: info.Size(), SHA256: checksum, Modified: info.ModTime()},
		Mode:   strconv.FormatUint(uint64(info.Mode().Perm()), 8)}
	if j.force {
		finish.Conflict = "replace"
	}
	at := fileAt(j, j.files.UploadFinish, target).With("key", key).Body(finish)
	if _, err = askAgain(ctx, j.caller, at); err == nil {
		j.done.Files++
		j.done.Bytes += info.Size()
	}
	return err
}

// send sends the missing rest of a file.
func (j *copying) send(ctx context.Context, source string, size int64, target, key string) error {
	return j.caller.resume(ctx, func(ctx context.Context) error {
		c := j.caller
		state, err := fileAt(j, j.files.Upload, target).With("key", key).Ask(ctx, c)
		if err != nil {
			return err
		}
		if state.Offset > size { // it was another file
			if _, err := fileAt(j, j.files.UploadDrop, target).With("key", key).Ask(ctx, c); err != nil {
				return err
			}
			state.Offset = 0
		}
		body, err := newOutgoing(source, state.Offset, size)
		if err != nil {
			return err
		}
		defer j.watch(filepath.Base(target), size, body.at)()
		at := fileAt(j, j.files.UploadWrite, target).With("key", key).
			With("offset", strconv.FormatInt(state.Offset, 10))
		response, err := c.Transfer(ctx, at.Method(), at.Target(),
			http.Header{"Content-Type": {"application/octet-stream"}},
			client.Sized{Reader: body, Length: size - state.Offset})
		if err != nil {
			return err
		}
		return response.Body.Close()
	})
}

// download copies one file from the session.
func (j *copying) download(ctx context.Context, root *os.Root, source, target string, info api.FileInfo) error {
	if _, err := root.Lstat(target); err == nil && !j.force {
		return fail(session.CodeFileExists, target+" already exists.", "Add -f to replace it.")
	}
	key := keyOf(j.files.List.At(j.place).Target(), source, info.Version)
	part := filepath.Join(filepath.Dir(target), ".slipway-"+key+".part")
	file, err := root.OpenFile(part, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return noLocal(part, err)
	}
	defer file.Close()
	got, wanted, err := j.receiveSummed(ctx, file, source, info)
	if err != nil {
		return err
	}
	if got != wanted {
		err := fail(session.CodeFileChanged, source+" changed while it was copied: the checksums differ.",
			"Copy it again.")
		return errors.Join(err, root.Remove(part))
	}
	mode, _ := strconv.ParseUint(info.Mode, 8, 9) // without a mode, only its owner can read it
	err = errors.Join(file.Sync(), file.Chmod(fs.FileMode(mode)|0o600), file.Close(),
		root.Chtimes(part, info.Modified, info.Modified))
	if err == nil {
		err = root.Rename(part, target)
	}
	if err != nil {
		return noLocal(target, err)
	}
	j.done.Files++
	j.done.Bytes += info.Size
	return nil
}

// receiveSummed reads the missing rest of a local file. It returns the checksums of the local and of the remote file,
// which are calculated meanwhile.
func (j *copying) receiveSummed(ctx context.Context, file *os.File, source string,
	info api.FileInfo) (got, wanted string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var sum api.Checksum
	asked, own := make(chan error, 1), *j.caller
	go func() {
		var err error
		sum, err = fileAt(j, j.files.Checksum, source).Ask(ctx, &own)
		asked <- err
	}()
	into, err := newIncoming(file)
	if err != nil {
		return "", "", noLocal(file.Name(), err)
	}
	err = j.caller.resume(ctx, func(ctx context.Context) error { return j.receive(ctx, into, source, info) })
	if err != nil {
		return "", "", err
	}
	if <-asked != nil { // the connection may be back now
		sum, err = askAgain(ctx, j.caller, fileAt(j, j.files.Checksum, source))
	}
	return into.checksum(), sum.SHA256, err
}

// receive reads the missing rest of a local file.
func (j *copying) receive(ctx context.Context, into *incoming, source string, info api.FileInfo) error {
	at := into.at.Load()
	if at >= info.Size {
		return nil
	}
	from := fileAt(j, j.files.Read, source)
	response, err := j.caller.Transfer(ctx, from.Method(), from.Target(),
		http.Header{"Range": {fmt.Sprintf("bytes=%d-", at)}, "If-Range": {strconv.Quote(info.Version)}}, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	switch {
	case response.Header.Get("ETag") != strconv.Quote(info.Version):
		return fail(session.CodeFileChanged, source+" changed while it was copied.", "Copy it again.")
	case response.StatusCode != http.StatusPartialContent:
		if err := into.restart(); err != nil {
			return noLocal(into.file.Name(), err)
		}
	}
	stop := j.watch(filepath.Base(source), info.Size, into.at.Load)
	lost, err := into.take(io.LimitReader(response.Body, info.Size-into.at.Load()))
	stop()
	switch {
	case err != nil:
		return noLocal(into.file.Name(), err)
	case ctx.Err() != nil:
		return ctx.Err()
	case lost != nil:
		return &client.Lost{Err: lost}
	}
	if more, _ := io.ReadFull(response.Body, make([]byte, 1)); more > 0 {
		return fail(session.CodeFileChanged, source+" is longer than it was.", "Copy it again.")
	}
	return nil
}

// barEvery is how often the progress is shown.
const barEvery = 100 * time.Millisecond

// watch shows the progress of one file on a line of a terminal, until it is stopped.
func (j *copying) watch(name string, size int64, at func() int64) (stop func()) {
	if !j.line.terminal {
		return func() {}
	}
	began, first := time.Now(), at()
	draw := func() {
		progress := api.Progress{Done: at(), Total: size}
		if spent := time.Since(began).Seconds(); spent > 0.5 && progress.Done > first {
			rate := float64(progress.Done-first) / spent
			left := float64(size-progress.Done) / rate
			progress.Rate, progress.Left = int64(rate), &left
		}
		j.line.show(inLine(name) + "  " + progressBar(progress))
		j.drawn = time.Now()
	}
	if began.Sub(j.drawn) >= barEvery { // also if each of many files is small
		draw()
	}
	watching, end := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() {
		for pace.Wall().Pause(watching, barEvery) == nil {
			draw()
		}
	})
	return func() {
		end()
		group.Wait()
	}
}

// localSum returns the checksum of what it can read. An error shows up again when the file is sent.
func localSum(from io.Reader) string {
	sum := sha256.New()
	_, _ = io.CopyBuffer(sum, from, make([]byte, 256<<10)) // see above
	return hex.EncodeToString(sum.Sum(nil))
}

// incoming is a local file that is written, with its checksum so far.
type incoming struct {
	file *os.File
	at   atomic.Int64 // its length, in bytes
	sum  hash.Hash
}

func newIncoming(file *os.File) (*incoming, error) {
	i := &incoming{file: file, sum: sha256.New()}
	at, err := io.Copy(i.sum, file)
	i.at.Store(at)
	return i, err
}

// restart empties the file.
func (i *incoming) restart() error {
	i.sum.Reset()
	i.at.Store(0)
	return i.file.Truncate(0)
}

// take appends what it reads. lost is an error of from, err one of the file.
func (i *incoming) take(from io.Reader) (lost, err error) {
	source := &failing{Reader: from}
	err = files.CopyAt(i.file, i.at.Load(), source, i.sum, i.at.Store)
	if source.err != nil {
		return source.err, nil
	}
	return nil, err
}

func (i *incoming) checksum() string { return hex.EncodeToString(i.sum.Sum(nil)) }

// failing keeps the error of a reader.
type failing struct {
	io.Reader
	err error
}

func (f *failing) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		f.err = err
	}
	return n, err
}

// outgoing is the rest of a file as the body of a request. The request closes the file. Its offset is what was sent,
// because the system sends most of it without calling Read.
type outgoing struct {
	fileOnDisk
	size int64
}

type fileOnDisk interface {
	io.ReadSeekCloser
	syscall.Conn
}

func newOutgoing(name string, at, size int64) (*outgoing, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, noLocal(name, err)
	}
	if _, err := file.Seek(at, io.SeekStart); err != nil {
		file.Close()
		return nil, noLocal(name, err)
	}
	return &outgoing{file, size}, nil
}

// at returns how much was sent, in bytes: all of it if the file is closed.
func (o *outgoing) at() int64 {
	at, err := o.Seek(0, io.SeekCurrent)
	if err != nil {
		return o.size
	}
	return at
}

// Read ends where the file ended first, even if it has grown.
func (o *outgoing) Read(p []byte) (int, error) {
	left := o.size - o.at()
	if left <= 0 {
		return 0, io.EOF
	}
	return o.fileOnDisk.Read(p[:min(left, int64(len(p)))])
}
