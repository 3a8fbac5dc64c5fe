package guest

import (
	"io"
	"os"

	"github.com/pkg/sftp"
	"golang.org/x/sys/unix"

	"slipway/backend/terminal"
)

var (
	_ SFTPServer = (*container)(nil)
	_ Network    = (*container)(nil)
)

// SFTP implements [SFTPServer] by a guest of its own process, which is the work
// user without any capability: what that user may not do, it cannot do either.
func (c *container) SFTP() (terminal.Process, error) {
	return c.Start(Command{Argv: []string{selfPath, "sftp"}, Stdin: true})
}

// sftpMain is that process: it speaks sftp over its standard streams.
func sftpMain() int {
	unix.Umask(0o022)
	streams := struct {
		io.Reader
		io.WriteCloser
	}{os.Stdin, os.Stdout}
	server, err := sftp.NewServer(streams, sftp.WithServerWorkingDirectory(homePath))
	if err != nil {
		return 1
	}
	if err := server.Serve(); err != nil && err != io.EOF { //nolint:errorlint // it is returned as it is
		return 1
	}
	return 0
}
