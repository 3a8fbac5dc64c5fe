package slurm_test

import (
	"bufio"
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
)

// chore has something done.
func (l login) chore(words ...string) {
	l.Helper()
	fmt.Println("\n" + choreMark + strings.Join(words, " "))
	if answer, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		l.Fatalf("%q was answered with %q, %v", words, answer, err)
	}
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
		if words, ok := strings.CutPrefix(line, choreMark); ok {
			do(c, t, dir, strings.Fields(words)...)
			fmt.Fprintln(in, "done") //nolint:errcheck // who has ended needs no answer
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

func do(c *slurmtest.Cluster, t *testing.T, dir string, words ...string) {
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
	default:
		t.Errorf("there is no chore %q", words)
	}
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
