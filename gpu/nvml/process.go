package nvml

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

type child struct {
	cmd      *exec.Cmd
	stdin    io.WriteCloser
	answers  chan answer
	box      *os.File
	stderr   *head
	patience time.Duration

	gone  chan struct{} // closed when the process has ended
	state error         // how it ended; read after gone
}

// endPatience is how long a child may take to end before it is left behind.
const endPatience = 2 * time.Second

func start(c Config) (*child, error) {
	command := c.Command
	if len(command) == 0 {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		command = []string{self, ChildCommand}
	}
	if c.Library != "" {
		command = append(command[:len(command):len(command)], "-library", c.Library)
	}
	box, err := os.CreateTemp("", "slipway-gpu-*")
	if err != nil {
		return nil, err
	}
	os.Remove(box.Name()) // the open file is all that is needed
	command = append(command[:len(command):len(command)], "-box")
	k := &child{answers: make(chan answer, 1), box: box, stderr: &head{}, patience: c.Patience,
		gone: make(chan struct{})}
	k.cmd = exec.Command(command[0], command[1:]...)
	k.cmd.Env = append(os.Environ(), c.Env...)
	k.cmd.Stderr = k.stderr
	k.cmd.ExtraFiles = []*os.File{box}
	k.cmd.WaitDelay = endPatience
	if k.stdin, err = k.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := k.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := k.cmd.Start(); err != nil {
		box.Close()
		return nil, err
	}
	go k.listen(stdout)
	return k, nil
}

// listen reads answers until the child's output ends, then waits for its end. An answer that came too late is dropped.
func (k *child) listen(stdout io.Reader) {
	for next := messages(stdout); ; {
		var a answer
		if err := next(&a); err != nil {
			break
		}
		select {
		case <-k.answers:
		default:
		}
		k.answers <- a
	}
	// Output that makes no sense ends a child as surely as its death does.
	_ = k.cmd.Process.Kill()
	k.state = k.cmd.Wait()
	close(k.gone)
}

func (k *child) alive() bool {
	select {
	case <-k.gone:
		return false
	default:
		return true
	}
}

// ask sends a request and waits for its answer, as long as no single call takes longer than patience.
func (k *child) ask(ctx context.Context, r request, patience time.Duration) (answer, error) {
	sent := make(chan error, 1)
	go func() { sent <- json.NewEncoder(k.stdin).Encode(r) }()
	look := time.NewTicker(patience / 8)
	defer look.Stop()
	seq, _, _ := lastCall(k.box)
	moved := time.Now()
	for {
		select {
		case a := <-k.answers:
			if a.ID == r.ID {
				return a, nil
			}
		case <-k.gone:
			select {
			case a := <-k.answers: // it answered and then died
				if a.ID == r.ID {
					return a, nil
				}
			default:
			}
			return answer{}, errDied
		case err := <-sent:
			if err != nil && !k.alive() {
				return answer{}, errDied
			}
		case <-look.C:
			if now, _, _ := lastCall(k.box); now != seq {
				seq, moved = now, time.Now()
			}
			if time.Since(moved) > patience {
				return answer{}, errHang
			}
		case <-ctx.Done():
			return answer{}, ctx.Err()
		}
	}
}

// end kills the child and reports whether it ended soon. A process that hangs in the kernel cannot be killed.
func (k *child) end() bool {
	k.stdin.Close()
	_ = k.cmd.Process.Kill()
	defer k.box.Close()
	select {
	case <-k.gone:
		return true
	case <-time.After(endPatience):
		return false
	}
}

func (k *child) lastLine() string {
	select {
	case <-k.gone:
	case <-time.After(endPatience):
	}
	if text := k.stderr.firstLine(); text != "" {
		return text
	}
	if k.alive() || k.state == nil {
		return ""
	}
	return fmt.Sprint(k.state)
}

// head keeps the beginning of what is written to it.
type head struct {
	mu   sync.Mutex // guards kept
	kept bytes.Buffer
}

const headSize = 4 << 10

func (h *head) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.kept.Write(p[:min(len(p), headSize-min(headSize, h.kept.Len()))])
	return len(p), nil
}

func (h *head) firstLine() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for line := range strings.Lines(h.kept.String()) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}

// blackBox shows the parent what its child was doing when it died or hung: a file of one record that the child
// overwrites before every call into the library. It costs the child a microsecond and the parent nothing.
type blackBox struct {
	file *os.File // nil: nothing is recorded
	seq  uint64
}

const boxSize = 256

func (b *blackBox) enter(call, device string) {
	b.seq++
	if b.file == nil {
		return
	}
	var record [boxSize]byte
	binary.BigEndian.PutUint64(record[:8], b.seq)
	copy(record[8:], call+" "+device)
	// A record that cannot be written only makes the reason of a crash vaguer.
	_, _ = b.file.WriteAt(record[:], 0)
}

func (b *blackBox) leave() { b.enter("", "") }

// lastCall reads the record: its number, and the call and its device while one is being made.
func lastCall(box io.ReaderAt) (seq uint64, call, device string) {
	var record [boxSize]byte
	if n, _ := box.ReadAt(record[:], 0); n < boxSize {
		return 0, "", ""
	}
	text := strings.TrimRight(string(record[8:]), "\x00")
	call, device, _ = strings.Cut(text, " ")
	return binary.BigEndian.Uint64(record[:8]), call, device
}
