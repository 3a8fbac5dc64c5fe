package slurmtest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestDaemonsAnswer(t *testing.T) {
	c := RequireSlurm(t)
	if ping := c.Exec(Login, "scontrol", "ping"); !strings.Contains(ping, "is UP") {
		t.Errorf("the controller says %q", ping)
	}
	for _, node := range []string{Node1, Node2} {
		if ping := c.Exec(node, "scontrol", "ping"); !strings.Contains(ping, "is UP") {
			t.Errorf("from %s, the controller says %q", node, ping)
		}
		if state := c.Root(node, "scontrol", "show", "slurmd"); !strings.Contains(state, "Version") {
			t.Errorf("the daemon of %s says %q", node, state)
		}
	}
}

func TestNodesHaveNamesAndWhatTheyShare(t *testing.T) {
	c := RequireSlurm(t)
	dir := c.Folder()
	for _, node := range []string{Login, Node1, Node2} {
		if name := c.Exec(node, "hostname"); name != node {
			t.Errorf("%s is named %s", node, name)
		}
		c.Exec(node, "touch", dir+"/"+node, "/tmp/"+node)
	}
	if got := c.Exec(Node2, "ls", "-m", dir); got != "login, n1, n2" {
		t.Errorf("the home that all nodes share has %s", got)
	}
	if got := c.Exec(Node2, "ls", "/tmp"); strings.Contains(got, Node1) || !strings.Contains(got, Node2) {
		t.Errorf("the temporary folder of n2 has %s", got)
	}
	c.Exec(Node2, "rm", "/tmp/"+Node2)
}

func TestUserCannotReadAnothersFiles(t *testing.T) {
	c := RequireSlurm(t)
	dir := c.Folder()
	c.Exec(Login, "sh", "-c", "umask 077; echo secret >"+dir+"/file")
	if got := c.Exec(Node1, "cat", dir+"/file"); got != "secret" {
		t.Errorf("the user reads %q on a node", got)
	}
	if got, err := c.Try(Other, Node1, "cat", dir+"/file"); err == nil || !strings.Contains(err.Error(), "denied") {
		t.Errorf("another user reads %q (%v)", got, err)
	}
}

func TestCopyKeepsContentsAndMode(t *testing.T) {
	c := RequireSlurm(t)
	dir := c.Folder()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("#!/bin/sh\nhostname\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	c.Copy(file, Node2, dir+"/copy")
	if got := c.Exec(Node1, dir+"/copy"); got != Node1 {
		t.Errorf("the copy prints %q", got)
	}
}

func TestRunHandsOverInputAndErrors(t *testing.T) {
	c := RequireSlurm(t)
	out, err := c.Run(t.Context(), "tr", []string{"a-z", "A-Z"}, []byte("abc"))
	if err != nil || string(out) != "ABC" {
		t.Errorf("got %q, %v", out, err)
	}
	if _, err := c.Run(t.Context(), "squeue", []string{"--jobs=none"}, nil); err == nil ||
		!strings.Contains(err.Error(), "Invalid job id") {
		t.Errorf("got error %v", err)
	}
}

func TestLoginFromOutside(t *testing.T) {
	c := RequireSlurm(t)
	access := c.SSH()
	ssh := func() (string, error) {
		address, port, _ := strings.Cut(access.Address, ":")
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		out, err := output(exec.CommandContext(ctx, "ssh", "-F", "none", "-i", access.Key, "-p", port,
			"-o", "UserKnownHostsFile="+access.KnownHosts, "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes",
			access.User+"@"+address, "hostname; id -un; scontrol ping"))
		return strings.TrimSpace(string(out)), err
	}
	if got, err := ssh(); err != nil || !strings.HasPrefix(got, "login\nada\n") || !strings.Contains(got, "is UP") {
		t.Errorf("got %q, %v", got, err)
	}
	c.Kill(Login, "sshd")
	if got, err := ssh(); err == nil {
		t.Errorf("without its sshd the login node answers %q", got)
	}
	c.Reboot(Login)
	c.Await("a login after the node was started again", func() bool {
		got, err := ssh()
		return err == nil && strings.HasPrefix(got, "login\n")
	})
}

func TestNodesCanBeCutOffFromLogin(t *testing.T) {
	c := RequireSlurm(t)
	t.Cleanup(func() { c.Root(Login, "nft", "flush", "ruleset") })
	c.Root(Login, "nft", "add table inet cut; add chain inet cut in { type filter hook input priority 0; }; "+
		"add rule inet cut in ct state established,related accept; "+
		"add rule inet cut in ip saddr 10.214.0.11 tcp dport != 6817 reject with tcp reset")
	connect := func(from, address string) error {
		_, err := c.Try(User, from, "socat", "-u", "OPEN:/dev/null", "TCP:"+address+",connect-timeout=20")
		return err
	}
	if err := connect(Node1, "login:22"); err == nil {
		t.Error("n1 connects to the login node")
	}
	for from, address := range map[string]string{Login: "n1:22", Node2: "login:22", Node1: "login:6817"} {
		if err := connect(from, address); err != nil {
			t.Errorf("%s does not connect to %s: %v", from, address, err)
		}
	}
}
