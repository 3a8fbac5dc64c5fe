package shell

import (
	"cmp"
	"errors"
	"strconv"
	"strings"
)

// stress keeps CPUs busy and memory full, in the books of the session only. A
// session that has not that much memory loses the process, as it would to the
// kernel.
func stress(c *command) int {
	f, operands, err := c.parse("c:m:b:t:", map[string]byte{"cpu": 'c', "vm": 'm', "vm-bytes": 'b', "timeout": 't'})
	if err != nil || len(operands) > 0 {
		return c.usage("[--cpu N] [--vm N] [--vm-bytes SIZE] [--timeout SECONDS]")
	}
	cpus, errCPU := f.number('c', 0)
	workers, errVM := f.number('m', 1)
	memory, errBytes := parseSize(cmp.Or(f['b'], "0"))
	duration, errTime := length(cmp.Or(f['t'], "1000d"))
	if err := errors.Join(errCPU, errVM, errBytes, errTime); err != nil {
		return c.fail("%v", err)
	}
	load := float64(min(max(cpus, 0), c.world.CPUs)) * 0.98
	if !c.world.Load(c.process, load, int64(min(max(workers, 0), 1<<20))*min(memory, 1<<40)) {
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
	digits := strings.TrimRight(strings.ToUpper(text), "KMGT")
	scale, ok := map[string]int64{"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}[strings.ToUpper(
		text[len(digits):])]
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !ok || n < 0 || n > 1<<60/scale {
		return 0, errors.New("invalid size: " + text)
	}
	return n * scale, nil
}
