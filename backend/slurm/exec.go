package slurm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Exec runs a command of this computer. With --test-only, sbatch prints its answer on standard error, so that is
// returned then. Variables that would change what commands do or print are taken out of the environment.
func Exec(ctx context.Context, name string, args []string, stdin []byte) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = environment(os.Environ())
	cmd.Stdin = bytes.NewReader(stdin)
	cmd.WaitDelay = 5 * time.Second // for processes that it leaves behind
	defer tie(cmd)()
	out, said := &bounded{most: maxOutput}, &bounded{most: maxSaid, drop: true}
	cmd.Stdout, cmd.Stderr = out, said
	err := cmd.Run()
	if cause := context.Cause(ctx); cause != nil && err != nil {
		return nil, cause
	}
	if out.full {
		return nil, errTooMuch
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, &Failure{Command: name, Exit: exit.ExitCode(), Said: cleanLines(string(said.data))}
	}
	if err != nil {
		return nil, err
	}
	if slices.Contains(args, testOnly) {
		return said.data, nil
	}
	return out.data, nil
}

var errTooMuch = fmt.Errorf("it printed more than %d bytes", maxOutput)

// bounded takes at most most bytes. It fails on more, which ends the command, or drops the rest.
type bounded struct {
	data []byte
	most int
	drop bool
	full bool // there was more
}

func (b *bounded) Write(data []byte) (int, error) {
	fits := min(len(data), b.most-len(b.data))
	b.data = append(b.data, data[:fits]...)
	if b.full = b.full || fits < len(data); b.full && !b.drop {
		return fits, errTooMuch
	}
	return len(data), nil
}

// environment is the environment of commands: that of the agent, without what changes their options or output.
func environment(all []string) []string {
	changes := func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		if name == "SLURM_CONF" || name == "SLURM_CONF_SERVER" {
			return false
		}
		return slices.ContainsFunc([]string{"SLURM_", "SBATCH_", "SQUEUE_", "SINFO_", "SACCT_", "SACCTMGR_", "SCANCEL_",
			"SCONTROL_", "LC_"}, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
	}
	return append(slices.DeleteFunc(slices.Clone(all), changes), "SLURM_TIME_FORMAT=%s", "LC_ALL=C")
}

// prefixes are how lines on standard error begin, for example "sbatch: error: Batch job submission failed: ".
var prefixes = regexp.MustCompile(
	`^([a-z]+: )?(error|fatal|lua): ((Batch job submission failed|allocation failure): )?`)

// cleanLines returns the printable lines of a text, without how Slurm's commands begin them.
func cleanLines(text string) string {
	var said []string
	for line := range strings.Lines(text) {
		if line = prefixes.ReplaceAllString(clean(line, maxNotes), ""); line != "" {
			said = append(said, line)
		}
	}
	return strings.Join(said, "\n")
}
