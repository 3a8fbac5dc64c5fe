package netwatch

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway/tunnel"
)

// roleVariable makes this test binary one end of a tunnel instead of the tests.
const roleVariable = "SLIPWAY_NETWATCH_TEST_ROLE"

const farAddress = "10.231.77.2:7700"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "far":
		exitWith(beFar())
	case "near":
		exitWith(beNear())
	}
	os.Exit(m.Run())
}

func exitWith(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// beFar echoes whatever streams bring.
func beFar() error {
	listener, err := net.Listen("tcp", farAddress)
	if err != nil {
		return err
	}
	host := tunnel.NewHost(tunnel.Config{})
	go func() {
		for {
			t, err := host.Accept(context.Background())
			if err != nil {
				return
			}
			go func() {
				for {
					stream, err := t.Accept()
					if err != nil {
						return
					}
					go func() { io.Copy(stream, stream); stream.Close() }() //nolint:errcheck // the near side sees it
				}
			}()
		}
	}()
	go func() {
		io.Copy(io.Discard, os.Stdin) //nolint:errcheck // its end is the end of the test
		os.Exit(0)
	}()
	fmt.Println("ready")
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go host.Serve(tunnel.Carrier{Conn: conn,
			Peer: tunnel.Peer{Transport: "tcp"}}) //nolint:errcheck // the near side sees it
	}
}

type tcpDialer struct{}

func (tcpDialer) Dial(ctx context.Context, _ bool) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", farAddress)
	if err != nil {
		return nil, err
	}
	return tunnel.Carrier{Conn: conn, Peer: tunnel.Peer{Transport: "tcp"}}, nil
}

// beNear keeps a line up that is nudged by what the system tells, and speaks
// through it without pause. Asked for a moment, in nanoseconds since 1970, it
// says how long after it the first answer came to something said after it.
func beNear() error {
	line := tunnel.NewLine(tunnel.LineConfig{Dialer: tcpDialer{}})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { line.Run(ctx) })
	running.Go(func() {
		err := Run(ctx, func(c Change) {
			fmt.Fprintln(os.Stderr, time.Now().Format("05.000"), "noticed", c)
			line.Nudge()
		})
		if ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "the watch ended:", err)
		}
	})
	running.Go(func() {
		for ctx.Err() == nil {
			status, changed := line.Status()
			fmt.Fprintln(os.Stderr, time.Now().Format("05.000"), status.State, status.Err)
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
	})
	talk := &talk{line: line, changed: make(chan struct{})}
	running.Go(func() { talk.run(ctx) })
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		at, err := strconv.ParseInt(lines.Text(), 10, 64)
		if err != nil {
			return err
		}
		fmt.Println(int64(talk.after(time.Unix(0, at))))
	}
	return nil
}

// talk says a byte and waits for it to come back, again and again.
type talk struct {
	line *tunnel.Line

	mu      sync.Mutex // guards what follows
	said    time.Time  // when the newest byte was said that came back
	heard   time.Time
	changed chan struct{}
}

func (k *talk) run(ctx context.Context) {
	var stream tunnel.Stream
	for ctx.Err() == nil {
		if stream == nil {
			if k.line.WaitUp(ctx) != nil {
				return
			}
			var err error
			if stream, err = k.line.Open(ctx, tunnel.Interactive); err != nil {
				stream = nil
				continue
			}
		}
		said := time.Now()
		_, err := stream.Write([]byte{1})
		if err == nil {
			_, err = stream.Read(make([]byte, 1))
		}
		if err != nil {
			stream.Close()
			stream = nil
			continue
		}
		k.mu.Lock()
		k.said, k.heard = said, time.Now()
		close(k.changed)
		k.changed = make(chan struct{})
		k.mu.Unlock()
		time.Sleep(5 * time.Millisecond)
	}
	if stream != nil {
		stream.Close()
	}
}

func (k *talk) after(moment time.Time) time.Duration {
	for {
		k.mu.Lock()
		said, heard, changed := k.said, k.heard, k.changed
		k.mu.Unlock()
		if heard.After(moment) && said.After(moment.Add(-10*time.Millisecond)) ||
			heard.After(moment.Add(10*time.Millisecond)) {
			return heard.Sub(moment)
		}
		<-changed
	}
}

// net is two machines and a switch between them.
type network struct {
	t         *testing.T
	near, far string // namespaces
	mid       string
	addresses int
	ask       io.Writer
	answers   *bufio.Scanner
}

func (n *network) ip(args ...string) {
	n.t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		n.t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// newNetwork makes the machines and starts both ends.
func newNetwork(t *testing.T) *network {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("this test makes network namespaces and needs root; use -short to leave it out")
	}
	id := strconv.Itoa(os.Getpid())
	n := &network{t: t, near: "slw-nw-near-" + id, far: "slw-nw-far-" + id, mid: "slw-nw-mid-" + id, addresses: 10}
	for _, space := range []string{n.near, n.far, n.mid} {
		n.ip("netns", "add", space)
		t.Cleanup(func() {
			exec.Command("ip", "netns", "del", space).
				Run()
		}) //nolint:errcheck // its processes have ended
		n.ip("-n", space, "link", "set", "lo", "up")
	}
	n.ip("-n", n.mid, "link", "add", "switch", "type", "bridge")
	n.ip("-n", n.mid, "link", "set", "switch", "up")
	for i, space := range []string{n.near, n.far} {
		port := []string{"tonear", "tofar"}[i]
		n.ip("-n", n.mid, "link", "add", port, "type", "veth", "peer", "name", "lan0", "netns", space)
		n.ip("-n", n.mid, "link", "set", port, "master", "switch", "up")
		n.ip("-n", space, "link", "set", "lan0", "address", fmt.Sprintf("02:00:00:00:77:0%d", i+1))
		n.ip("-n", space, "link", "set", "lan0", "up")
	}
	n.ip("-n", n.far, "addr", "add", "10.231.77.2/24", "dev", "lan0")
	// What is lost is lost between two routers, which know their neighbours.
	n.ip("-n", n.near, "neigh", "replace", "10.231.77.2", "lladdr", "02:00:00:00:77:02", "dev", "lan0", "nud",
		"permanent")
	for i := 10; i < 30; i++ {
		n.ip("-n", n.far, "neigh", "replace", fmt.Sprintf("10.231.77.%d", i), "lladdr", "02:00:00:00:77:01", "dev",
			"lan0", "nud", "permanent")
	}
	n.ip("-n", n.near, "addr", "add", n.address(), "dev", "lan0")
	_, lines := n.start(n.far, "far")
	if !lines.Scan() || lines.Text() != "ready" {
		t.Fatal("the far end did not start")
	}
	n.ask, n.answers = n.start(n.near, "near")
	return n
}

func (n *network) address() string { return fmt.Sprintf("10.231.77.%d/24", n.addresses) }

// start runs this binary as one end, inside a namespace.
func (n *network) start(space, role string) (io.Writer, *bufio.Scanner) {
	n.t.Helper()
	cmd := exec.Command("ip", "netns", "exec", space, os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	var log strings.Builder
	cmd.Stderr = &log
	in, err := cmd.StdinPipe()
	if err != nil {
		n.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		n.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		in.Close()
		timer := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() }) //nolint:errcheck // it ends in either way
		err := cmd.Wait()
		timer.Stop()
		if err != nil || n.t.Failed() {
			n.t.Logf("the %s end ended with %v and said:\n%s", role, err, log.String())
		}
	})
	return in, bufio.NewScanner(out)
}

// firstAnswer returns how long after a moment the first answer came.
func (n *network) firstAnswer(after time.Time) time.Duration {
	n.t.Helper()
	fmt.Fprintln(n.ask, after.UnixNano())
	timer := time.AfterFunc(3*time.Minute,
		func() { n.t.Error("no answer within three minutes"); n.ip("-n", n.mid, "link", "set", "tofar", "up") })
	defer timer.Stop()
	if !n.answers.Scan() {
		n.t.Fatal("the near end is gone")
	}
	took, err := strconv.ParseInt(n.answers.Text(), 10, 64)
	if err != nil {
		n.t.Fatal(err)
	}
	return time.Duration(took)
}

func TestLineComesBackOnARealNetwork(t *testing.T) {
	if testing.Short() {
		t.Skip("makes network namespaces; left out under -short")
	}
	n := newNetwork(t)
	n.firstAnswer(time.Now())
	const rounds = 3
	var outages, changes []time.Duration
	for range rounds {
		n.ip("-n", n.mid, "link", "set", "tofar", "down") // nobody is told: what is sent is lost
		time.Sleep(8 * time.Second)                       // the outage is what is tested
		n.ip("-n", n.mid, "link", "set", "tofar", "up")
		outages = append(outages, n.firstAnswer(time.Now()))

		time.Sleep(1500 * time.Millisecond) // the line is calm again
		before := n.address()
		n.addresses++
		n.ip("-n", n.near, "addr", "add", n.address(), "dev", "lan0")
		n.ip("-n", n.near, "addr", "del", before, "dev", "lan0")
		// The kernel takes the further addresses of a network away with the first.
		if out, err := exec.Command("ip", "-n", n.near, "addr", "add", n.address(), "dev", "lan0").
			CombinedOutput(); err != nil && !strings.Contains(string(out), "exists") {
			t.Fatalf("ip addr add: %v: %s", err, out)
		}
		n.ip("-n", n.near, "neigh", "replace", "10.231.77.2", "lladdr", "02:00:00:00:77:02", "dev", "lan0", "nud",
			"permanent")
		changes = append(changes, n.firstAnswer(time.Now()))
	}
	t.Logf("first byte after an outage of 8 s: %v; after a change of address: %v", outages, changes)
	// Whoever is told of a change is back within half a second on a machine with
	// time to spare, and a starved one has one good round in three. Whoever is not
	// told finds out after many seconds, each time.
	if best := slices.Min(outages); best > 5*time.Second {
		t.Errorf("after an outage of 8 s the first byte came after %v", outages)
	}
	if best := slices.Min(changes); best > 2*time.Second {
		t.Errorf("after a change of address the first byte came after %v", changes)
	}
}
