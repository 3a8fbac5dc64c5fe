//go:build linux

package slurm_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"slipway/backend/engine"
	"slipway/backend/engine/enginetest"
	engineslurm "slipway/backend/engine/slurm"
	"slipway/backend/engine/slurm/slurmtest"
	"slipway/backend/session"
	"slipway/backend/slurm"
	"slipway/gpu"
)

// loginVariable is the folder in the home of the cluster's user with what the tests need on the login node. It is set
// there only.
const loginVariable = "SLIPWAY_TEST_LOGIN"

// A test asks for what cannot be done on the login node in a file of that folder, as a list of words in JSON: down and
// the node that is to fail, or other, a node and a program of Python that a job of another user runs there. What that
// says is in the other file then.
const ()

// partVariable may be /name, to run a part of them.
const partVariable = "SLIPWAY_TEST_PART"

// onLogin copies this program, and what it needs there, to a folder on the login node.
func onLogin(t *testing.T, c *slurmtest.Cluster) (dir string) {
	t.Helper()
	local, dir := t.TempDir(), c.Folder()
	for name, args := range map[string][]string{
		"slipway-guest": {"build", "-trimpath", "-buildvcs=false", "slipway/backend/guest/slipway-guest"},
		"engine.test":   {"test", "-c", "."},
	} {
		build := exec.Command("go", args[0], "-o", filepath.Join(local, name))
		build.Args = append(build.Args, args[1:]...)
		build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("building %s: %v\n%s", name, err, out)
		}
	}
	layer, err := exec.Command("../../../build/ci/images.sh", "--filesystem", "minimal").Output()
	if err != nil {
		t.Fatalf("the file system of an image: %v", err)
	}
	for name, file := range map[string]string{"slipway-guest": filepath.Join(local, "slipway-guest"),
		"engine.test": filepath.Join(local, "engine.test"),
		"layer.tar":   strings.TrimSpace(string(layer))} {
		c.Copy(file, slurmtest.Login, dir+"/"+name)
	}
	c.Exec(slurmtest.Login, "sh", "-c", "cd "+dir+" && chmod 700 engine.test && mkdir tmp")
	copyApptainer(t, c, dir)
	return dir
}

// The engine must be on the login node, so this program runs there as the user.
func TestTheEngineOnACluster(t *testing.T) {
	c := slurmtest.RequireSlurm(t)
	dir := onLogin(t, c)
	run := c.Command(t.Context(), slurmtest.User, slurmtest.Login, "env", loginVariable+"="+dir, "TMPDIR="+dir+"/tmp",
		dir+"/engine.test", "-test.v", "-test.run=^TestOnTheLoginNode$"+os.Getenv(partVariable),
		"-test.timeout=20m")
	if err := attend(c, t, dir, run); err != nil {
		t.Errorf("on the login node: %v", err)
	}
	c.Mend()
	if left := c.Exec(slurmtest.Login, "squeue", "-h", "-u", slurmtest.User, "-t", "PD,R,CF"); left != "" {
		t.Errorf("jobs are left: %s", left)
	}
	for _, node := range []string{slurmtest.Node1, slurmtest.Node2} {
		left, _ := c.Try(slurmtest.User, node, "sh", "-c", "ls /tmp/slipway-*/runs | grep -v 'lock$'")
		if left != "" {
			t.Errorf("on %s there are %s", node, left)
		}
	}
}

// login is an engine on the login node of a real cluster.
type login struct {
	*testing.T
	dir string
}

func (l login) open(t *testing.T) *engineslurm.Engine { return l.openAs(t, "one") }

func (l login) openAs(t *testing.T, instance string) *engineslurm.Engine {
	t.Helper()
	return l.openWith(t, func(c *engineslurm.Config) { c.Instance = instance })
}

func (l login) openWith(t *testing.T, change func(*engineslurm.Config)) *engineslurm.Engine {
	t.Helper()
	config := engineslurm.Config{Dir: l.dir, Instance: "one",
		Commands: slurm.New(slurm.Config{User: fmt.Sprint(os.Getuid())}),
		Guest:    func(string) ([]byte, error) { return os.ReadFile(filepath.Join(l.dir, "slipway-guest")) },
		Devices:  []string{"/dev/fakegpu0", "/dev/fakegpu1"}}
	change(&config)
	e, err := engineslurm.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() }) //nolint:errcheck // it never fails
	return e
}

const loginImage = "slipway-test/minimal:1"

// image imports the image of the tests.
func (l login) image() {
	l.Helper()
	path := filepath.Join(l.dir, "layer.tar")
	file, err := os.Open(path)
	if err != nil {
		l.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // only read
	sum := sha256.New()
	size, err := io.Copy(sum, file)
	if err != nil {
		l.Fatal(err)
	}
	digest := "sha256:" + hex.EncodeToString(sum.Sum(nil))
	config, err := json.Marshal(map[string]any{"architecture": "amd64", "os": "linux",
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{digest}}})
	if err != nil {
		l.Fatal(err)
	}
	_, err = l.open(l.T).ImportImage(l.Context(), session.ImageParts{ID: digest, Refs: []string{loginImage},
		Arch: "amd64", OS: "linux", Layers: []session.ImageLayer{{Digest: digest}}}, map[string]engine.Content{
		session.ImageConfig: {Size: gpu.Bytes(len(config)),
			Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(string(config))), nil }},
		digest: {Size: gpu.Bytes(size), Open: func() (io.ReadCloser, error) { return os.Open(path) }},
	})
	if err != nil {
		l.Fatal(err)
	}
}

// Where it does not run on a login node there is nothing to test: TestTheEngineOnACluster runs it on one.
func TestOnTheLoginNode(t *testing.T) {
	l := login{t, os.Getenv(loginVariable)}
	if l.dir == "" {
		return
	}
	l.image()
	t.Run("a job tries the nodes", l.explores)
	t.Run("Apptainer makes containers", l.contains)
	t.Run("Slurm is asked about sessions", l.checks)
	t.Run("the planner follows Slurm's queue", l.plans)
	t.Run("the guest is reached by a step", l.relays)
	t.Run("a cluster has a kernel on each node", l.clusters)
	t.Run("an agent runs sessions", l.agents)
	t.Run("an agent runs a session over both nodes", l.pairs)
	t.Run("sessions launched together are an array", l.arrays)
	t.Run("another user is shut out", l.private)
	t.Run("firewalls between login node and nodes", l.cuts)
	t.Run("a job is cancelled in Slurm", l.outside)
	t.Run("an agent keeps its promises", l.conforms)
	t.Run("the engine keeps its promises", l.suite)
	t.Run("a node of a session fails", l.fails) // the last one, as that node is gone then
}

const (
	noCommit   = "no image is made of a session there"
	noRegistry = "the cluster of the tests has no registry"
	noNetwork  = "there are no networks to make: every kernel has its own"
)

func (l login) suite(t *testing.T) {
	enginetest.Run(t, func(t *testing.T) engine.Engine {
		return enginetest.Attended(t, engine.Of(l.open(t)))
	}, enginetest.Options{
		Instance: "one", Image: loginImage, Guest: true, AtOnce: 4,
		Serve: []string{"python3", "-m", "http.server", fmt.Sprint(enginetest.ServePort)},
		OOM:   `exec python3 -c 'x = bytearray(1 << 30)'`,
		HomeExists: func(_ *testing.T, c engine.Container) bool {
			_, err := os.Stat(filepath.Join(l.dir, "runs", c.Labels[engine.LabelSession]+"-1", "home"))
			return err == nil
		},
		Without: map[string]string{
			"a container is committed, running or not, and the image removed": noCommit,
			"a commit that is given up leaves no image":                       noCommit,
			"an image is built, with its steps":                               "Slurm builds no images",
			"the home of a container that has ended is read":                  noCommit,
			"pull tells of progress that never goes back":                     noRegistry,
			"pull stops with its context":                                     noRegistry,
			"a network is made once and removed once":                         noNetwork,
			"a network with other labels finds the name taken":                noNetwork,
			"a network without a name is invalid":                             noNetwork,
			"a network stays while a container runs in it":                    noNetwork,
			"containers that are kept apart run in one network":               noNetwork,
			"create without its network says so":                              noNetwork,
			"an administrator changes the image's files, and has no mounts":   "jobs have no root",
		},
	})
}
