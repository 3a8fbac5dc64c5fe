package shell

import (
	"context"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

func contextTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d > 1<<61 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, d)
}

// stress keeps CPUs busy and memory full, in the books of the session only. A
// session that has not that much memory loses the process, as it would to the
// kernel.
func stress(c *command) int {
	cpus, memory, duration := 0, int64(0), time.Duration(1<<62)
	workers := 1
	args := c.args
	for ; len(args) > 0; args = args[1:] {
		name, value, joined := strings.Cut(args[0], "=")
		if !joined {
			if len(args) < 2 {
				return c.usage("[--cpu N] [--vm N] [--vm-bytes SIZE] [--timeout SECONDS]")
			}
			value, args = args[1], args[1:]
		}
		var err error
		switch name {
		case "--cpu", "-c":
			cpus, err = strconv.Atoi(value)
		case "--vm", "-m":
			workers, err = strconv.Atoi(value)
			memory = max(memory, 256<<20)
		case "--vm-bytes":
			memory, err = parseSize(value)
		case "--timeout", "-t":
			duration, err = length(value)
		default:
			return c.fail("unrecognized option: %s", name)
		}
		if err != nil {
			return c.fail("invalid value for %s: %s", name, value)
		}
	}
	load := float64(min(max(cpus, 0), c.world.CPUs)) * 0.98
	overflow, total := bits.Mul64(uint64(max(workers, 0)), uint64(memory))
	if overflow != 0 || total > 1<<60 {
		total = 1 << 60
	}
	if !c.world.Load(c.process, load, int64(total)) {
		c.printf("Killed\n")
		return 137
	}
	if !c.pause(duration) {
		return 130
	}
	return 0
}

// parseSize reads a number of bytes with an optional unit K, M, G or T.
func parseSize(text string) (int64, error) {
	scale := int64(1)
	trimmed := strings.TrimSuffix(strings.ToUpper(text), "B")
	if trimmed != "" {
		if unit, ok := map[byte]int64{'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30,
			'T': 1 << 40}[trimmed[len(trimmed)-1]]; ok {
			scale, trimmed = unit, trimmed[:len(trimmed)-1]
		}
	}
	n, err := strconv.ParseInt(trimmed, 10, 64)
	if err != nil || n < 0 || n > 1<<60/scale {
		return 0, strconv.ErrRange
	}
	return n * scale, nil
}
