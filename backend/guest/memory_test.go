//go:build linux

package guest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"slipway/backend/guest/link"
	"slipway/backend/session"
)

// limitMemory puts a box into a control group of its own, of the version that
// this machine has, and shows the group inside as a container engine does.
func limitMemory(t *testing.T, b *box, bytes int) {
	t.Helper()
	name := fmt.Sprintf("slipway-guest-test-%d-%d", os.Getpid(), time.Now().UnixNano())
	group, limit, inside := "/sys/fs/cgroup/memory/"+name, "memory.limit_in_bytes", "/sys/fs/cgroup/memory"
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		group, limit, inside = "/sys/fs/cgroup/"+name, "memory.max", "/sys/fs/cgroup"
	}
	must(t, os.Mkdir(group, 0o755))
	t.Cleanup(func() {
		waitFor(t, "the empty control group", func() bool { return os.Remove(group) == nil })
	})
	must(t, os.WriteFile(filepath.Join(group, limit), []byte(strconv.Itoa(bytes)), 0o644))
	must(t, os.MkdirAll(filepath.Join(b.root, inside), 0o755))
	b.binds = append(b.binds, group+":"+inside)
	b.before = func(pid int) {
		must(t, os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644))
	}
}

func TestMemory(t *testing.T) {
	isOOM := func(e link.Event) bool { return e.OOM > 0 }
	t.Run("a greedy program is killed, told of, and nothing else suffers", func(t *testing.T) {
		b := newBox(t, true)
		limitMemory(t, b, 64<<20)
		client := b.start().connect()
		events := watch(t, client)
		s := open(t, client, session.TerminalRequest{Cols: 80, Rows: 24})
		s.typeLine("/hello eat; echo code-$?")
		s.expect("code-137")
		if got := await(t, events, "the news", isOOM); got.OOM != 1 {
			t.Errorf("%d processes are said to have been killed", got.OOM)
		}
		s.typeLine("echo still $((20+3))")
		s.expect("still 23")
	})
	t.Run("a batch command's death by it is told before its end", func(t *testing.T) {
		b := newBox(t, true)
		limitMemory(t, b, 64<<20)
		b.settings.Command = "/hello eat"
		b.start()
		events := watch(t, b.connect())
		await(t, events, "the news", isOOM)
		await(t, events, "the exit", func(e link.Event) bool { return e.Exit != nil && *e.Exit == 137 })
		if code := b.exit(); code != 137 {
			t.Errorf("the container ended with %d", code)
		}
	})
	t.Run("the guest is the last to be chosen", func(t *testing.T) {
		b := newBox(t, true)
		client := b.start().connect()
		score := func(pid string) int {
			n, err := strconv.Atoi(strings.TrimSpace(run(t, client, "cat", "/proc/"+pid+"/oom_score_adj").out))
			must(t, err)
			return n
		}
		if guests, programs := score("1"), score("self"); programs <= guests {
			t.Errorf("the guest has %d, programs have %d", guests, programs)
		}
	})
}
