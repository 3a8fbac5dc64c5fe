// Package netwatch tells when a connection is worth a look: the addresses or routes of this machine changed, or it woke
// up. Who holds connections to other machines then finds out at once what TCP would find out after minutes.
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
	Network Change = "network" // addresses or routes are others than before
	Wake    Change = "wake"    // this machine, or this program, stood still for a while
)

const (
	// settle is how long a burst of notices is collected.
	settle = 20 * time.Millisecond
	// wakeEvery is how often the clocks are compared.
	wakeEvery = time.Second
	// jump is more than two readings of the clocks differ by while awake.
	jump = 2 * time.Second
	// frozen is more than a program waits for its turn.
	frozen = 5 * time.Second
)

// Run calls fn after every change until ctx ends or the system stops telling of them. fn is never called concurrently.
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

// watch compares what is with what was.
type watch struct {
	fn     func(Change)
	state  func() (string, error)
	clocks func() (wall time.Time, awake time.Duration)

	was   string
	wall  time.Time
	awake time.Duration
}

func (w *watch) begin() {
	w.was, _ = w.state() // one that cannot be read is unlike the next
	w.wall, w.awake = w.clocks()
}

// noticed looks whether a notice is of anything that matters, once its burst is over.
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

// tick looks whether time passed that this program did not see: the wall clock goes on while a machine sleeps and the
// other clock does not.
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

// state describes the addresses that this machine can be reached from, and its routes where the system tells them.
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
	told, err := routes(wanted)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return "", err
	}
	lines = append(lines, told...)
	slices.Sort(lines)
	return strings.Join(lines, "\n"), nil
}

// internals are the beginnings of names of interfaces that lead to containers and virtual machines of this computer.
// They come and go with every session and carry nothing to other machines.
var internals = []string{"docker", "br-", "veth", "virbr", "vnet", "cni", "flannel", "cali", "lxc", "lxdbr", "podman"}

func internal(name string) bool {
	return slices.ContainsFunc(internals, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
