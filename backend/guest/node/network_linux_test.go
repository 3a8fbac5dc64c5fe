package node_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"slipway/backend/guest/link"
	"slipway/backend/guest/node"
)

// reaches reports whether a program in the container connects to an address.
func (j *job) reaches(client *link.Client, host string, port int) bool {
	j.t.Helper()
	return j.run(client, fmt.Sprintf("timeout 60 bash -c '</dev/tcp/%s/%d' 2>/dev/null; echo $?", host, port)) == "0"
}

func TestAPrivateNetworkIsApart(t *testing.T) {
	ours, err := net.Listen("tcp", ":0")
	must(t, err)
	defer ours.Close()
	port := ours.Addr().(*net.TCPAddr).Port
	shared := newJob(t).start()
	if client := shared.connect(); !shared.reaches(client, "127.0.0.1", port) {
		t.Error("a container in the node's network does not reach the node")
	}
	j := newJob(t)
	j.spec.Private = true
	j.env = []string{"PATH=/nowhere"} // without a program that joins it to the outside
	client := j.start().connect()
	if j.reaches(client, "127.0.0.1", port) || j.reaches(client, "::1", port) {
		t.Error("a private network reaches the node's loopback")
	}
	script := `nohup python3 -c '
import socket
s = socket.create_server(("", 0))
open("port", "w").write(str(s.getsockname()[1]) + "\n")
while True: s.accept()' >/dev/null 2>&1 &
until grep -q . port 2>/dev/null; do sleep 0.01; done; cat port`
	var inner int
	_, err = fmt.Sscan(j.run(client, script), &inner)
	must(t, err)
	if !j.reaches(client, "127.0.0.1", inner) {
		t.Error("a private network has no loopback of its own")
	}
	if conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", inner)); err == nil {
		_ = conn.Close()
		t.Error("the node reaches a private network")
	}
	if got := j.run(client, "tail -n +3 /proc/net/dev | cut -d : -f 1 | tr -d ' '"); got != "lo" {
		t.Errorf("it has the interfaces %q", got)
	}
}

func TestProbe(t *testing.T) {
	j := newJob(t)
	must(t, os.Chown(j.dir, j.uid, j.uid))
	file := filepath.Join(j.dir, "found.json")
	cmd := j.command("probe", file)
	must(t, cmd.Start())
	var found node.Probe
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		var err error
		if found, err = node.ReadProbe(file); err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	if runner, ok := found.Runner(); !ok || runner != node.Own || !found.MemoryGroup || found.ApptainerReason == "" {
		t.Errorf("the probe says %+v", found)
	}
	conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(found.Port)))
	must(t, err)
	must(t, errors.Join(conn.Close(), cmd.Wait())) // it waited for that
	local := fmt.Sprintf("/tmp/slipway-%d", j.uid)
	if left, err := filepath.Glob(local + "/runs/*"); err != nil || len(left) > 0 {
		t.Errorf("a probe leaves %q", left)
	}
	if os.Getuid() == 0 {
		must(t, os.RemoveAll(local))
	}
	j.expectNothing()
}

func TestTheKernelsOfAClusterFindEachOther(t *testing.T) {
	host, err := os.Hostname()
	must(t, err)
	addresses, err := net.InterfaceAddrs()
	must(t, err)
	own := ""
	for _, a := range addresses {
		if network, ok := a.(*net.IPNet); ok && !network.IP.IsLoopback() && network.IP.To4() != nil && own == "" {
			own = network.IP.String()
		}
	}
	if own == "" {
		t.Fatalf("%s has no address in a network", host)
	}
	j := newJob(t)
	bin := j.folder("bin")
	script := "#!/bin/sh\n[ \"$1 $2 $3\" = 'show hostnames n[1-2]' ] && printf '" + own + "\\n198.51.100.7\\n'\n"
	must(t, os.WriteFile(filepath.Join(bin, "scontrol"), []byte(script), 0o755))
	j.env = append(j.env, "PATH="+bin+":"+os.Getenv("PATH"), "SLURM_JOB_NODELIST=n[1-2]", "SLURM_PROCID=1")
	j.spec.Kernels, j.kernel = []string{"main1", "sub1"}, "sub1"
	j.config.Kernel = "sub1"
	client := j.start().connect()
	want := own + " main1\n198.51.100.7 sub1"
	if got := j.run(client, "getent hosts main1 sub1 | tr -s ' '"); got != want {
		t.Errorf("the names are %q, want %q", got, want)
	}
	if got := j.run(client, "hostname"); got != "sub1" {
		t.Errorf("the host name is %q", got)
	}
}

// joiner makes a program named slirp4netns of a script, which gets the process whose network it joins as $pid.
func (j *job) joiner(script string) {
	j.t.Helper()
	script = "#!/bin/bash\necho \"$@\" >" + j.folder("said") + "/arguments\npid=${@: -2:1}\n" + script
	must(j.t, os.WriteFile(filepath.Join(j.folder("bin"), "slirp4netns"), []byte(script), 0o755))
	j.env = append(j.env, "PATH="+j.path("bin")+":"+os.Getenv("PATH"))
}

func TestAPrivateNetworkIsJoinedToTheOutside(t *testing.T) {
	j := newJob(t)
	j.spec.Private = true
	j.joiner(`nsenter --preserve-credentials -t $pid -U -n ip route add default dev lo
exec sleep 98766`)
	client := j.start().connect()
	if got := j.run(client, "head -1 /etc/resolv.conf"); got != "nameserver 10.0.2.3" {
		t.Errorf("its resolver is %q", got)
	}
	arguments, err := os.ReadFile(j.path("said/arguments"))
	must(t, err)
	if !strings.Contains(string(arguments), "--disable-host-loopback") {
		t.Errorf("slirp4netns gets %q", arguments)
	}
	must(t, j.cmd.Process.Kill())
	<-j.exited
	j.expectNothing() // nor the program that joined it
}

func TestAPrivateNetworkWithoutTheOutside(t *testing.T) {
	j := newJob(t)
	j.spec.Private = true
	j.joiner("echo no tun >&2; exit 1")
	client := j.start().connect()
	if got := j.run(client, "echo works"); got != "works" {
		t.Errorf("it says %q", got)
	}
	if !strings.Contains(j.log(), "reaches nothing outside: slirp4netns: no tun") {
		t.Errorf("the log is %q", j.log())
	}
}
