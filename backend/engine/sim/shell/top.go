package shell

import (
	"bufio"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// topEvery is the refresh interval.
const topEvery = 2 * time.Second

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

// picture is the content of the screen.
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
