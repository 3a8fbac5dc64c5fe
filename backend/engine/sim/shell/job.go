package shell

import (
	"context"
	"io"
	"os"
	"strings"
	"sync/atomic"

	"mvdan.cc/sh/v3/interp"
)

// Job is a command that runs without a terminal.
type Job struct {
	stdin  io.WriteCloser // nil: none
	stdout io.Reader
	stderr io.Reader
	cancel context.CancelFunc
	done   chan struct{}
	code   atomic.Int64
}

// JobConfig describes a job. Set either Argv or Script.
type JobConfig struct {
	Argv   []string
	Script string
	Env    []string
	Dir    string
	Stdin  bool
	// Output gets stdout and stderr in order; then Stdout and Stderr of the job are empty. nil: they are separate.
	Output io.Writer
}

// Start starts a job.
func Start(w *World, config JobConfig) (*Job, error) {
	script, title := config.Script, "sh -c "+strings.SplitN(config.Script, " ", 2)[0]
	if len(config.Argv) > 0 {
		script, title = quoted(config.Argv), strings.Join(config.Argv, " ")
	}
	ctx, cancel := context.WithCancel(context.Background())
	none := strings.NewReader("")
	j := &Job{cancel: cancel, done: make(chan struct{}), stdout: none, stderr: none}
	run := Config{Env: config.Env, Dir: config.Dir, Stdout: config.Output, Stderr: config.Output}
	far, err := j.connect(config, &run)
	var s *Shell
	if err == nil {
		s, err = New(w, run)
	}
	hangUp := func() {
		for _, end := range far {
			end.Close() //nolint:errcheck // the near end sees the end
		}
	}
	if err != nil {
		cancel()
		hangUp()
		return nil, err
	}
	context.AfterFunc(ctx, hangUp) // so that a command that is killed does not wait for who reads
	process := w.Begin(title, "?", cancel)
	go func() {
		code := s.Run(ctx, script, "sh")
		w.End(process)
		j.code.CompareAndSwap(0, int64(code)) // that of a signal stays
		hangUp()
		cancel()
		close(j.done)
	}()
	return j, nil
}

func (j *Job) connect(config JobConfig, run *Config) (far []io.Closer, err error) {
	if config.Stdin {
		reader, writer, err := os.Pipe() // the interpreter needs a file
		if err != nil {
			return nil, err
		}
		j.stdin, run.Stdin, far = writer, reader, append(far, reader)
	}
	if config.Output == nil {
		out, farOut := io.Pipe()
		errs, farErrs := io.Pipe()
		j.stdout, j.stderr, run.Stdout, run.Stderr, far = out, errs, farOut, farErrs, append(far, farOut, farErrs)
	}
	return far, nil
}

// Stdin is nil if the job has none.
func (j *Job) Stdin() io.WriteCloser { return j.stdin }

func (j *Job) Stdout() io.Reader { return j.stdout }

func (j *Job) Stderr() io.Reader { return j.stderr }

// Signal ends the job with 128 and the number, unless the signal is 0 or ignored by default.
func (j *Job) Signal(number int) error {
	switch number {
	case 0, 17, 18, 23, 28: // none, CHLD, CONT, URG, WINCH
		return nil
	}
	j.code.CompareAndSwap(0, int64(128+number))
	j.cancel()
	return nil
}

func (j *Job) Wait() int {
	<-j.done
	return int(j.code.Load())
}

func (j *Job) Kill() {
	j.Signal(15) //nolint:errcheck // always nil
}

// Which returns the paths of those names that are programs.
func (w *World) Which(names []string) map[string]string {
	found := map[string]string{}
	all := w.utilities()
	for _, name := range names {
		if _, ok := all[baseName(name)]; ok {
			found[name] = "/usr/bin/" + baseName(name)
		}
	}
	return found
}

// Known reports whether a name is a utility or a builtin.
func (w *World) Known(name string) bool {
	name = utilityName(name)
	_, utility := w.utilities()[name]
	return utility || interp.IsBuiltin(name)
}

func quoted(words []string) string {
	parts := make([]string, len(words))
	for i, word := range words {
		parts[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return strings.Join(parts, " ")
}
