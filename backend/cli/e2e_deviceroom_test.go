//go:build linux && !race

package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway/backend/api"
	"slipway/backend/session"
)

// deviceRoom is the made-up device at work: it draws power all the time and is never
// idle, a seventh of the time for each session that is employed. As many of them as fit
// on it are never more than that together. Otherwise what a program reads first, which
// is the mean of up to 10 s, would now and then be less than what they use at that
// moment, their parts would be reduced, and the test could not know what to expect.
type deviceRoom struct {
	*driver
	mu         sync.Mutex // guards everything below
	containers map[string]int
	energy     int64 // millijoules
	draws      bool
	ticks      []time.Time
}

const (
	roomStep  = 100 * time.Millisecond
	roomPower = 180_000 // milliwatts
	roomBusy  = 14      // percent, of one session
	roomFirst = 5_000_000
)

func newDeviceRoom(t *testing.T) *deviceRoom {
	r := &deviceRoom{driver: newDriver(t), containers: map[string]int{}, energy: roomFirst}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		last := time.Now()
		for ctx.Err() == nil {
			now := time.Now()
			r.step(now, now.Sub(last))
			last = now
			select {
			case <-ctx.Done():
			case <-time.After(roomStep):
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		done.Wait()
	})
	return r
}

func (r *deviceRoom) start() { r.set(true) }
func (r *deviceRoom) stop()  { r.set(false) }

func (r *deviceRoom) set(draws bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.draws = draws
}

// used is what the device has counted since it began to work.
func (r *deviceRoom) used() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.energy - roomFirst
}

// employ lets sessions work on the device from now on.
func (r *deviceRoom) employ(live []api.Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range live {
		for _, k := range s.Kernels {
			if _, known := r.containers[k.Container]; k.Container != "" && s.Status == session.Running && !known {
				r.containers[k.Container] = 0
			}
		}
	}
}

// step moves the device on and writes its state.
func (r *deviceRoom) step(now time.Time, length time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.find()
	if r.draws {
		r.energy += roomPower * length.Milliseconds() / 1000
	}
	rows, used := "", int64(0)
	for _, pid := range r.containers {
		if pid == 0 {
			continue
		}
		used += gibibyte
		rows += fmt.Sprintf("proc gpu=0 pid=%d mem=%d kind=C\nrow gpu=0 pid=%d at=%d sm=%d\n", pid, gibibyte, pid,
			now.UnixMicro(), roomBusy)
	}
	r.ticks = append(r.ticks, now)
	for now.Sub(r.ticks[0]) > 10*time.Second {
		r.ticks = r.ticks[1:]
	}
	for _, tick := range r.ticks {
		rows += fmt.Sprintf("sample gpu=0 at=%d value=100\n", tick.UnixMicro())
	}
	r.write(fmt.Sprintf("gpu uuid=%s name=NVIDIA_Test pci=00000000:01:00.0 total=%d used=%d reserved=0 util=100 "+
		"power=%d limit_power=300000 energy=%d temp=41 mig=0 acct=0 cc=90\n%s",
		madeUpDevice, 80*gibibyte, used, roomPower, r.energy, rows))
}

// find brings up to date which process of each container works.
func (r *deviceRoom) find() {
	missing := false
	for container, pid := range r.containers {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); pid > 0 && err != nil {
			delete(r.containers, container) // it has ended; no process follows it
		}
		missing = missing || pid == 0
	}
	if !missing {
		return
	}
	paths, _ := filepath.Glob("/proc/[0-9]*")
	for _, path := range paths {
		comm, _ := os.ReadFile(filepath.Join(path, "comm")) // a process may end meanwhile
		if strings.TrimSpace(string(comm)) != "sleep" {
			continue
		}
		groups, _ := os.ReadFile(filepath.Join(path, "cgroup"))
		for container, pid := range r.containers {
			if pid == 0 && strings.Contains(string(groups), container) {
				r.containers[container], _ = strconv.Atoi(filepath.Base(path))
			}
		}
	}
}
