//go:build linux && !race

package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/backend/engine/enginetest"
)

// toolMost is how long one of the tools may take on a machine that is busy with
// all the other tests.
const toolMost = 5 * time.Minute

// sshWorld is a session that this computer's own tools reach by ssh.
type sshWorld struct {
	*installed
	config string
	person string // the person's own folder of ssh
	dir    string // for files on this side
}

// tool runs one of this computer's tools to its end.
func (r *sshWorld) tool(name string, args ...string) result { return r.fed("", name, args...) }

func (r *sshWorld) fed(stdin, name string, args ...string) result {
	r.t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		r.t.Fatalf("this test needs %s: %v", name, err)
	}
	var stdout, stderr bytes.Buffer
	ctx, cancel := context.WithTimeout(context.Background(), toolMost)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = r.env, r.dir, strings.NewReader(stdin), &stdout, &stderr
	err := cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		r.t.Errorf("%s %q: %v", name, args, err)
	}
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// ssh runs a command in the session by ssh.
func (r *sshWorld) ssh(args ...string) result {
	r.t.Helper()
	return r.tool("ssh", append([]string{"-F", r.config, "-o", "BatchMode=yes"}, args...)...)
}

func (r *sshWorld) want(what string, got, want result) {
	r.t.Helper()
	if got != want {
		r.t.Errorf("%s: got %+v, want %+v", what, got, want)
	}
}

func newReached(t *testing.T) *sshWorld {
	t.Helper()
	leaveOutIfShort(t)
	enginetest.RequireDocker(t)
	person := t.TempDir()
	p := install(t, "docker")
	p.env = append(p.env, "SLIPWAY_SSH_DIR="+person)
	r := &sshWorld{installed: p, config: p.home.Join("ssh", "config"), person: person, dir: t.TempDir()}
	p.launch("e2e-ssh", "--mem", "512m")
	return r
}

func TestSSHReachesASession(t *testing.T) {
	r := newReached(t)
	t.Run("commands have their output, their code and their input", func(t *testing.T) {
		r := r.on(t)
		r.want("a command", r.ssh("e2e-ssh", "id -un; pwd; echo err >&2; exit 7"),
			result{7, "work\n/home/work\n", "err\n"})
		r.want("input", r.fed("some\nlines\n", "ssh", "-F", r.config, "e2e-ssh.slipway", "cat; echo end"),
			result{0, "some\nlines\nend\n", ""})
		r.want("by slipway ssh", r.do("ssh", "e2e-ssh", "echo $((40+2)); exit 9"), result{9, "42\n", ""})
		if got := r.ssh("-tt", "e2e-ssh", "stty size; test -t 0 && exit 3"); got.code != 3 ||
			!strings.Contains(got.stdout, " ") {
			t.Errorf("with a terminal: %+v", got)
		}
	})
	t.Run("what a command left in the background stays", func(t *testing.T) {
		r := r.on(t)
		got := r.ssh("e2e-ssh", "sleep 1000 >/dev/null 2>&1 </dev/null & echo $!")
		pid := strings.TrimSpace(got.stdout)
		r.want("it", r.ssh("e2e-ssh", "kill -0 "+pid+" && kill "+pid), result{0, "", ""})
	})
	t.Run("files go both ways unharmed", r.filesGo)
	t.Run("ports are forwarded both ways", r.portsGo)
	t.Run("strangers and other hosts are refused", r.strangersStay)
	t.Run("the configuration follows the sessions", r.configurationFollows)
	t.Run("a folder is served alone", r.folderIsServed)
}

func (r *sshWorld) folderIsServed(t *testing.T) {
	r = r.on(t)
	r.must("folder", "create", "served")
	got := r.must("folder", "sftp", "served")
	if !strings.Contains(got, "sftp-served serves served on ") || !strings.Contains(got, " sftp-served:served/\n") {
		t.Errorf("it says %q", got)
	}
	if again := r.must("folder", "sftp", "served"); again != got {
		t.Errorf("the second time it says %q", again)
	}
	if err := os.WriteFile(filepath.Join(r.dir, "data.csv"), []byte("1,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sent := r.fed("cd served\nput data.csv\ncd ..\nls -1a\n", "sftp", "-q", "-F", r.config, "-b", "-", "sftp-served")
	if listed := strings.Fields(sent.stdout); sent.code != 0 || !slices.Contains(listed, "served") ||
		slices.Contains(listed, ".cache") {
		t.Errorf("sftp: %+v", sent)
	}
	back := filepath.Join(r.dir, "served.csv")
	r.must("cp", "folder:served/data.csv", back)
	if content, err := os.ReadFile(back); err != nil || string(content) != "1,2\n" {
		t.Errorf("the folder has %q, %v", content, err)
	}
	if got := r.ssh("sftp-served", "id"); got.code != 126 || !strings.Contains(got.stderr, "has no shell") {
		t.Errorf("a command: %+v", got)
	}
	r.must("ssh", "--test", "sftp-served")
	if images := r.must("image", "ls"); strings.Contains(images, "slipway-empty") {
		t.Errorf("its image is listed: %s", images)
	}
	if got := r.do("commit", "sftp-served", "kept"); got.code == 0 {
		t.Errorf("an image was made of it: %+v", got)
	}
	r.must("stop", "--force", "sftp-served")
}

// on is r for a subtest.
func (r *sshWorld) on(t *testing.T) *sshWorld {
	p := *r.installed
	p.t = t
	return &sshWorld{installed: &p, config: r.config, person: r.person, dir: r.dir}
}

func (r *sshWorld) filesGo(t *testing.T) {
	r = r.on(t)
	const size = 100 << 20
	data := make([]byte, size)
	_, _ = rand.Read(data) //nolint:errcheck // it never fails
	if err := os.WriteFile(filepath.Join(r.dir, "big"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(data))
	for _, order := range []string{"put big", "get big back"} {
		if got := r.fed(order+"\n", "sftp", "-q", "-F", r.config, "-b", "-", "e2e-ssh"); got.code != 0 {
			t.Fatalf("%s: %+v", order, got)
		}
	}
	if got := r.ssh("e2e-ssh", "sha256sum big"); !strings.HasPrefix(got.stdout, sum) {
		t.Errorf("it arrived as %+v, want %s", got, sum)
	}
	back, err := os.ReadFile(filepath.Join(r.dir, "back"))
	if err != nil || !bytes.Equal(back, data) {
		t.Errorf("%d bytes came back, %v", len(back), err)
	}
	tree := filepath.Join(r.dir, "a tree", "below")
	if err := errors.Join(os.MkdirAll(tree, 0o755), os.WriteFile(filepath.Join(tree, "한글 file"), []byte("text"),
		0o640)); err != nil {
		t.Fatal(err)
	}
	if got := r.tool("scp", "-q", "-F", r.config, "-r", "a tree", "e2e-ssh:"); got.code != 0 {
		t.Errorf("scp: %+v", got)
	}
	r.want("what scp brought", r.ssh("e2e-ssh", "stat -c '%U %a %s' a*tree/below/*"), result{0, "work 640 4\n", ""})
	if got := r.tool("rsync", "-a", "--delete", "-e", "ssh -F "+r.config, "a tree/", "e2e-ssh:synced/"); got.code != 0 {
		t.Errorf("rsync: %+v", got)
	}
	r.want("what rsync brought", r.ssh("e2e-ssh", "cat synced/below/*"), result{0, "text", ""})
	if got := r.tool("scp", "-q", "-O", "-F", r.config, "big", "e2e-ssh:old"); got.code == 0 ||
		!strings.Contains(got.stderr, "Leave out -O") {
		t.Errorf("the old scp: %+v", got)
	}
}

func (r *sshWorld) portsGo(t *testing.T) {
	r = r.on(t)
	// A refused attempt would be told on the standard error of the ssh below, so it listens first.
	r.ssh("e2e-ssh", "echo hello > page; python3 -m http.server 8123 --bind 127.0.0.1 >/dev/null 2>&1 </dev/null & "+
		"until python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 8123))' 2>/dev/null; "+
		"do sleep 0.1; done")
	fetch := "import time, urllib.request\nfor n in range(300):\n    try:\n        " +
		"print(urllib.request.urlopen('http://127.0.0.1:%d/page').read()); break\n    except OSError: time.sleep(0.1)\n"
	dir, err := os.MkdirTemp("", "slipway-") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	near := filepath.Join(dir, "near") // instead of a port here, which somebody might take meanwhile
	// The command in the session goes out through the port that comes back here, and in again.
	got := r.ssh("-L", near+":localhost:8123", "-R", "18125:"+near, "-o", "ExitOnForwardFailure=yes", "e2e-ssh",
		"python3 -c \""+fmt.Sprintf(fetch, 18125)+"\"")
	r.want("there and back", got, result{0, "b'hello\\n'\n", ""})
	if got := r.ssh("-R", "80:127.0.0.1:1", "-o", "ExitOnForwardFailure=yes", "e2e-ssh", "true"); got.code == 0 {
		t.Errorf("a port that needs a privilege: %+v", got)
	}
}

func (r *sshWorld) strangersStay(t *testing.T) {
	r = r.on(t)
	key := filepath.Join(r.dir, "other")
	if got := r.tool("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	proxy := "ProxyCommand=" + r.path + " ssh-proxy --home " + r.home.Dir + " e2e-ssh"
	bare := []string{"-F", "none", "-o", "BatchMode=yes", "-o", proxy, "-o", "IdentityAgent=none", "-o",
		"UserKnownHostsFile=/dev/null"}
	for name, args := range map[string][]string{
		"another key": append(bare[:len(bare):len(bare)], "-o", "StrictHostKeyChecking=no", "-i", key, "work@x",
			"true"),
		"no key": append(bare[:len(bare):len(bare)], "-o", "StrictHostKeyChecking=no", "-o",
			"IdentityFile=none", "work@x", "true"),
		"an unknown host": append(bare[:len(bare):len(bare)], "-o", "StrictHostKeyChecking=yes", "-i",
			r.home.Join("ssh", "id_container"), "work@x", "true"),
		"another user": {"-F", r.config, "-o", "BatchMode=yes", "root@e2e-ssh", "true"},
		"a host unheard of": {"-F", r.config, "-o", "BatchMode=yes", "-o", "HostKeyAlias=slipway-other", "e2e-ssh",
			"true"},
	} {
		if got := r.tool("ssh", args...); got.code != 255 || got.stderr == "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for _, name := range []string{"id_container", "known_hosts", "config"} {
		if info, err := os.Stat(r.home.Join("ssh", name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if log, err := os.ReadFile(r.home.LogFile()); err != nil || strings.Contains(string(log), "PRIVATE") {
		t.Errorf("the log: %v", err)
	}
}

func (r *sshWorld) configurationFollows(t *testing.T) {
	r = r.on(t)
	own := filepath.Join(r.person, "config")
	const before = "# mine\n\nHost *\n\tCompression yes\r\nHost lab" // no line end, as editors may leave it
	if err := os.WriteFile(own, []byte(before), 0o640); err != nil {
		t.Fatal(err)
	}
	r.must("ssh-config", "install")
	r.must("ssh-config", "install")
	person := r.must("ssh-config", "show")
	if !strings.Contains(person, "yes, in ") {
		t.Errorf("show: %s", person)
	}
	if got := r.must("ssh", "--test", "e2e-ssh"); !strings.Contains(got,
		"can be logged in to, by this computer's ssh too") {
		t.Errorf("the test: %s", got)
	}
	r.want("by the person's own configuration", r.tool("ssh", "-F", own, "-o", "BatchMode=yes", "e2e-ssh", "id -un"),
		result{0, "work\n", ""})
	r.personStandsInTheWay(own)
	r.must("rename", "e2e-ssh", "e2e-named")
	s := r.session("show", "e2e-named")
	eventually(t, "the new name", func() (bool, any) { got := r.ssh("e2e-named", "exit 4"); return got.code == 4, got })
	if got := r.ssh("e2e-ssh", "true"); got.code == 0 {
		t.Error("the old name is there still")
	}
	r.launch("e2e-closed", "--mem", "256m", "--no-ssh")
	if got := r.do("ssh", "e2e-closed", "true"); got.code == 0 || !strings.Contains(got.stderr, "without ssh") {
		t.Errorf("a session without ssh: %+v", got)
	}
	r.must("stop", "--wait", "--wait-timeout", "60s", "e2e-named")
	eventually(t, "the end", func() (bool, any) {
		text, err := os.ReadFile(r.config)
		known, knownErr := os.ReadFile(r.home.Join("ssh", "known_hosts"))
		return errors.Join(err, knownErr) == nil && !strings.Contains(string(text), string(s.ID)) &&
			!strings.Contains(string(known), string(s.ID)), string(text)
	})
	r.must("ssh-config", "remove")
	if strings.Contains(r.must("ssh-config", "show"), "yes, in ") {
		t.Error("it is installed still")
	}
	after, err := os.ReadFile(own)
	info, infoErr := os.Stat(own)
	if errors.Join(err, infoErr) != nil || string(after) != before || info.Mode().Perm() != 0o640 {
		t.Errorf("the person's configuration is left as %q, %v", after, info)
	}
}

// personStandsInTheWay has the test of a connection fail for what stands in the
// person's own configuration, and puts it back.
func (r *sshWorld) personStandsInTheWay(own string) {
	r.t.Helper()
	good, err := os.ReadFile(own)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(own, append([]byte("Host *\n  User nobody-else\n\nHost *\n"), good...), 0o640); err != nil {
		r.t.Fatal(err)
	}
	if got := r.do("ssh", "--test", "e2e-ssh"); got.code == 0 ||
		!strings.Contains(got.stderr, "does not come through") || !strings.Contains(got.stderr, own) {
		r.t.Errorf("the test by a configuration that stands in the way: %+v", got)
	}
	if err := os.WriteFile(own, good, 0o640); err != nil {
		r.t.Fatal(err)
	}
}

func TestSSHReachesASimulatedSession(t *testing.T) {
	leaveOutIfShort(t)
	person := t.TempDir()
	p := install(t, "sim")
	p.env = append(p.env, "SLIPWAY_SSH_DIR="+person)
	r := &sshWorld{installed: p, config: p.home.Join("ssh", "config"), person: person, dir: t.TempDir()}
	p.launch("e2e-sim-ssh", "--mem", "256m")
	r.want("a command", r.ssh("e2e-sim-ssh", "echo $((40+2)); exit 7"), result{7, "42\n", ""})
	if err := os.WriteFile(filepath.Join(r.dir, "x"), []byte("text\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	sent := r.fed("mkdir sub\nput x sub/y\nrename sub/y sub/z\nls -1 sub\n", "sftp", "-q", "-F", r.config, "-b", "-",
		"e2e-sim-ssh")
	if sent.code != 0 || !strings.Contains(sent.stdout, "\nsub/z") {
		t.Errorf("sftp: %+v", sent)
	}
	if got := r.tool("scp", "-q", "-p", "-F", r.config, "e2e-sim-ssh:sub/z", "back"); got.code != 0 {
		t.Errorf("scp: %+v", got)
	}
	if content, err := os.ReadFile(filepath.Join(r.dir, "back")); err != nil || string(content) != "text\n" {
		t.Errorf("%q came back, %v", content, err)
	}
}
