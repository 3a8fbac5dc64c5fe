package shell

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"time"

	"mvdan.cc/sh/v3/expand"
)

// Release is the kernel release that a simulated session shows.
const Release = "6.12.0-slipway-sim"

// Machine is the hardware name that a simulated session shows.
func Machine() string {
	if runtime.GOARCH == "arm64" {
		return "aarch64"
	}
	return "x86_64"
}

func processes(c *command) int {
	table := c.table()
	now := c.world.now()
	if !strings.ContainsAny(strings.Join(c.args, ""), "aefx") {
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
		user := c.world.User
		if p.PID == guestPID {
			user = "root"
		}
		c.printf("%-8s %7d %5.1f %5.1f %8d %-8s %5s %8s %s\n", user, p.PID, 100*(p.load+idleLoad),
			100*float64(p.memory)/float64(max(c.world.Memory, 1)),
			p.memory/1024, p.TTY, p.Started.UTC().Format("15:04"), clock(p.cpu(now)), p.Command)
	}
	return 0
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
	f, _, err := c.parse("hbkmg", map[string]byte{"human": 'h'})
	if err != nil {
		return c.complain(err)
	}
	scale := func(n int64) string {
		switch {
		case f.has("h") && n < 1024:
			return human(n) + "B"
		case f.has("h"):
			return human(n) + "i"
		case f.has("b"):
			return strconv.FormatInt(n, 10)
		case f.has("m"):
			return strconv.FormatInt(n>>20, 10)
		case f.has("g"):
			return strconv.FormatInt(n>>30, 10)
		}
		return strconv.FormatInt(n>>10, 10)
	}
	used := c.world.Usage().Memory
	c.printf("%-7s %11s %11s %11s\n", "", "total", "used", "available")
	c.printf("%-7s %11s %11s %11s\n", "Mem:", scale(c.world.Memory), scale(used), scale(c.world.Memory-used))
	c.printf("%-7s %11s %11s %11s\n", "Swap:", scale(0), scale(0), scale(0))
	return 0
}

func diskFree(c *command) int {
	f, _, err := c.parse("hkTa", nil)
	if err != nil {
		return c.complain(err)
	}
	used := int64(0)
	for _, place := range []string{"/home/work", "/tmp"} {
		if err := c.walk(place, func(_ string, info os.FileInfo) bool {
			used += (info.Size() + 4095) / 4096 *
				4096
			return true
		}); err != nil {
			return c.fail("%s: %s", place, errText(err))
		}
	}
	show := func(n int64) string {
		if f.has("h") {
			return human(n)
		}
		return strconv.FormatInt(n>>10, 10)
	}
	const disk = 64 << 30
	c.printf("%-12s %10s %10s %10s %4s %s\n", "Filesystem",
		map[bool]string{true: "Size", false: "1K-blocks"}[f.has("h")], "Used", "Available", "Use%", "Mounted on")
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

// environment is both env and printenv.
func environment(c *command) int {
	args := c.args
	set := map[string]string{}
	for n, v := range c.env.Each {
		if v.Exported && v.Kind == expand.String && n != "UID" && n != "EUID" && n != "GID" {
			set[n] = v.Str
		}
	}
	if c.name == "printenv" && len(args) > 0 {
		value, ok := set[args[0]]
		if !ok {
			return 1
		}
		c.printf("%s\n", value)
		return 0
	}
	for len(args) > 0 && (strings.Contains(args[0], "=") || args[0] == "-i") {
		if args[0] == "-i" {
			clear(set)
		} else {
			n, v, _ := strings.Cut(args[0], "=")
			set[n] = v
		}
		args = args[1:]
	}
	names := make([]string, 0, len(set))
	for n := range set {
		names = append(names, n)
	}
	sort.Strings(names)
	if len(args) == 0 {
		for _, n := range names {
			c.printf("%s=%s\n", n, set[n])
		}
		return 0
	}
	pairs := make([]string, 0, len(names))
	for _, n := range names {
		pairs = append(pairs, n+"="+set[n])
	}
	inner := *c
	inner.env = expand.ListEnviron(pairs...)
	return inner.nested(quoted(args), args[0], nil)
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
	f, operands, err := c.parse("uId:", map[string]byte{"iso-8601": 'I', "utc": 'u'})
	if err != nil {
		return c.complain(err)
	}
	format := "+%a %b %e %H:%M:%S UTC %Y"
	if f.has("I") {
		format = "+%Y-%m-%d"
	}
	if len(operands) > 0 {
		format = operands[0]
	}
	if !strings.HasPrefix(format, "+") {
		return c.fail("cannot set date: Operation not permitted")
	}
	c.printf("%s\n", formatTime(c.world.now().UTC(), format[1:]))
	return 0
}

// formatTime does what strftime does for the common conversions.
func formatTime(t time.Time, format string) string {
	layouts := map[byte]string{'Y': "2006", 'm': "01", 'd': "02", 'e': "_2", 'H': "15", 'M': "04", 'S': "05",
		'F': "2006-01-02", 'T': "15:04:05", 'R': "15:04", 'a': "Mon", 'A': "Monday",
		'b': "Jan", 'B': "January", 'y': "06", 'Z': "MST", 'z': "-0700", 'I': "03", 'p': "PM", 'D': "01/02/06",
		'N': "000000000", 'c': "Mon Jan _2 15:04:05 2006"}
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		switch layout, ok := layouts[format[i]]; {
		case format[i] == 'N':
			fmt.Fprintf(&b, "%09d", t.Nanosecond())
		case ok:
			b.WriteString(t.Format(layout))
		case format[i] == 's':
			b.WriteString(strconv.FormatInt(t.Unix(), 10))
		case format[i] == 'j':
			fmt.Fprintf(&b, "%03d", t.YearDay())
		case format[i] == 'n':
			b.WriteByte('\n')
		case format[i] == '%':
			b.WriteByte('%')
		default:
			b.WriteString("%" + string(format[i]))
		}
	}
	return b.String()
}

func systemName(c *command) int {
	f, _, err := c.parse("asnrvmpo", nil)
	if err != nil {
		return c.complain(err)
	}
	var parts []string
	for _, part := range []struct{ letter, text string }{
		{"s", "Linux"}, {"n", c.world.Hostname}, {"r", Release}, {"v", "#1 SMP"}, {"mp", Machine()}, {"o", "GNU/Linux"},
	} {
		if f.has("a") || f.has(part.letter) || len(f) == 0 && part.letter == "s" {
			parts = append(parts, part.text)
		}
	}
	c.printf("%s\n", strings.Join(parts, " "))
	return 0
}

func who(c *command) int {
	c.printf("%s\n", c.world.User)
	return 0
}

func identity(c *command) int {
	uid, gid := c.env.Get("UID").String(), c.env.Get("GID").String()
	switch strings.Join(c.args, "") {
	case "-u":
		c.printf("%s\n", uid)
	case "-g":
		c.printf("%s\n", gid)
	case "-un":
		c.printf("%s\n", c.world.User)
	default:
		c.printf("uid=%s(%s) gid=%s(%s) groups=%s(%s)\n", uid, c.world.User, gid, c.world.User, gid, c.world.User)
	}
	return 0
}

func hostName(c *command) int {
	c.printf("%s\n", c.world.Hostname)
	return 0
}

func terminalName(c *command) int {
	if c.shell.config.TTY == "" {
		c.printf("not a tty\n")
		return 1
	}
	c.printf("/dev/%s\n", c.shell.config.TTY)
	return 0
}

func uptime(c *command) int {
	up := c.world.Clock.Since(c.world.Started).Round(time.Minute)
	c.printf(" %s up %d:%02d\n", c.world.now().UTC().Format("15:04:05"), int(up.Hours()), int(up.Minutes())%60)
	return 0
}

func clearScreen(c *command) int {
	c.printf("\x1b[H\x1b[2J\x1b[3J")
	return 0
}

// length reads a length of time as sleep and timeout take it.
func length(text string) (time.Duration, error) {
	scale := time.Second
	if text != "" {
		if unit, ok := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour,
			'd': 24 * time.Hour}[text[len(text)-1]]; ok {
			scale, text = unit, text[:len(text)-1]
		}
	}
	if text == "infinity" {
		return 1 << 62, nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("invalid time interval '%s'", text)
	}
	return time.Duration(min(n*float64(scale), 1<<62)), nil
}

func sleep(c *command) int {
	if len(c.args) == 0 {
		return c.fail("missing operand")
	}
	total := time.Duration(0)
	for _, arg := range c.args {
		d, err := length(arg)
		if err != nil {
			return c.fail("%v", err)
		}
		total += d
	}
	if !c.pause(total) {
		return 130
	}
	return 0
}

func help(c *command) int {
	c.printf("This session is simulated. It has a shell and these commands:\n\n")
	names := c.shell.names()
	if c.shell.config.Cols != nil {
		c.columns(len(names), func(i int) int { return len(names[i]) }, func(i int) string { return names[i] })
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
			code = c.fail("%s: arguments must be process or job IDs", arg)
		case pid == guestPID:
			code = c.fail("(%d) - Operation not permitted", pid)
		case !c.world.Kill(pid):
			code = c.fail("(%d) - No such process", pid)
		}
	}
	return code
}

func umask(c *command) int {
	c.printf("0022\n")
	return 0
}

func nothing(*command) int { return 0 }

func noJobs(c *command) int { return c.fail("no job control in a simulated session") }
