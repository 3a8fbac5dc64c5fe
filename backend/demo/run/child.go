package run

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"os/signal"
)

// child is a second process of this program. It ends with its standard
// input, so it never outlives who started it.
type child struct {
	input io.Closer
	told  chan []byte // holds its first line; closed where there is none
	ended chan struct{}
}

// startChild starts one and does not wait for it. program starts this
// program; empty: the running one.
func startChild(ctx context.Context, program []string, args ...string) (*child, error) {
	if len(program) == 0 {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		program = []string{self}
	}
	args = append(program[1:len(program):len(program)], args...)
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program[0], args...)
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &child{input: input, told: make(chan []byte, 1), ended: make(chan struct{})}
	go func() {
		defer close(c.ended)
		c.listen(output)
		_ = cmd.Wait() // how it ended is in its log
	}()
	return c, nil
}

// listen reads the one line that the process says and waits for its end.
func (c *child) listen(output io.Reader) {
	defer close(c.told)
	lines := bufio.NewReader(output)
	if line, err := lines.ReadBytes('\n'); err == nil {
		c.told <- line
	}
	_, _ = io.Copy(io.Discard, lines) // it says nothing more
}

// end ends the process and waits for it.
func (c *child) end() error {
	err := c.input.Close()
	<-c.ended
	return err
}

// childContext returns what such a process does its work under: it ends with the
// standard input, and not with an interrupt, which is meant for who started it.
func childContext(stdin io.Reader) (context.Context, context.CancelFunc) {
	signal.Ignore(os.Interrupt)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, stdin) // nothing comes but the end
		cancel()
	}()
	return ctx, cancel
}
