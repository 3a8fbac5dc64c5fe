package place

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
)

// excerptMost is how much of a log is quoted, in bytes.
const excerptMost = 2 << 10

// Program is path, or that of this program where path is empty.
func Program(path string) (string, error) {
	if path != "" {
		return path, nil
	}
	return os.Executable()
}

// Background is a program that outlives whoever started it and writes to a log.
type Background struct {
	Exited <-chan struct{} // closed when it has ended

	process *os.Process
	log     string
	begin   int64 // length of the log before
}

// Start runs a program in the folder, detached from the terminal, with its output
// at the end of a log.
func (h Home) Start(log string, env []string, program string, args ...string) (*Background, error) {
	if err := h.Make(); err != nil {
		return nil, err
	}
	output, err := os.OpenFile(log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer output.Close() // the child has its own
	begin, err := output.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = h.Dir, append(env, "SLIPWAY_HOME="+h.Dir)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = Detached()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = cmd.Wait() // how it ended is in its log
	}()
	return &Background{Exited: exited, process: cmd.Process, log: log, begin: begin}, nil
}

// PID is the id of the process.
func (b *Background) PID() int { return b.process.Pid }

// Kill ends the process, if it has not ended, and waits for that.
func (b *Background) Kill() {
	_ = b.process.Kill() // it fails where the process has ended already
	<-b.Exited
}

// Said is the end of what the program has written, at most 2 KiB.
func (b *Background) Said() string { return logEnd(b.log, b.begin) }

func logEnd(path string, from int64) string {
	data, err := os.ReadFile(path)
	if err != nil || int64(len(data)) < from {
		return ""
	}
	data = data[max(from, int64(len(data))-excerptMost):]
	return strings.TrimSpace(string(bytes.ToValidUTF8(data, nil)))
}
