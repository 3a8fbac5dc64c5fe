//go:build linux

package slurm_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"slipway/backend/engine/slurm/slurmtest"
)

// choreMark begins a line in which the tests on the login node ask for what their user cannot do there. They go on when
// it is answered.
const choreMark = "chore: "

const (
	choreOther = "other" // NODE PORT: another user of the node finds no files and no server of a session
	choreLogin = "login" // nodes no longer connect to the login node, except to Slurm
	choreNodes = "nodes" // the login node no longer connects to nodes, except to Slurm
	choreMend  = "mend"
	// Jobs can no longer make user namespaces the way that the runner does, and choreAllow: they can again.
	choreRefuse = "refuse"
	choreAllow  = "allow"
	choreRun    = "run"  // NODE SCRIPT: what a script in Python prints for another user of the node
	choreDown   = "down" // NODE: it loses its power
)

// chore has something done, and returns what it printed.
func (l login) chore(words ...string) (said string) {
	l.Helper()
	asked, err := json.Marshal(words)
	if err != nil {
		l.Fatal(err)
	}
	fmt.Println("\n" + choreMark + string(asked))
	answer, err := bufio.NewReader(os.Stdin).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(answer, &said)
	}
	if err != nil {
		l.Fatalf("%q was answered with %q, %v", words, answer, err)
	}
	return said
}

// attend runs the tests on the login node and does what they ask for.
func attend(c *slurmtest.Cluster, t *testing.T, dir string, run *exec.Cmd) error {
	t.Helper()
	in, err := run.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := run.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { do(c, t, dir, choreMend) })
	run.Stderr = os.Stderr
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewReader(out); ; {
		line, err := lines.ReadString('\n')
		fmt.Print(line)
		var words []string
		if asked, ok := strings.CutPrefix(line, choreMark); ok && json.Unmarshal([]byte(asked), &words) == nil {
			_ = json.NewEncoder(in).Encode(do(c, t, dir, words...)) // who has ended needs no answer
		}
		if err != nil {
			if err != io.EOF {
				t.Error(err)
			}
			return run.Wait()
		}
	}
}

const cut = "add table inet cut; add chain inet cut in { type filter hook input priority 0; }; " +
	"add rule inet cut in ct state established,related accept; add rule inet cut in ip saddr "

func do(c *slurmtest.Cluster, t *testing.T, dir string, words ...string) (said string) {
	t.Helper()
	switch words[0] {
	case choreOther:
		shutOut(c, t, dir, words[1], words[2])
	case choreLogin:
		c.Root(slurmtest.Login, "nft", cut+"{ 10.214.0.11, 10.214.0.12 } tcp dport != 6817 reject with tcp reset")
	case choreNodes:
		for _, node := range []string{slurmtest.Node1, slurmtest.Node2} {
			c.Root(node, "nft", cut+"10.214.0.1 tcp dport != 6818 reject with tcp reset")
		}
	case choreMend:
		for _, node := range []string{slurmtest.Login, slurmtest.Node1, slurmtest.Node2} {
			c.Root(node, "nft", "flush", "ruleset")
		}
	case choreRun:
		var err error
		if said, err = c.Try(slurmtest.Other, slurmtest.Login, "srun", "-Q", "--mem=100", "-w", words[1],
			"python3", "-c", words[2]); err != nil {
			said += err.Error()
		}
	case choreRefuse, choreAllow:
		for _, node := range []string{slurmtest.Node1, slurmtest.Node2} {
			c.Kill(node, "slurmd")
			if words[0] == choreAllow {
				c.Start(node, "slurmd")
				continue
			}
			c.Root(node, "env", refusingVariable+"=/usr/sbin/slurmd", dir+"/engine.test", "-test.run=^TestRefusing$")
		}
		c.Mend()
	case choreDown:
		c.Down(words[1])
	default:
		t.Errorf("there is no chore %q", words)
	}
	return said
}

// shutOut checks what another user of a node finds of a session.
func shutOut(c *slurmtest.Cluster, t *testing.T, dir, node, port string) {
	t.Helper()
	runs := c.Root(node, "sh", "-c", "ls -d /tmp/slipway-*/runs/*/*")
	for _, path := range append(strings.Fields(runs), dir, dir+"/runs") {
		if _, err := c.Try(slurmtest.Other, node, "ls", "-d", path+"/."); err == nil {
			t.Errorf("on %s another user finds %s", node, path)
		}
	}
	for _, address := range []string{"127.0.0.1", node} {
		if _, err := c.Try(slurmtest.Other, node, "socat", "-u", "OPEN:/dev/null",
			"TCP:"+address+":"+port+",connect-timeout=5"); err == nil {
			t.Errorf("on %s another user reaches the server of a session at %s", node, address)
		}
	}
}
