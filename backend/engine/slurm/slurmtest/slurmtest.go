// Package slurmtest gives tests the Slurm cluster that build/ci/slurm.sh starts: a login node, which is its controller
// too, and two nodes with two made-up GPUs each.
package slurmtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Variable is the environment variable with the path of the script that runs commands on the cluster. The cluster is
// made of packages that are loaded first: make test sets the value "verify" and leaves it to make verify.
const Variable = "SLIPWAY_TEST_SLURM"

// The nodes of the cluster. Login is the controller and takes no jobs.
const (
	Login = "login"
	Node1 = "n1"
	Node2 = "n2"
)

// The users of the cluster, neither of whom is an administrator. All nodes share their homes, /home/ada and /home/ben.
const (
	User  = "ada" // who runs what a test runs
	Other = "ben"
	root  = "root"
)

// patience is how long one command, or one thing that a test waits for, may take.
const patience = 2 * time.Minute

// Cluster is the cluster as one test has it. What the test ends is started again after it.
type Cluster struct {
	t      testing.TB
	script string
	broken bool // something was ended that is not started again yet
}

// RequireSlurm returns the cluster. Without one it skips the test under -short and fails it otherwise: a test that did
// not run has not passed.
func RequireSlurm(t testing.TB) *Cluster {
	t.Helper()
	script := os.Getenv(Variable)
	switch {
	case testing.Short():
		t.Skip("needs a Slurm cluster; left out under -short")
	case script == "verify":
		t.Skip("needs a Slurm cluster, which make verify has")
	case script == "":
		t.Fatalf("%s is not set: this test needs the Slurm cluster of build/ci/slurm.sh; run make verify, or use "+
			"-short to leave it out", Variable)
	}
	return &Cluster{t: t, script: script}
}

// Command returns a command that a user runs on a node, in the user's home. It is killed when ctx ends.
func (c *Cluster) Command(ctx context.Context, user, node, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, c.script, append([]string{"as", user, node, name}, args...)...)
}

// Run runs a command as the user on the login node, as the client of Slurm's commands wants it. Its error has the first
// line that the command wrote to its standard error.
func (c *Cluster) Run(ctx context.Context, name string, args []string, stdin []byte) ([]byte, error) {
	command := c.Command(ctx, User, Login, name, args...)
	command.Stdin = bytes.NewReader(stdin)
	return output(command)
}

// Try runs a command as a user on a node and returns what it wrote, without space around it.
func (c *Cluster) Try(user, node, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := output(c.Command(ctx, user, node, name, args...))
	return strings.TrimSpace(string(out)), err
}

// Exec is [Cluster.Try] as the user, for a command that must succeed.
func (c *Cluster) Exec(node, name string, args ...string) string {
	c.t.Helper()
	return c.must(c.Try(User, node, name, args...))
}

// Root is [Cluster.Exec] as root.
func (c *Cluster) Root(node, name string, args ...string) string {
	c.t.Helper()
	return c.must(c.Try(root, node, name, args...))
}

// Copy copies a file of this machine, with its mode, to a path on a node, as the user.
func (c *Cluster) Copy(file, node, path string) {
	c.t.Helper()
	c.rig("copy", file, node, path)
}

// Folder makes a folder in the home that all nodes share, and removes it after the test.
func (c *Cluster) Folder() string {
	c.t.Helper()
	dir := c.Exec(Login, "mktemp", "-d", "/home/"+User+"/test-XXXXXX")
	c.t.Cleanup(func() { c.Root(Login, "rm", "-rf", dir) })
	return dir
}

// Kill kills a daemon on a node: slurmctld, slurmd, sshd, munged, slurmdbd or mariadbd.
func (c *Cluster) Kill(node, daemon string) {
	c.t.Helper()
	c.Signal(node, daemon, "KILL")
}

// Signal sends a signal, by its name without SIG, to a daemon on a node.
func (c *Cluster) Signal(node, daemon, signal string) {
	c.t.Helper()
	c.mendAfterwards()
	c.rig("kill", node, daemon, signal)
}

// Start starts a daemon that was killed.
func (c *Cluster) Start(node, daemon string) {
	c.t.Helper()
	c.rig("start", node, daemon)
}

// Down ends a node with all that runs on it, as a power failure does.
func (c *Cluster) Down(node string) {
	c.t.Helper()
	c.mendAfterwards()
	c.rig("down", node)
}

// Reboot starts a node again, with its daemons and without what was in its /tmp. It ends the node first if it is up.
func (c *Cluster) Reboot(node string) {
	c.t.Helper()
	c.mendAfterwards()
	c.rig("reboot", node)
}

// Mend starts what was ended, and waits until both nodes take jobs.
func (c *Cluster) Mend() {
	c.t.Helper()
	if c.broken {
		c.rig("mend")
		c.broken = false
	}
}

// Accounting has the test run with accounting on or off. The controller is started again where that changes it. The
// accounts of the user are vision, the default, and bio; the quality of service high, of vision alone, allows one GPU.
func (c *Cluster) Accounting(on bool) {
	c.t.Helper()
	set, before := "off", "on"
	if on {
		set, before = before, set
	}
	if _, err := c.Try(root, Login, "pgrep", "-x", "slurmdbd"); (err == nil) == on {
		return
	}
	c.t.Cleanup(func() { c.rig("accounting", before) })
	c.rig("accounting", set)
}

// Access is what somebody outside of the cluster needs to log in at its login node.
type Access struct {
	Address    string // of its sshd, on this machine's loopback
	User       string
	Key        string // path of the private key
	KnownHosts string // path of the file with the key of the host, under Address
}

// SSH returns how to log in from outside.
func (c *Cluster) SSH() Access {
	c.t.Helper()
	dir := c.rig("ssh")
	address, err := os.ReadFile(filepath.Join(dir, "address"))
	if err != nil {
		c.t.Fatal(err)
	}
	return Access{
		Address: strings.TrimSpace(string(address)), User: User,
		Key: filepath.Join(dir, "id_ed25519"), KnownHosts: filepath.Join(dir, "known_hosts"),
	}
}

// Await waits until something is so.
func (c *Cluster) Await(what string, done func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatalf("waited %s in vain for %s", patience, what)
		}
	}
}

func (c *Cluster) mendAfterwards() {
	c.broken = true
	c.t.Cleanup(c.Mend)
}

// rig runs a command of the script.
func (c *Cluster) rig(args ...string) string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := output(exec.CommandContext(ctx, c.script, args...))
	return c.must(strings.TrimSpace(string(out)), err)
}

func (c *Cluster) must(out string, err error) string {
	c.t.Helper()
	if err != nil {
		c.t.Fatalf("%v\n%s", err, out)
	}
	return out
}

// output runs a command. Its error says what the command wrote to its standard error, from the first line on.
func output(command *exec.Cmd) ([]byte, error) {
	// What it started may hold its output open after it was killed.
	command.WaitDelay = time.Second
	out, err := command.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		err = fmt.Errorf("%s: %w", strings.TrimSpace(string(failed.Stderr)), err)
	}
	return out, err
}
