package files_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"slipway/backend/files"
	"slipway/backend/session"
)

// unread is a tree in which nothing that was written can be read.
type unread struct{ under }

func (u unread) OpenFile(p string, flag int, perm fs.FileMode) (*os.File, error) {
	if flag&os.O_RDWR != 0 {
		flag = flag&^os.O_RDWR | os.O_WRONLY
	}
	return u.under.OpenFile(p, flag, perm)
}

// noise is content that no other seed gives, of several blocks and a rest.
func noise(t *testing.T, seed byte) (data []byte, sum string) {
	t.Helper()
	data = make([]byte, 3<<20+1234)
	if _, err := rand.NewChaCha8([32]byte{seed}).Read(data); err != nil {
		t.Fatal(err)
	}
	of := sha256.Sum256(data)
	return data, hex.EncodeToString(of[:])
}

// uploading is one upload to a tree of its own.
type uploading struct {
	*testing.T
	tree files.Tree
	part string // where its part lies
}

func newUploading(t *testing.T, wrap func(under) files.FS) uploading {
	t.Helper()
	dir := t.TempDir()
	return uploading{t, files.Tree{FS: wrap(under{dir}), Home: "/", Sums: new(files.Sums)},
		filepath.Join(dir, ".slipway-k.part")}
}

func readable(u under) files.FS { return files.Of(u) }

func (u uploading) write(offset int64, data []byte) {
	u.Helper()
	up := session.Upload{Path: "a", Key: "k", Offset: offset}
	if _, err := u.tree.WriteUpload(u.Context(), up, bytes.NewReader(data)); err != nil {
		u.Error(err)
	}
}

func (u uploading) finish(size int, sum string) error {
	_, err := u.tree.FinishUpload(u.Context(), session.FinishRequest{Upload: session.Upload{Path: "a", Key: "k"},
		Finish: session.Finish{Size: int64(size), SHA256: sum}})
	return err
}

func TestWhatIsUploadedIsNotReadAgainForItsChecksum(t *testing.T) {
	data, sum := noise(t, 1)
	_, other := noise(t, 2)
	for _, pieces := range [][]int{{0}, {0, 5}, {0, 1 << 20, 2<<20 + 7}} {
		u := newUploading(t, func(u under) files.FS { return files.Of(unread{u}) })
		for i, from := range pieces {
			to := len(data)
			if i+1 < len(pieces) {
				to = pieces[i+1]
			}
			u.write(int64(from), data[from:to])
		}
		if err := u.finish(len(data), other); session.CodeOf(err) != "file_use_changed" {
			t.Errorf("another checksum: %v", err)
		}
		u.tree.Sums = new(files.Sums)
		if err := u.finish(len(data), sum); err == nil {
			t.Error("it can be read: this test shows nothing")
		}
	}
	u := newUploading(t, func(u under) files.FS { return files.Of(unread{u}) })
	u.write(0, data)
	if err := u.finish(len(data), sum); err != nil {
		t.Error(err)
	}
}

func TestAChecksumIsOfWhatIsThere(t *testing.T) {
	data, sum := noise(t, 1)
	other, otherSum := noise(t, 2)
	half := len(data) / 2
	for name, come := range map[string]func(u uploading){
		"a piece came twice": func(u uploading) {
			u.write(0, other[:half])
			u.write(0, data[:half])
			u.write(int64(half), data[half:])
		},
		"all of it came anew": func(u uploading) {
			u.write(0, other)
			u.write(0, data)
		},
		"pieces overlap": func(u uploading) {
			u.write(0, data[:half])
			u.write(int64(half-1000), data[half-1000:])
		},
		"it was begun before a restart": func(u uploading) {
			u.write(0, data[:half])
			u.tree.Sums = new(files.Sums)
			u.write(int64(half), data[half:])
		},
		"somebody else wrote to the part": func(u uploading) {
			u.write(0, other)
			later := time.Now().Add(time.Second)
			if err := os.WriteFile(u.part, data, 0o600); err != nil {
				u.Fatal(err)
			}
			if err := os.Chtimes(u.part, later, later); err != nil {
				u.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUploading(t, readable)
			come(u)
			if err := u.finish(len(data), otherSum); session.CodeOf(err) != "file_use_changed" {
				t.Errorf("the checksum of what is not there: %v", err)
			}
			if err := u.finish(len(data), sum); err != nil {
				t.Error(err)
			}
		})
	}
}

// Writers of different content at the same time leave some mixture of both. Its
// checksum is neither's, unless one of them came whole after the other.
func TestWritersAtTheSameTimeAreNotTakenForOne(t *testing.T) {
	data, _ := noise(t, 1)
	other, _ := noise(t, 2)
	for range 20 {
		u := newUploading(t, readable)
		var both sync.WaitGroup
		for _, content := range [][]byte{data, other} {
			both.Go(func() { u.write(0, content) })
		}
		both.Wait()
		there, err := os.ReadFile(u.part)
		if err != nil {
			t.Fatal(err)
		}
		of := sha256.Sum256(there)
		if err := u.finish(len(there), hex.EncodeToString(of[:])); err != nil {
			t.Fatal(err)
		}
	}
}
