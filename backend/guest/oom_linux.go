package guest

import (
	"bytes"
	"context"
	"strconv"
	"time"
)

// oomInterval is how often the count is looked at. Neither version of control groups tells a container by itself
// without privileges of its own.
const oomInterval = 500 * time.Millisecond

// oomFiles are where the kernel counts the processes of this container that it has killed for memory, of version 2 and
// version 1 of control groups.
var oomFiles = []string{"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"}

// oomCounter counts since its making.
type oomCounter struct {
	file string
	base int
}

// newOOMCounter returns a counter that stays at 0 where the kernel tells nothing.
func newOOMCounter() *oomCounter {
	for _, file := range oomFiles {
		if count, ok := readOOM(file); ok {
			return &oomCounter{file: file, base: count}
		}
	}
	return &oomCounter{}
}

func readOOM(file string) (int, bool) {
	data, err := kernelFile(file, maxKernelText)
	if err != nil {
		return 0, false
	}
	for line := range bytes.SplitSeq(data, []byte{'\n'}) {
		if value, ok := bytes.CutPrefix(line, []byte("oom_kill ")); ok {
			count, err := strconv.Atoi(string(bytes.TrimSpace(value)))
			return count, err == nil
		}
	}
	return 0, false
}

func (c *oomCounter) count() int {
	if c.file == "" {
		return 0
	}
	count, _ := readOOM(c.file)
	return max(0, count-c.base)
}

// watch calls tell with every new count until ctx ends.
func (c *oomCounter) watch(ctx context.Context, tell func(int)) {
	if c.file == "" {
		return
	}
	ticker := time.NewTicker(oomInterval)
	defer ticker.Stop()
	told := 0
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if count := c.count(); count != told {
			told = count
			tell(count)
		}
	}
}
