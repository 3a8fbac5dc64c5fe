// Package netwatch reports when connections may be broken: the addresses or routes of this machine have changed, or it
// woke up. By itself TCP would find out after minutes.
package netwatch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// Change is what happened.
type Change string

// The changes.
const (
	Network Change = "network" // addresses or routes have changed
	Wake    Change = "wake"    // this machine, or this program, was paused
)

const (
	settle    = 20 * time.Millisecond // for which a burst of notices is collected
	wakeEvery = time.Second           // between two comparisons of the clocks
	jump      = 2 * time.Second       // more than the clocks differ while awake
	frozen    = 5 * time.Second       // more than a running program waits for its turn
)

// Run calls fn after every change until ctx ends or the system fails to report them. fn is never called concurrently.
func Run(ctx context.Context, fn func(Change)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	notices := make(chan struct{}, 1)
	var group sync.WaitGroup
	group.Go(func() {
		err := listen(ctx, func() {
			select {
			case notices <- struct{}{}:
			default:
			}
		})
		cancel(err)
	})
	w := watch{fn: fn, state: state, clocks: clocks}
	ticker := time.NewTicker(wakeEvery)
	defer ticker.Stop()
	w.begin()
	for ctx.Err() == nil {
		select {
		case <-notices:
			w.noticed(ctx)
		case <-ticker.C:
			w.tick()
		case <-ctx.Done():
		}
	}
	group.Wait()
	return context.Cause(ctx)
}

// watch finds changes.
type watch struct {
	fn     func(Change)
	state  func() (string, error)
	clocks func() (wall time.Time, awake time.Duration)

	was   string
	wall  time.Time
	awake time.Duration
}

func (w *watch) begin() {
	w.was, _ = w.state() // if it fails the next one differs
	w.wall, w.awake = w.clocks()
}

// noticed compares the state after a burst of notices.
func (w *watch) noticed(ctx context.Context) {
	select {
	case <-time.After(settle):
	case <-ctx.Done():
		return
	}
	now, err := w.state()
	if err == nil && now == w.was {
		return
	}
	w.was = now
	w.fn(Network)
}

// tick finds time that this program did not see: the wall clock continues during sleep and the other clock does not.
func (w *watch) tick() {
	wall, awake := w.clocks()
	seen, passed := awake-w.awake, wall.Sub(w.wall)
	w.wall, w.awake = wall, awake
	if passed-seen > jump || seen > frozen {
		w.fn(Wake)
	}
}

// clocks reads the wall clock and the one that stops during sleep.
func clocks() (wall time.Time, awake time.Duration) {
	now := time.Now()
	return now.Round(0), now.Sub(processStart())
}

// processStart is a fixed moment that carries a reading of the monotonic clock.
var processStart = sync.OnceValue(time.Now)

// state describes the addresses of this machine, and its routes where they can be read.
func state() (string, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return "", fmt.Errorf("netwatch: list interfaces: %w", err)
	}
	var lines []string
	wanted := map[int]string{}
	for _, i := range interfaces {
		if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagLoopback != 0 || internal(i.Name) {
			continue
		}
		wanted[i.Index] = i.Name
		addresses, err := i.Addrs()
		if err != nil {
			return "", fmt.Errorf("netwatch: addresses of %s: %w", i.Name, err)
		}
		for _, address := range addresses {
			if n, ok := address.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
				lines = append(lines, i.Name+" "+n.String())
			}
		}
	}
	known, err := routes(wanted)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return "", err
	}
	lines = append(lines, known...)
	slices.Sort(lines)
	return strings.Join(lines, "\n"), nil
}

// internals are prefixes of the names of interfaces to containers and virtual machines on this computer. They change
// with every session and do not lead to other machines.
var internals = []string{"docker", "br-", "veth", "virbr", "vnet", "cni", "flannel", "cali", "lxc", "lxdbr", "podman"}

func internal(name string) bool {
	return slices.ContainsFunc(internals, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
