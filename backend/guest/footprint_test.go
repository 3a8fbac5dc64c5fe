//go:build linux

package guest_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"slipway/backend/session"
)

// TestFootprint holds the guest to the little that a container can spare, with
// ten shells open: 24 MiB of memory of its own and hardly any work while idle.
func TestFootprint(t *testing.T) {
	client := newBox(t, true).start().connect()
	watch(t, client)
	for range 10 {
		open(t, client, session.TerminalRequest{Cols: 80, Rows: 24}).expect("$")
	}
	worker := strconv.Itoa(client.Hello().PID)
	kilobytes := func(pid string) int {
		for line := range strings.Lines(run(t, client, "cat", "/proc/"+pid+"/status").out) {
			if fields := strings.Fields(line); fields[0] == "RssAnon:" {
				n, err := strconv.Atoi(fields[1])
				must(t, err)
				return n
			}
		}
		t.Fatalf("process %q has no size", pid)
		return 0
	}
	ticks := func() int { // of 10 ms, user and system
		fields := strings.Fields(run(t, client, "cat", "/proc/"+worker+"/stat").out)
		user, errUser := strconv.Atoi(fields[13])
		system, errSystem := strconv.Atoi(fields[14])
		must(t, errUser)
		must(t, errSystem)
		return user + system
	}
	own := kilobytes("1") + kilobytes(worker)
	t.Logf("init and worker: %d KiB", own)
	if own > 24<<10 {
		t.Errorf("init and worker take %d KiB", own)
	}
	before := ticks()
	time.Sleep(2 * time.Second)
	if spent := ticks() - before; spent > 20 { // 10 % of one CPU, the reading included
		t.Errorf("2 s of idleness cost %d ms of work", 10*spent)
	}
}
