package sim

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/pkg/sftp"

	"slipway/backend/session"
	"slipway/backend/terminal"
)

// transfer is a server of sftp on the files of a simulated container.
type transfer struct {
	in     *io.PipeWriter
	out    *io.PipeReader
	server *sftp.RequestServer
	ended  chan struct{}
}

func (p *processes) SFTP() (terminal.Process, error) {
	asked, in := io.Pipe()
	out, answers := io.Pipe()
	tree := sftpTree{simulatedFS{p.world.FS}}
	streams := struct {
		io.Reader
		io.WriteCloser
	}{asked, answers}
	server := sftp.NewRequestServer(streams, sftp.Handlers{FileGet: tree, FilePut: tree, FileCmd: tree, FileList: tree},
		sftp.WithStartDirectory(session.Home))
	t := &transfer{in: in, out: out, server: server, ended: make(chan struct{})}
	go func() {
		defer close(t.ended)
		_ = server.Serve() // ends with its input
		_ = server.Close()
		_ = asked.Close()
	}()
	return t, nil
}

func (t *transfer) Stdin() io.WriteCloser { return t.in }
func (t *transfer) Stdout() io.Reader     { return t.out }
func (t *transfer) Stderr() io.Reader     { return strings.NewReader("") }

func (t *transfer) Signal(int) error {
	t.Kill()
	return nil
}

func (t *transfer) Wait() int {
	<-t.ended
	return 0
}

func (t *transfer) Kill() { _ = t.server.Close() }

// sftpTree answers the calls of sftp.
type sftpTree struct{ files simulatedFS }

func (t sftpTree) Fileread(r *sftp.Request) (io.ReaderAt, error) {
	return t.files.OpenFile(r.Filepath, os.O_RDONLY, 0)
}

func (t sftpTree) Filewrite(r *sftp.Request) (io.WriterAt, error) {
	asked, flag := r.Pflags(), os.O_WRONLY
	if asked.Creat {
		flag |= os.O_CREATE
	}
	if asked.Trunc {
		flag |= os.O_TRUNC
	}
	if asked.Excl {
		flag |= os.O_EXCL
	}
	return t.files.OpenFile(r.Filepath, flag, 0o644)
}

func (t sftpTree) Filecmd(r *sftp.Request) error {
	switch r.Method {
	case "Mkdir":
		return t.files.Mkdir(r.Filepath)
	case "Rename", "PosixRename":
		return t.files.Rename(r.Filepath, r.Target)
	case "Remove", "Rmdir":
		return t.files.Remove(r.Filepath)
	case "Setstat":
		var modeErr, timeErr error
		if r.AttrFlags().Permissions {
			modeErr = t.files.Chmod(r.Filepath, r.Attributes().FileMode())
		}
		if r.AttrFlags().Acmodtime {
			timeErr = t.files.Chtimes(r.Filepath, r.Attributes().ModTime())
		}
		return errors.Join(modeErr, timeErr)
	}
	return sftp.ErrSSHFxOpUnsupported
}

func (t sftpTree) Filelist(r *sftp.Request) (sftp.ListerAt, error) {
	if r.Method != "List" {
		info, err := t.files.Stat(r.Filepath)
		return listed{info}, err
	}
	entries, err := t.files.ReadDir(r.Filepath)
	list := make(listed, 0, len(entries))
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil { // else it is gone
			list = append(list, info)
		}
	}
	return list, err
}

// listed lists what is known already.
type listed []fs.FileInfo

func (l listed) ListAt(into []fs.FileInfo, from int64) (int, error) {
	if from >= int64(len(l)) {
		return 0, io.EOF
	}
	n := copy(into, l[from:])
	if n < len(into) {
		return n, io.EOF
	}
	return n, nil
}
