package layers

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"slipway/backend/session"
	"slipway/gpu"
	"slipway/tunnel/frame"
)

// partial is an incomplete part: a file of size bytes of chunk frames, with content bytes of content and its hash.
type partial struct {
	name    string
	file    *os.File // nil between two receivers
	size    int64
	content gpu.Bytes
	sum     hash.Hash
}

// names returns the parts of an image, each once.
func names(of session.ImageParts) []string {
	names := []string{session.ImageConfig}
	for _, layer := range of.Layers {
		if !slices.Contains(names, layer.Digest) {
			names = append(names, layer.Digest)
		}
	}
	return names
}

func (i *image) path(name string) string {
	return filepath.Join(i.dir, strings.TrimPrefix(name, "sha256:"))
}

// whole returns the file of a complete part, and the size of its content.
func (i *image) whole(name string) (path string, size gpu.Bytes, ok bool) {
	found, err := filepath.Glob(i.path(name) + ".[0-9]*")
	if err != nil || len(found) != 1 {
		return "", 0, false
	}
	bytes, err := strconv.ParseInt(found[0][strings.LastIndexByte(found[0], '.')+1:], 10, 64)
	return found[0], gpu.Bytes(bytes), err == nil
}

// open opens the file of an incomplete part, without a damaged last frame from a process that died while writing it.
func (i *image) open(name string) (*partial, error) {
	file, err := os.OpenFile(i.path(name)+".part", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if known := i.partial; known != nil && known.name == name && known.file == nil {
		known.file = file
		if err := known.rewind(); err == nil {
			return known, nil
		}
	}
	found := &partial{name: name, file: file, sum: sha256.New()}
	if err := found.recover(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	i.partial = found
	return found, nil
}

func (i *image) kept(name string) (gpu.Bytes, error) {
	if _, err := os.Stat(i.path(name) + ".part"); errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	under, err := i.open(name)
	if err != nil {
		return 0, err
	}
	file := under.file
	under.file = nil
	return under.content, file.Close()
}

// arrived returns how much of the image's content has arrived; for an unopened part, the size of its file.
func (i *image) arrived() (sum gpu.Bytes) {
	for _, name := range names(i.parts) {
		if _, size, ok := i.whole(name); ok {
			sum += size
		} else if known := i.partial; known != nil && known.name == name {
			sum += known.content
		} else if info, err := os.Stat(i.path(name) + ".part"); err == nil {
			sum += gpu.Bytes(info.Size())
		}
	}
	return sum
}

func (p *partial) recover() error {
	unpack, err := newUnpacker()
	if err != nil {
		return err
	}
	defer unpack.close()
	reader := NewReader(p.file)
	for {
		frame, err := reader.Next()
		if err != nil || frame.Kind != kindChunk {
			return p.rewind()
		}
		content, err := unpack.open(frame)
		if err != nil {
			return p.rewind()
		}
		p.add(frame, content)
	}
}

func (p *partial) add(f Frame, content []byte) {
	p.sum.Write(content)
	p.content += f.Content
	p.size += int64(frame.HeadSize + len(f.Payload))
}

// rewind truncates the file after the last valid frame.
func (p *partial) rewind() error {
	if err := p.file.Truncate(p.size); err != nil {
		return err
	}
	_, err := p.file.Seek(p.size, io.SeekStart)
	return err
}

func (p *partial) write(frame Frame, content []byte) error {
	if err := frame.write(p.file); err != nil {
		return err
	}
	p.add(frame, content)
	return nil
}

// finish checks the content of a part and completes it, or removes it.
func (i *image) finish(p *partial) error {
	i.partial = nil
	before := i.path(p.name) + ".part"
	if sum := "sha256:" + hex.EncodeToString(p.sum.Sum(nil)); p.name != session.ImageConfig && sum != p.name {
		return errors.Join(corrupt("a layer is %s and should be %s", sum, p.name), p.file.Close(), os.Remove(before))
	}
	if err := errors.Join(p.file.Sync(), p.file.Close()); err != nil {
		return err
	}
	if err := os.Rename(before, i.path(p.name)+"."+strconv.FormatInt(int64(p.content), 10)); err != nil {
		return err
	}
	return syncDir(i.dir)
}

type content struct {
	file   *os.File
	reader *Reader
	unpack *unpacker
	left   []byte
}

// Open opens the content of a part. The caller closes it.
func (s Stored) Open() (io.ReadCloser, error) {
	file, err := os.Open(s.path)
	if err != nil {
		return nil, err
	}
	unpack, err := newUnpacker()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &content{file: file, reader: NewReader(file), unpack: unpack}, nil
}

func (c *content) Read(p []byte) (int, error) {
	for len(c.left) == 0 {
		frame, err := c.reader.Next()
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, io.EOF // the file has no end frame; its digest was checked
		}
		if err != nil {
			return 0, err
		}
		if c.left, err = c.unpack.open(frame); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.left)
	c.left = c.left[n:]
	return n, nil
}

func (c *content) Close() error {
	c.unpack.close()
	return c.file.Close()
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
