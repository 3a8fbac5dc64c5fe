package node

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// networkTimeout is how long the program that joins a private network to the outside may take to do so.
	networkTimeout = 10 * time.Second
	networkPause   = 5 * time.Millisecond
	// nameTimeout is how long the names of all nodes of a job may take to be resolved.
	nameTimeout = 30 * time.Second
	maxNames    = 1 << 20 // bytes of the node's file of host names or of its resolver
)

// outside is where slirp4netns and pasta take questions for names, which they forward to the node's resolver.
const outside = "10.0.2.3"

// joinArguments are the arguments of the programs that join the network of a process to the outside, best first. They
// do not reach the loopback of the node, and nothing connects from outside.
var joinArguments = []struct {
	program   string
	arguments func(pid string) []string
}{
	{"slirp4netns", func(pid string) []string {
		return []string{"--configure", "--mtu=65520", "--disable-host-loopback",
			"--userns-path=/proc/" + pid + "/ns/user", pid, "tap0"}
	}},
	{"pasta", func(pid string) []string {
		return []string{"--foreground", "--config-net", "--no-map-gw", "--dns-forward", outside, "-t", "none", "-u",
			"none", "-T", "none", "-U", "none", pid}
	}},
}

// joiner returns the number and path of the first of those programs that this node has.
func joiner() (at int, path string) {
	for i, one := range joinArguments {
		if path, err := exec.LookPath(one.program); err == nil {
			return i, path
		}
	}
	return 0, ""
}

// network is a program that joins the network of a process to the outside.
type network struct {
	program string
	cmd     *exec.Cmd
	ended   chan struct{} // closed when it has ended
	output  strings.Builder
}

// join joins the network of a process to the outside. It returns nil if this node has no program for that. The program
// ends with the calling thread.
func join(pid int) (*network, error) {
	at, path := joiner()
	if path == "" {
		return nil, nil
	}
	n := &network{program: joinArguments[at].program, ended: make(chan struct{}),
		cmd: exec.Command(path, joinArguments[at].arguments(strconv.Itoa(pid))...)}
	n.cmd.Stdout, n.cmd.Stderr = &n.output, &n.output
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := n.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = n.cmd.Wait() // its output says why
		close(n.ended)
	}()
	err := errors.New("it did not do so in time")
	for deadline := time.Now().Add(networkTimeout); time.Now().Before(deadline); {
		if hasRoute(pid) {
			return n, nil
		}
		select {
		case <-n.ended:
			err, deadline = errors.New(strings.TrimSpace(n.output.String())), time.Time{}
		case <-time.After(networkPause):
		}
	}
	n.close()
	return nil, fmt.Errorf("%s: %w", n.program, err)
}

func (n *network) close() {
	if n != nil {
		_ = n.cmd.Process.Kill()
		<-n.ended
	}
}

// hasRoute reports whether the network of a process has a way to everywhere, see proc(5).
func hasRoute(pid int) bool {
	data, err := nodeFile(fmt.Sprintf("/proc/%d/net/route", pid))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[1] == "00000000" {
			return true
		}
	}
	return false
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}

// nameFiles returns the files of a container by which its programs find names.
func nameFiles(spec Spec, kernel string, lookup func(string) ([]byte, error)) (map[string]string, error) {
	hosts := "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"
	if len(spec.Kernels) == 1 {
		hosts += "127.0.1.1\t" + kernel + "\n"
	} else {
		addresses, err := peers(len(spec.Kernels))
		if err != nil {
			return nil, fmt.Errorf("find the nodes of the job: %w", err)
		}
		for i, address := range addresses {
			hosts += address + "\t" + spec.Kernels[i] + "\n"
		}
	}
	if own, err := lookup("/etc/hosts"); err == nil {
		hosts += withoutLocalhost(string(own))
	}
	files := map[string]string{"/etc/hosts": hosts, "/etc/hostname": kernel + "\n"}
	resolver, err := lookup("/etc/resolv.conf")
	if err != nil {
		return files, nil
	}
	files["/etc/resolv.conf"] = string(resolver)
	if _, path := joiner(); spec.Private && path != "" {
		files["/etc/resolv.conf"] = "nameserver " + outside + "\n" + withoutServers(string(resolver))
	}
	return files, nil
}

// nodeFile reads the beginning of a file of the node.
func nodeFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxNames))
}

func withoutLocalhost(hosts string) string {
	return filter(hosts, func(fields []string) bool {
		address := net.ParseIP(fields[0])
		return address == nil || address.IsLoopback() // a node's own name often has a loopback address
	})
}

func withoutServers(resolver string) string {
	return filter(resolver, func(fields []string) bool { return fields[0] == "nameserver" })
}

// filter returns the lines without comments, empty ones and those that drop chooses by their words.
func filter(text string, drop func(fields []string) bool) string {
	var left strings.Builder
	for line := range strings.Lines(text) {
		words, _, _ := strings.Cut(line, "#")
		if fields := strings.Fields(words); len(fields) > 0 && !drop(fields) {
			left.WriteString(strings.Join(fields, " ") + "\n")
		}
	}
	return left.String()
}

// peers returns an address of each node of the job, in the order of its tasks, one on each node.
func peers(count int) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), nameTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, "scontrol", "show", "hostnames", os.Getenv("SLURM_JOB_NODELIST")).Output()
	if err != nil {
		return nil, err
	}
	var addresses []string
	lines := bufio.NewScanner(strings.NewReader(string(out)))
	for lines.Scan() {
		address, err := addressOf(ctx, strings.TrimSpace(lines.Text()))
		if err != nil {
			return nil, err
		}
		addresses = append(addresses, address)
	}
	if len(addresses) != count {
		return nil, fmt.Errorf("the job has %d nodes, not %d", len(addresses), count)
	}
	return addresses, nil
}

// addressOf returns the first address of a host that is not a loopback, IPv4 first.
func addressOf(ctx context.Context, host string) (string, error) {
	if !hostName.MatchString(host) {
		return "", fmt.Errorf("%.100q is not the name of a host", host)
	}
	addresses, err := net.DefaultResolver.LookupIP(ctx, "ip", host)
	if err != nil {
		return "", err
	}
	second := ""
	for _, address := range addresses {
		switch {
		case address.IsLoopback():
		case address.To4() != nil:
			return address.String(), nil
		default:
			second = address.String()
		}
	}
	if second == "" {
		return "", errors.New(host + " has no address in a network")
	}
	return second, nil
}

// taskNumber returns which of the job's tasks this process is.
func taskNumber() (int, error) {
	text := os.Getenv("SLURM_PROCID")
	if text == "" {
		return 0, nil
	}
	return strconv.Atoi(text)
}
