package shell

import (
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
)

// Release is the kernel release that a simulated session shows.
const Release = "6.12.0-slipway-sim"

func processes(c *command) int {
	table := c.table()
	now := c.world.now()
	if len(c.args) == 0 {
		c.printf("%7s %-8s %8s %s\n", "PID", "TTY", "TIME", "CMD")
		for _, p := range table {
			if p.TTY == c.shell.ttyName() {
				c.printf("%7d %-8s %8s %s\n", p.PID, p.TTY, clock(p.cpu(now)), baseName(firstWord(p.Command)))
			}
		}
		return 0
	}
	c.printf("%-8s %7s %5s %5s %8s %-8s %5s %8s %s\n", "USER", "PID", "%CPU", "%MEM", "RSS", "TTY", "START", "TIME",
		"COMMAND")
	for _, p := range table {
		c.printf("%-8s %7d %5.1f %5.1f %8d %-8s %5s %8s %s\n", c.userOf(p), p.PID, 100*(p.load+idleLoad),
			c.percentOf(p), p.memory/1024, p.TTY, p.Started.UTC().Format("15:04"), clock(p.cpu(now)), p.Command)
	}
	return 0
}

// userOf is whose a process is.
func (c *command) userOf(p Process) string {
	if p.PID == guestPID {
		return "root"
	}
	return c.world.User
}

// percentOf is how much of the session's memory a process has.
func (c *command) percentOf(p Process) float64 {
	return 100 * float64(p.memory) / float64(max(c.world.Memory, 1))
}

func firstWord(text string) string {
	word, _, _ := strings.Cut(text, " ")
	return word
}

func clock(d time.Duration) string {
	s := int(d.Seconds())
	return fmt.Sprintf("%02d:%02d:%02d", s/3600, s/60%60, s%60)
}

func free(c *command) int {
	f, _, err := c.parse("hm", nil)
	if err != nil {
		return c.complain(err)
	}
	scale := func(n int64) string {
		switch {
		case f.has("h"):
			return human(n) + "i"
		case f.has("m"):
			return strconv.FormatInt(n>>20, 10)
		}
		return strconv.FormatInt(n>>10, 10)
	}
	used := c.world.Usage().Memory
	c.printf("%-7s %11s %11s %11s\n", "", "total", "used", "available")
	c.printf("%-7s %11s %11s %11s\n", "Mem:", scale(c.world.Memory), scale(used), scale(c.world.Memory-used))
	c.printf("%-7s %11d %11d %11d\n", "Swap:", 0, 0, 0)
	return 0
}

func diskFree(c *command) int {
	f, _, err := c.parse("h", nil)
	if err != nil {
		return c.complain(err)
	}
	used := int64(0)
	whole, _ := c.world.FS.resolve("/")
	for _, place := range []string{"home/work", "tmp"} {
		err := fs.WalkDir(whole.root.FS(), place, func(_ string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if info, err := entry.Info(); err == nil {
				used += (info.Size() + 4095) / 4096 * 4096
			}
			return c.ctx.Err()
		})
		if err != nil {
			return c.fail("%s: %s", place, errText(err))
		}
	}
	unit, show := "1K-blocks", func(n int64) string { return strconv.FormatInt(n>>10, 10) }
	if f.has("h") {
		unit, show = "Size", human
	}
	const disk = 64 << 30
	c.printf("%-12s %10s %10s %10s %4s %s\n", "Filesystem", unit, "Used", "Available", "Use%", "Mounted on")
	row := func(name string, size, used int64, at string) {
		c.printf("%-12s %10s %10s %10s %3d%% %s\n", name, show(size), show(used), show(size-used),
			used*100/max(size, 1), at)
	}
	row("overlay", disk, used, "/")
	row("shm", c.world.Shm, 0, "/dev/shm")
	for _, m := range c.world.FS.mounts {
		if m.target != "/" {
			row("host", disk, 0, m.target)
		}
	}
	return 0
}

func countCPUs(c *command) int {
	c.printf("%d\n", c.world.CPUs)
	return 0
}

func environment(c *command) int {
	if len(c.args) > 0 {
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

// quoted writes words as one command line.
func quoted(words []string) string {
	parts := make([]string, len(words))
	for i, word := range words {
		parts[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return strings.Join(parts, " ")
}

func date(c *command) int {
	c.printf("%s\n", c.world.now().UTC().Format("Mon Jan _2 15:04:05 MST 2006"))
	return 0
}

func who(c *command) int {
	c.printf("%s\n", c.world.User)
	return 0
}

func hostName(c *command) int {
	c.printf("%s\n", c.world.Hostname)
	return 0
}

func clearScreen(c *command) int {
	c.printf("\x1b[H\x1b[2J\x1b[3J")
	return 0
}

// length reads a length of time as sleep takes it.
func length(text string) (time.Duration, error) {
	scale := time.Second
	if text != "" {
		if unit, ok := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour,
			'd': 24 * time.Hour}[text[len(text)-1]]; ok {
			scale, text = unit, text[:len(text)-1]
		}
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 0) {
		return 0, fmt.Errorf("invalid time interval '%s'", text)
	}
	return time.Duration(min(n*float64(scale), 1<<62)), nil
}

func sleep(c *command) int {
	if len(c.args) != 1 {
		return c.usage("NUMBER[smhd]")
	}
	d, err := length(c.args[0])
	if err != nil {
		return c.fail("%v", err)
	}
	if !c.pause(d) {
		return 130
	}
	return 0
}

// shellUtility runs the script after -c, of a file, or of the input.
func shellUtility(c *command) int {
	args := c.args
	if len(args) > 1 && strings.HasPrefix(args[0], "-") && strings.HasSuffix(args[0], "c") {
		script, name, rest := args[1], c.name, args[2:]
		if len(rest) > 0 {
			name, rest = rest[0], rest[1:]
		}
		return c.nested(script, name, rest)
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

// which says what commands are: programs by their paths, and what the shell does
// itself. It also stands for type and command -v.
func which(c *command) int {
	code := 0
	for _, name := range c.args {
		switch _, program := c.shell.utilities[name]; {
		case program:
			c.printf("/usr/bin/%s\n", name)
		case interp.IsBuiltin(name):
			c.printf("%s: shell builtin\n", name)
		default:
			c.fail("%s: not found", name)
			code = 1
		}
	}
	return code
}

func help(c *command) int {
	c.printf("This session is simulated. It has a shell and these commands:\n\n")
	names := c.shell.names()
	if c.tty {
		c.columns(names, func(i int) string { return names[i] })
	} else {
		c.printf("%s\n", strings.Join(names, " "))
	}
	c.printf("\nFiles are real and stay in the session. No program of this computer is run.\n")
	c.printf("train pretends to train a model on the session's GPUs; nvidia-smi and top show how busy they are.\n")
	c.printf("stress --cpu N --vm-bytes SIZE --timeout SECONDS makes the session busy.\n")
	return 0
}

func showHistory(c *command) int {
	for i, line := range c.shell.history {
		c.printf("%5d  %s\n", i+1, line)
	}
	return 0
}

func kill(c *command) int {
	code := 0
	for _, arg := range c.args {
		if strings.HasPrefix(arg, "-") {
			continue
		}
		pid, err := strconv.Atoi(arg)
		switch {
		case err != nil:
			code = c.fail("%s: arguments must be process IDs", arg)
		case pid == guestPID:
			code = c.fail("(%d) - Operation not permitted", pid)
		case !c.world.Kill(pid):
			code = c.fail("(%d) - No such process", pid)
		}
	}
	return code
}
