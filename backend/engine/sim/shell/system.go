package shell

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"

	"slipway/gpu"
)

func says(line func(c *command) string) utility {
	return utility{run: func(c *command) int {
		c.printf("%s\n", line(c))
		return 0
	}}
}

const processHead = "    PID USER     TTY      %CPU   %MEM      RES      TIME COMMAND"

// row is a process in ps and top.
func (c *command) row(p Process) string {
	user := c.world.User
	if p.PID == guestPID {
		user = "root"
	}
	cpu := int(p.cpu(c.world.now()).Seconds())
	return fmt.Sprintf("%7d %-8s %-6s %6.1f %6.1f %8s  %02d:%02d:%02d %s", p.PID, user, p.TTY, 100*(p.load+idleLoad),
		100*float64(p.memory)/float64(max(c.world.Memory, 1)), human(p.memory), cpu/3600, cpu/60%60, cpu%60, p.Command)
}

// processes ignores its options.
func processes(c *command) int {
	c.printf("%s\n", processHead)
	for _, p := range c.table() {
		c.printf("%s\n", c.row(p))
	}
	return 0
}

func environment(c *command) int {
	if len(c.operands) > 0 {
		return c.usage("(to set a variable for one command: NAME=value COMMAND)")
	}
	for _, pair := range slices.Sorted(slices.Values(c.exported())) {
		c.printf("%s\n", pair)
	}
	return 0
}

// exported is the environment of programs, each variable as NAME=value.
func (c *command) exported() []string {
	var env []string
	for n, v := range c.env.Each {
		if v.Exported && v.Kind == expand.String {
			env = append(env, n+"="+v.Str)
		}
	}
	return env
}

// duration parses a duration, by default in seconds.
func duration(text string) (time.Duration, error) {
	if strings.TrimRight(text, "0123456789.") == "" {
		text += "s"
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("invalid time interval '%s'", text)
	}
	return d, nil
}

func sleep(c *command) int {
	d, err := duration(strings.Join(c.operands, " "))
	if err != nil {
		return c.fail("%v", err)
	}
	c.pause(d)
	return 0
}

// stress simulates a load on CPUs and memory. Too much memory kills it, as the kernel would.
func stress(c *command) int {
	cpus, errCPU := c.number("cpu", 0)
	workers, errVM := c.number("vm", 1)
	memory, errBytes := gpu.ParseBytes(cmp.Or(c.flags["vm-bytes"], "0"))
	length, errTime := duration(cmp.Or(c.flags["timeout"], "24000h"))
	if err := errors.Join(errCPU, errVM, errBytes, errTime); err != nil {
		return c.fail("%v", err)
	}
	held := int64(min(workers, 1<<20)) * int64(min(memory, gpu.TiB))
	if !c.world.Load(c.process, float64(min(cpus, c.world.CPUs))*0.98, held) {
		c.printf("Killed\n")
		return 137
	}
	c.pause(length)
	return 0
}

// shellUtility runs the script after -c, of a file, or from the input.
func shellUtility(c *command) int {
	args := c.operands
	if len(args) > 1 && strings.HasPrefix(args[0], "-") && strings.HasSuffix(args[0], "c") {
		name, rest := c.name, args[2:]
		if len(rest) > 0 {
			name, rest = rest[0], rest[1:]
		}
		return c.nested(args[1], name, rest)
	}
	if len(args) == 0 {
		script, err := slurp(c.stdin())
		if err != nil {
			return c.fail("%s", errText(err))
		}
		return c.nested(string(script), c.name, nil)
	}
	data, err := c.world.FS.ReadFile(c.path(args[0]))
	if err != nil {
		c.fail("%s: %s", args[0], errText(err))
		return 127
	}
	return c.nested(string(data), args[0], args[1:])
}

// which prints the paths of programs and names builtins. It also implements type and command -v.
func which(c *command) int {
	code := 0
	for _, name := range c.operands {
		switch _, program := c.shell.utilities[name]; {
		case program:
			c.printf("/usr/bin/%s\n", name)
		case interp.IsBuiltin(name):
			c.printf("%s: shell builtin\n", name)
		default:
			code = c.fail("%s: not found", name)
		}
	}
	return code
}

func help(c *command) int {
	c.printf(`This session is simulated. It has a shell and these commands:

%s

Files are real and stay in the session. No program of this computer is run.
train pretends to train a model on the session's GPUs; nvidia-smi and top show how busy they are.
stress --cpu N --vm-bytes SIZE --timeout SECONDS makes the session busy.
llama-server --model FILE --port N pretends to serve a model, with the API of OpenAI.
`, strings.Join(c.shell.names(), " "))
	return 0
}

func kill(c *command) int {
	code := 0
	for _, operand := range c.operands {
		pid, err := strconv.Atoi(operand)
		switch {
		case strings.HasPrefix(operand, "-"): // a signal: any ends a process
		case err != nil:
			code = c.fail("%s: arguments must be process IDs", operand)
		case !c.world.Kill(pid):
			code = c.fail("(%d) - No such process", pid)
		}
	}
	return code
}

// top shows the processes, busiest first, until q is pressed; without a terminal it prints them once.
func top(c *command) int {
	terminal := c.shell.config.Terminal
	if !c.tty {
		c.printf("%s\n", strings.Join(c.picture(), "\n"))
		return 0
	}
	terminal.raw.Store(true)
	defer terminal.raw.Store(false)
	c.printf("\x1b[?1049h\x1b[?25l")
	defer c.printf("\x1b[?25h\x1b[?1049l")
	keys := c.keys()
	for {
		cols, rows := int(terminal.cols.Load()), int(terminal.rows.Load())
		lines := c.picture()
		lines = lines[:min(len(lines), rows)]
		for i, line := range lines {
			lines[i] = string([]rune(line)[:min(len([]rune(line)), cols)])
		}
		c.printf("\x1b[H%s\x1b[K\x1b[J", strings.Join(lines, "\x1b[K\n"))
		timer := c.world.Clock.Timer(2 * time.Second)
		select {
		case key, ok := <-keys:
			timer.Stop()
			if !ok || key == 'q' {
				return 0
			}
		case <-timer.C:
		case <-c.ctx.Done():
			timer.Stop()
			return 130
		}
	}
}

// keys returns the typed bytes until the input or the command ends.
func (c *command) keys() <-chan byte {
	keys := make(chan byte)
	input := bufio.NewReader(c.stdin())
	go func() {
		defer close(keys)
		for {
			key, err := input.ReadByte()
			if err != nil {
				return
			}
			select {
			case keys <- key:
			case <-c.ctx.Done():
				return
			}
		}
	}()
	return keys
}

func (c *command) picture() []string {
	now := c.world.now()
	table := c.table()
	use, up := c.world.Usage(), now.Sub(c.world.Started)
	busy := 0.0
	for _, p := range table {
		busy += p.load
	}
	lines := []string{
		fmt.Sprintf("top - %s up %d:%02d, %d processes, q leaves", now.UTC().Format("15:04:05"), int(up.Hours()),
			int(up.Minutes())%60, len(table)),
		fmt.Sprintf("CPU    %5.1f of %d busy", busy, c.world.CPUs),
		fmt.Sprintf("Memory %5s of %s", human(use.Memory), human(c.world.Memory)),
	}
	devices, _, _ := c.world.granted(c.ctx) // nvidia-smi says why they cannot be read
	for _, d := range devices {
		lines = append(lines, fmt.Sprintf("GPU %-2d %5s%% busy, %s of %s MiB, %s, %s °C  %s", d.Index,
			told(d.now.Util, "%.0f", 100), mebibytes(d.now.MemoryUsed), mebibytes(&d.Memory),
			told(d.now.Power, "%.0f W", 1000), told(d.now.Temperature, "%.0f", 1), d.Model))
	}
	lines = append(lines, "", processHead)
	slices.SortStableFunc(table, func(a, b Process) int { return cmp.Compare(b.load, a.load) })
	for _, p := range table {
		lines = append(lines, c.row(p))
	}
	return lines
}
