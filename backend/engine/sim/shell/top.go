package shell

import (
	"bufio"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// topEvery is the time between two pictures.
const topEvery = 2 * time.Second

// top shows the processes of the session, the busiest first, until q is pressed,
// or once where there is no terminal.
func top(c *command) int {
	raw := c.shell.config.Raw
	if !c.tty || raw == nil {
		c.printf("%s\n", strings.Join(c.picture(1<<10, 1<<10), "\n"))
		return 0
	}
	raw(true)
	defer raw(false)
	c.printf("\x1b[?1049h\x1b[?25l")
	defer c.printf("\x1b[?25h\x1b[?1049l")
	keys := c.keys()
	for {
		c.printf("\x1b[H%s\x1b[K\x1b[J", strings.Join(c.picture(c.shell.config.Cols(), c.shell.config.Rows()),
			"\x1b[K\n"))
		timer := c.world.Clock.Timer(topEvery)
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

// keys gives what is typed, key by key, until the input or the command ends.
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

// picture is what top shows, in lines that fit.
func (c *command) picture(cols, rows int) []string {
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
	if devices, sample, err := c.world.granted(c.ctx); err == nil {
		for _, d := range devices {
			s := sampleOf(d, sample)
			lines = append(lines, fmt.Sprintf("GPU %-2d %5s%% busy, %s of %s MiB, %s, %s °C  %s", d.Index,
				percent(s.Util), mebibytes(s.MemoryUsed), mebibytes(&d.Memory), watts(s.Power, "%.0f W"),
				told(s.Temperature), d.Model))
		}
	}
	lines = append(lines, "", fmt.Sprintf("%7s %-8s %6s %6s %8s %9s %s", "PID", "USER", "%CPU", "%MEM", "RES", "TIME",
		"COMMAND"))
	slices.SortStableFunc(table, func(a, b Process) int { return cmp.Compare(b.load, a.load) })
	for _, p := range table {
		lines = append(lines, fmt.Sprintf("%7d %-8s %6.1f %6.1f %8s %9s %s", p.PID, c.userOf(p),
			100*(p.load+idleLoad), c.percentOf(p), human(p.memory), clock(p.cpu(now)), p.Command))
	}
	lines = lines[:min(len(lines), rows)]
	for i, line := range lines {
		lines[i] = string([]rune(line)[:min(len([]rune(line)), cols)])
	}
	return lines
}
