package link

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"slipway/build/bench/measure"
)

// The addresses of the two namespaces on the path that Run carries, and on a cable.
const (
	NearAddress = "10.231.0.1"
	FarAddress  = "10.231.0.2"
	nearPlug    = "10.231.1.1"
	FarPlug     = "10.231.1.2"
)

const mtu = 1500 // bytes

// Namespaces makes two network namespaces that Run connects. Remove removes them.
func Namespaces(ctx context.Context, near, far string) (ends [2]int) {
	for i, name := range []string{near, far} {
		measure.OK(ip(ctx, "netns", "add", name))
		measure.OK(ip(ctx, "-n", name, "link", "set", "lo", "up"))
		ends[i] = measure.Get(openTUN("/run/netns/" + name))
		chooseCubic(ctx, name)
		own, other := NearAddress, FarAddress
		if i == 1 {
			own, other = other, own
		}
		measure.OK(ip(ctx, "-n", name, "addr", "add", own, "peer", other, "dev", device))
		measure.OK(ip(ctx, "-n", name, "link", "set", device, "mtu", fmt.Sprint(mtu), "txqueuelen", "20000", "up"))
	}
	return ends
}

// Cable joins two namespaces by a pair of devices of the kernel besides, as fast as it carries packets.
func Cable(ctx context.Context, near, far string) {
	measure.OK(ip(ctx, "-n", near, "link", "add", cable, "type", "veth", "peer", "name", cable, "netns", far))
	for name, plug := range map[string]string{near: nearPlug, far: FarPlug} {
		measure.OK(ip(ctx, "-n", name, "addr", "add", plug+"/24", "dev", cable))
		measure.OK(ip(ctx, "-n", name, "link", "set", cable, "up"))
	}
}

// chooseCubic makes cubic the default of a namespace, which may choose only allowed algorithms.
func chooseCubic(ctx context.Context, name string) {
	const settings = "/proc/sys/net/ipv4/"
	allowed := measure.Get(os.ReadFile(settings + "tcp_allowed_congestion_control"))
	if words := strings.Fields(string(allowed)); !slices.Contains(words, "cubic") {
		measure.OK(os.WriteFile(settings+"tcp_allowed_congestion_control",
			[]byte(strings.Join(append(words, "cubic"), " ")), 0o644))
	}
	measure.OK(ip(ctx, "netns", "exec", name, "sh", "-c", "echo cubic > "+settings+"tcp_congestion_control"))
}

// Remove removes namespaces and everything in them.
func Remove(names ...string) error {
	var failed error
	for _, name := range names {
		failed = errors.Join(failed, ip(context.Background(), "netns", "del", name))
	}
	return failed
}

func ip(ctx context.Context, words ...string) error {
	out, err := exec.CommandContext(ctx, "ip", words...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(words, " "), err, out)
	}
	return nil
}

const device, cable = "path0", "cable0"

// openTUN makes a TUN device in a namespace. The thread that enters the namespace ends with its goroutine.
func openTUN(namespace string) (int, error) {
	fd, err := -1, error(nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked
		fd, err = enterAndOpen(namespace)
	}()
	<-done
	return fd, err
}

func enterAndOpen(namespace string) (int, error) {
	ns, err := os.Open(namespace)
	if err != nil {
		return -1, err
	}
	defer ns.Close()
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
		return -1, fmt.Errorf("enter %s: %w", namespace, err)
	}
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	request, err := unix.NewIfreq(device)
	if err != nil {
		return -1, err
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		return -1, errors.Join(fmt.Errorf("make %s: %w", device, err), unix.Close(fd))
	}
	return fd, nil
}

// Run carries packets between the two ends until ctx ends; up is from the first to the second. Each direction has its
// own thread. On a busy machine run it, and everything measured, at a high priority.
func Run(ctx context.Context, ends [2]int, up, down Direction) error {
	failed := make(chan error, 2)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for i, d := range []Direction{up, down} {
		from, to := ends[i], ends[1-i]
		go func() {
			runtime.LockOSThread()
			failed <- carry(ctx, from, to, d, uint64(i))
		}()
	}
	err := <-failed
	cancel()
	return errors.Join(err, <-failed)
}

func carry(ctx context.Context, from, to int, d Direction, seed uint64) error {
	p := &pipe{d: d, random: rand.New(rand.NewPCG(seed, 1))}
	start := time.Now()
	var spare [][]byte
	for ctx.Err() == nil {
		wait := min(p.next(time.Since(start)), 100*time.Millisecond)
		timeout := unix.NsecToTimespec(int64(wait))
		fds := []unix.PollFd{{Fd: int32(from), Events: unix.POLLIN}}
		if _, err := unix.Ppoll(fds, &timeout, nil); err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for packets: %w", err)
		}
		for data := p.due(time.Since(start)); data != nil; data = p.due(time.Since(start)) {
			_, _ = unix.Write(to, data) // a full receiver loses it as a real one does
			spare = append(spare, data[:cap(data)])
		}
		for range 64 {
			if len(spare) == 0 {
				spare = append(spare, make([]byte, mtu+64))
			}
			buffer := spare[len(spare)-1]
			n, err := unix.Read(from, buffer)
			if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
				break
			}
			if err != nil {
				return fmt.Errorf("read packets: %w", err)
			}
			if p.take(buffer[:n], time.Since(start)) {
				spare = spare[:len(spare)-1]
			}
		}
	}
	return nil
}
