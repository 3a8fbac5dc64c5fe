package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/client"
	"slipway/backend/session"
)

const (
	// copiedBytes is the size of the file that is brought and fetched.
	copiedBytes = 1 << 30
	// pieceBytes is how much the user interface sends in one request.
	pieceBytes = 64 << 20
	// copiedName is what the file is called in the folder.
	copiedName = "large.bin"
	// listedFiles is how many entries the listed folder has.
	listedFiles = 10_000
	// mostGrown is by how much the program may grow while it copies.
	mostGrown = 64 << 20
)

// measureFiles brings a large file to a folder and fetches it, as the user
// interface and the command line do, beside cp and a bare connection on the
// loopback, and lists a folder with many entries.
func measureFiles(ctx context.Context, p *plane, o options, r *report) error {
	dir, err := os.MkdirTemp("", "slipway-bench-files-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
	c := &carrier{plane: p, binary: o.binary, dir: dir, source: filepath.Join(dir, "source.bin")}
	if err := c.prepare(ctx); err != nil {
		return err
	}
	if err := c.cut(ctx, r); err != nil {
		return fmt.Errorf("a cut: %w", err)
	}
	if err := c.compare(ctx, o.copies, r); err != nil {
		return err
	}
	return c.list(ctx, r)
}

// carrier copies one file in several ways.
type carrier struct {
	*plane
	binary string
	dir    string // of our own
	source string // the file that is copied
	sum    string // its SHA-256
	folder api.Folder
}

// prepare makes the file and a folder that is a directory of this machine, so
// that what came of it can be looked at.
func (c *carrier) prepare(ctx context.Context) error {
	var err error
	if c.sum, err = makeNoise(c.source); err != nil {
		return err
	}
	linked := filepath.Join(c.dir, "folder")
	if err := os.Mkdir(linked, 0o700); err != nil {
		return err
	}
	c.folder, err = route.FolderCreate.Body(api.FolderRequest{
		FolderRequest: session.FolderRequest{Name: "bench-files", Path: linked}}).Ask(ctx, c)
	return err
}

// makeNoise makes a file of copiedBytes that nothing can make smaller, and returns its SHA-256.
func makeNoise(name string) (string, error) {
	file, err := os.Create(name)
	if err != nil {
		return "", err
	}
	defer file.Close() //nolint:errcheck // it is synced
	sum := sha256.New()
	noise := rand.NewChaCha8([32]byte{1})
	if _, err := io.CopyN(io.MultiWriter(file, sum), noise, copiedBytes); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), file.Sync()
}

// copied is a route to the file in the folder.
func copied[In, Out any](c *carrier, at route.Route[In, Out]) route.Route[In, Out] {
	return at.At(string(c.folder.ID)).With("path", copiedName)
}

// transfers makes requests whose body or answer is long.
func (c *carrier) transfers() *client.Client {
	patient := *c.Client
	patient.HTTP = &http.Client{Transport: c.HTTP.Transport}
	return &patient
}

// upload brings the file from an offset on in pieces, as a page does, and
// stops after so many bytes.
func (c *carrier) upload(ctx context.Context, key string, from, most int64) error {
	file, err := os.Open(c.source)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it is only read
	files := route.FolderFiles()
	for at := from; at < most; at += pieceBytes {
		piece := io.NewSectionReader(file, at, min(pieceBytes, most-at))
		to := copied(c, files.UploadWrite).With("key", key).With("offset", strconv.FormatInt(at, 10))
		resp, err := c.transfers().Transfer(ctx, to.Method(), to.Target(), nil,
			client.Sized{Reader: piece, Length: piece.Size()})
		if err != nil {
			return err
		}
		if err := resp.Body.Close(); err != nil {
			return err
		}
	}
	return nil
}

// finish makes the file of an upload appear; it compares a checksum where one is given.
func (c *carrier) finish(ctx context.Context, key, sum string) error {
	_, err := copied(c, route.FolderFiles().UploadFinish).With("key", key).Body(api.FinishRequest{
		Finish: session.Finish{Size: copiedBytes, SHA256: sum, Conflict: "replace"}}).Ask(ctx, c)
	return err
}

// download fetches the file from an offset on and writes it down.
func (c *carrier) download(ctx context.Context, to string, from int64) error {
	at := copied(c, route.FolderFiles().Read)
	resp, err := c.transfers().Transfer(ctx, at.Method(), at.Target(),
		http.Header{"Range": {fmt.Sprintf("bytes=%d-", from)}}, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it is read to its end
	return writeDown(to, from, resp.Body)
}

// cli runs the program as a person does.
func (c *carrier) cli(ctx context.Context, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, c.binary, args...)
	command.Env = c.env
	return command
}

func (c *carrier) cliCopy(ctx context.Context, from, to string) error {
	if said, err := c.cli(ctx, "cp", "-f", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("slipway cp %s %s: %w: %s", from, to, err, bytes.TrimSpace(said))
	}
	return nil
}

// plainCopy is cp, and the wait for the disk that every copy of ours ends with.
func (c *carrier) plainCopy(ctx context.Context, to string) error {
	if said, err := exec.CommandContext(ctx, "cp", c.source, to).CombinedOutput(); err != nil {
		return fmt.Errorf("cp: %w: %s", err, said)
	}
	file, err := os.OpenFile(to, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// loopback sends as many bytes through a bare connection.
func loopback(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer listener.Close() //nolint:errcheck // one connection is all
	sent := make(chan error, 1)
	go func() {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", listener.Addr().String())
		if err != nil {
			sent <- err
			return
		}
		buffer := make([]byte, hopBytes)
		for left := copiedBytes; left > 0 && err == nil; left -= len(buffer) {
			_, err = conn.Write(buffer)
		}
		sent <- errors.Join(err, conn.Close())
	}()
	conn, err := listener.Accept()
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // it is read to its end
	buffer := make([]byte, hopBytes)
	for {
		if _, err := conn.Read(buffer); errors.Is(err, io.EOF) {
			return <-sent
		} else if err != nil {
			return err
		}
	}
}
