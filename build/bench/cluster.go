package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"slipway/backend/session"
	"slipway/build/bench/measure"
)

// cluster is the Slurm cluster for tests, whose login node a control plane of its own reaches by ssh.
type cluster struct {
	*plane
	config string // of ssh
	node   string // where the session runs
}

const (
	bulkBytes  = 64 << 20
	bulkRounds = 5
)

// measureCluster compares a session on a node of a cluster with ssh to that node by way of the login node. Both have
// their connection before.
func (b *bench) measureCluster() {
	dir, err := os.MkdirTemp("", "slipway-bench-")
	measure.OK(err)
	defer os.RemoveAll(dir) //nolint:errcheck // a leftover in the temporary directory harms nobody
	c := &cluster{config: filepath.Join(dir, "ssh_config")}
	c.write("login") // until its node is known
	host := dockerHost()
	c.plane, err = startPlane(b.ctx, b.o.binary, host, "SLIPWAY_SSH_CONFIG="+c.config)
	measure.OK(err)
	var closed error
	err = measure.Run(func() {
		defer func() { closed = c.close() }()
		c.measure(b)
	})
	measure.OK(err, closed)
}

// write writes ssh's configuration, in which "cluster" is the login node and "node" one behind it.
func (c *cluster) write(node string) {
	rig := os.Getenv("SLIPWAY_TEST_SLURM")
	if rig == "" {
		measure.Fail("set SLIPWAY_TEST_SLURM to build/slurm/rig.sh, with the cluster up; make bench does it")
	}
	dir := strings.TrimSpace(string(measure.Get(exec.Command(rig, "ssh").Output())))
	address := measure.Get(os.ReadFile(filepath.Join(dir, "address")))
	host, port, _ := strings.Cut(strings.TrimSpace(string(address)), ":")
	measure.OK(os.WriteFile(c.config, fmt.Appendf(nil, `Host cluster
  HostName %s
  Port %s
Host node
  HostName %s
  ProxyJump cluster
  ControlMaster auto
  ControlPath %s
Host *
  User ada
  IdentityFile %s/id_ed25519
  IdentitiesOnly yes
  IdentityAgent none
  UserKnownHostsFile %s/known_hosts
  HostKeyAlias [%s]:%s
  LogLevel ERROR
`, host, port, node, c.config+".master", dir, dir, host, port), 0o600))
}

func (c *cluster) measure(b *bench) {
	c.slipway("agent", "add", "ssh://cluster", "--name", "cluster")
	c.slipway("image", "send", b.o.image, "--to", "cluster")
	events := c.follow()
	defer events.Close()
	s := await(events, c.launchOn("cluster", b.o.image).ID)
	if len(s.Kernels) != 1 || s.Kernels[0].Node == "" {
		measure.Fail("the session runs as %+v", s.Kernels)
	}
	c.node = s.Kernels[0].Node
	c.write(c.node)
	ours := c.open(s.ID, rawEcho...)
	defer ours.close()
	theirs := c.local("ssh", "-F", c.config, "-tt", "node", rawEcho[2])
	defer theirs.close()
	until(ours, "ready")
	until(theirs, "ready")
	var mine, others samples
	for i := range b.o.echoes {
		char := byte('A' + i%26)
		mine, others = append(mine, echo(ours, char)), append(others, echo(theirs, char))
	}
	b.add(against("terminal echo of a session on a node of a cluster", mine, "ssh -J", others, "", 0))
	for _, w := range []struct {
		what, command string
		given         int64
	}{
		{"to", "wc -c", bulkBytes},
		{"from", fmt.Sprintf("head -c %d /dev/zero", bulkBytes), 0},
	} {
		var mine, others samples
		for range bulkRounds {
			mine = append(mine, c.bulk(c.exec(s.ID, w.command), w.given))
			others = append(others,
				c.bulk(exec.CommandContext(c.ctx, "ssh", "-F", c.config, "node", w.command), w.given))
		}
		b.add(row{fmt.Sprintf("64 MiB %s a session on a node of a cluster, %d times", w.what, bulkRounds),
			bulkRate(mine), "ssh -J: " + bulkRate(others), fmt.Sprintf("%.2f", ratio(others.median(), mine.median())),
			"", true})
	}
}

func (c *cluster) exec(id session.ID, command string) *exec.Cmd {
	return c.cli("exec", "-i", string(id), "--", "sh", "-c", command)
}

// bulk gives a command so many bytes, and returns how long it took with all of them and with what it writes.
func (c *cluster) bulk(command *exec.Cmd, given int64) time.Duration {
	zero := measure.Get(os.Open("/dev/zero"))
	defer zero.Close() //nolint:errcheck // only read
	command.Stdin, command.Stderr = io.LimitReader(zero, given), os.Stderr
	out := measure.Get(command.StdoutPipe())
	began := time.Now()
	measure.OK(command.Start())
	data, err := io.ReadAll(out)
	measure.OK(err, command.Wait())
	took := time.Since(began)
	if len(data) != bulkBytes && strings.TrimSpace(string(data)) != fmt.Sprint(bulkBytes) {
		measure.Fail("%d bytes came: %.40q", len(data), data)
	}
	return took
}

func bulkRate(of samples) string {
	return fmt.Sprintf("%.1f MB/s", bulkBytes/1e6/of.median().Seconds())
}

// close ends the sessions and leaves the login node as it was.
func (c *cluster) close() error {
	removed := measure.Run(func() { c.slipway("agent", "rm", "cluster", "--uninstall", "--yes") })
	clear(c.live) // they have ended with their agent
	return errors.Join(removed, c.stop())
}
