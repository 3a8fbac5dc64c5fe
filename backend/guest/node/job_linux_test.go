package node_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"slipway/backend/engine"
	"slipway/backend/guest/link"
	"slipway/backend/guest/node"
	"slipway/backend/session"
	"slipway/backend/terminal"
)

// patience is how long a test waits for what must happen. No test says how soon that is: a machine with other work may
// take its time.
const patience = 2 * time.Minute

// program is slipway-guest.
var program string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "slipway-node-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "slipway-guest")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, "../slipway-guest")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build slipway-guest: %v\n%s", err, out)
		return 1
	}
	if err := os.Chmod(dir, 0o755); err != nil { // for those who run jobs
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// persons counts the users of tests, each of whom has one job. None has subordinate ids or a name, and other tests on
// this machine have others.
var persons atomic.Int32

const personsEach = 100 // of one process

// job is a job of one kernel on this machine.
type job struct {
	t      testing.TB
	uid    int
	top    string // everything of the job
	dir    string // of the run
	spec   node.Spec
	config engine.GuestConfig
	env    []string
	kernel string

	cmd    *exec.Cmd
	output bytes.Buffer
	exited chan struct{}
}

// eachRunner runs a part of the suite that every runner must pass.
func eachRunner(t *testing.T, test func(t *testing.T, by node.Runner)) {
	t.Helper()
	t.Run("own", func(t *testing.T) { test(t, node.Own) })
	if apptainer() == "" {
		t.Log("not tried with Apptainer, which build/slurm/apptainer.sh builds")
		return
	}
	t.Run("apptainer", func(t *testing.T) { test(t, node.Apptainer) })
}

// apptainer is the folder with the program that build/slurm/apptainer.sh builds, empty without it.
func apptainer() string {
	found, _ := filepath.Glob("../../../build/.cache/apptainer/*/bin") // the pattern is a good one
	if len(found) == 0 {
		return ""
	}
	path, _ := filepath.Abs(found[0])
	return path
}

// named is a user with a name, which Apptainer needs. Only this job runs programs as it.
const named = "games"

// newJob prepares a job that starts no command. Its image has the programs of this machine.
func newJob(t testing.TB) *job { return newJobBy(t, node.Own) }

func newJobBy(t testing.TB, by node.Runner) *job {
	t.Helper()
	top, err := os.MkdirTemp("", "slipway-node-")
	must(t, err)
	j := &job{t: t, uid: os.Getuid(), top: top, dir: filepath.Join(top, "run"), kernel: "main1",
		env: []string{"PATH=" + os.Getenv("PATH"), "SLURM_JOB_ID=41", "SECRET=of the agent"}}
	if j.uid == 0 && by == node.Apptainer {
		person, err := user.Lookup(named)
		must(t, err)
		j.uid, err = strconv.Atoi(person.Uid)
		must(t, err)
	}
	if by == node.Apptainer {
		j.env[0] += ":" + apptainer()
	}
	if j.uid == 0 {
		j.uid = 2_000_000 + os.Getpid()*personsEach + int(persons.Add(1))
	}
	t.Cleanup(func() { must(t, os.RemoveAll(top)) })
	must(t, os.Chmod(top, 0o755))
	must(t, os.Mkdir(j.dir, 0o700))
	must(t, os.Mkdir(j.path("store"), 0o755))
	j.spec = node.Spec{Session: "abcdefghij12", Attempt: 1, Runner: by, Kernels: []string{"main1"},
		Store: j.path("store"), Local: j.path("local"),
		Box: node.Box{Env: []session.EnvVar{{Name: "IMAGE", Value: "yes"}}}}
	j.config = engine.GuestConfig{Session: "abcdefghij12", Kernel: "main1", UID: 1, GID: 1,
		Env: []session.EnvVar{{Name: "GREETING", Value: "good day"}}}
	j.layer(dirs("usr", "etc", "home"), []entry{{Header: tar.Header{Name: "tmp", Typeflag: tar.TypeDir, Mode: 0o1777}}},
		links("bin", "usr/bin", "sbin", "usr/sbin", "lib", "usr/lib", "lib64",
			"usr/lib64"))
	j.mount("/usr", "/usr", true)
	return j
}

func (j *job) path(name string) string { return filepath.Join(j.top, name) }

// mount mounts a folder in the container.
func (j *job) mount(from, to string, readOnly bool) {
	j.spec.Mounts = append(j.spec.Mounts, session.Mount{Source: from, Target: to, ReadOnly: readOnly})
}

// folder makes a folder of the person's.
func (j *job) folder(name string) string {
	j.t.Helper()
	must(j.t, os.MkdirAll(j.path(name), 0o755))
	must(j.t, os.Chown(j.path(name), j.uid, j.uid))
	return j.path(name)
}

type entry struct {
	tar.Header
	content string
}

func dirs(names ...string) (list []entry) {
	for _, name := range names {
		list = append(list, entry{Header: tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: 0o755}})
	}
	return list
}

func links(pairs ...string) (list []entry) {
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, entry{Header: tar.Header{Name: pairs[i], Linkname: pairs[i+1], Typeflag: tar.TypeSymlink}})
	}
	return list
}

func files(pairs ...string) (list []entry) {
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, entry{tar.Header{Name: pairs[i], Typeflag: tar.TypeReg, Mode: 0o644,
			Size: int64(len(pairs[i+1]))}, pairs[i+1]})
	}
	return list
}

// archive returns a tar archive.
func archive(t testing.TB, parts ...[]entry) []byte {
	t.Helper()
	var out bytes.Buffer
	writer := tar.NewWriter(&out)
	for _, part := range parts {
		for _, e := range part {
			must(t, writer.WriteHeader(&e.Header))
			_, err := writer.Write([]byte(e.content))
			must(t, err)
		}
	}
	must(t, writer.Close())
	return out.Bytes()
}

// layer adds a layer on top of the image.
func (j *job) layer(parts ...[]entry) {
	j.t.Helper()
	data := archive(j.t, parts...)
	sum := sha256.Sum256(data)
	name := hex.EncodeToString(sum[:])
	must(j.t, os.WriteFile(filepath.Join(j.spec.Store, name+".tar"), data, 0o644))
	j.spec.Layers = append(j.spec.Layers, "sha256:"+name)
}

// start starts the runner, as Slurm does.
func (j *job) start() *job {
	j.t.Helper()
	j.write(node.SpecFile, j.spec)
	j.write(filepath.Base(node.GuestFile(j.dir, j.kernel)), j.config)
	must(j.t, os.Chown(j.dir, j.uid, j.uid))
	must(j.t, os.Chown(j.top, j.uid, j.uid))
	j.cmd = j.command("node", j.dir)
	j.output.Reset()
	j.cmd.Stdout, j.cmd.Stderr = &j.output, &j.output
	j.cmd.WaitDelay = patience
	must(j.t, j.cmd.Start())
	exited := make(chan struct{})
	j.exited = exited
	cmd := j.cmd
	go func() {
		_ = cmd.Wait()
		close(exited)
	}()
	j.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-exited
		j.expectNothing()
	})
	return j
}

// command is slipway-guest as the person, outside of any container.
func (j *job) command(args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Env, cmd.Dir = j.env, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(j.uid), Gid: uint32(j.uid)}
	}
	return cmd
}

// write writes a file of the run.
func (j *job) write(name string, value any) {
	j.t.Helper()
	data, err := json.Marshal(value)
	must(j.t, err)
	must(j.t, os.WriteFile(filepath.Join(j.dir, name), data, 0o600))
	must(j.t, os.Chown(filepath.Join(j.dir, name), j.uid, j.uid))
}

// meet waits for the meeting.
func (j *job) meet() node.Meeting {
	j.t.Helper()
	var m node.Meeting
	j.until("the meeting", func() bool {
		var err error
		m, err = node.ReadMeeting(j.dir, j.kernel)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			j.t.Fatal(err)
		}
		return err == nil
	})
	return m
}

// until waits for something that happens while the runner runs.
func (j *job) until(what string, done func() bool) {
	j.t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(5 * time.Millisecond) {
		select {
		case <-j.exited:
			j.t.Fatalf("the runner ended before %s: %s; log: %s", what, j.output.String(), j.log())
		default:
		}
		if time.Now().After(deadline) {
			j.t.Fatalf("%s did not come; log: %s", what, j.log())
		}
	}
}

// dial returns the guest's link.
func (j *job) dial() net.Conn {
	j.t.Helper()
	j.meet()
	conn, err := node.Dial(j.t.Context(), j.dir, j.kernel)
	must(j.t, err)
	return conn
}

// connect greets the guest.
func (j *job) connect() *link.Client {
	j.t.Helper()
	return greet(j.t, j.dial())
}

func greet(t testing.TB, conn net.Conn) *link.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	client, err := link.Connect(ctx, conn)
	must(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// begin lets the batch command start and returns a channel that is closed when the guest has ended.
func (j *job) begin() {
	j.t.Helper()
	client := j.connect()
	go func() { _ = client.Events(j.t.Context(), func(link.Event) error { return nil }) }()
}

// exit waits for the runner's end and returns the record.
func (j *job) exit() node.Exit {
	j.t.Helper()
	select {
	case <-j.exited:
	case <-time.After(patience):
		j.t.Fatalf("the runner did not end; log: %s", j.log())
	}
	e, err := node.ReadExit(j.dir, j.kernel)
	if err != nil {
		j.t.Fatalf("%v; output: %s", err, j.output.String())
	}
	return e
}

func (j *job) log() string {
	log, err := node.OpenLog(j.t.Context(), j.dir, j.kernel, session.LogOptions{})
	if err != nil {
		return err.Error()
	}
	defer log.Close()
	var text bytes.Buffer
	_, _ = text.ReadFrom(log)
	return text.String()
}

// run runs a command of a shell in the container and returns what it wrote.
func (j *job) run(client *link.Client, script string) string {
	j.t.Helper()
	ctx, cancel := context.WithTimeout(j.t.Context(), patience)
	defer cancel()
	stream, err := client.Exec(ctx, session.ExecRequest{Command: []string{"/bin/bash", "-c", script}})
	must(j.t, err)
	var out bytes.Buffer
	_, err = terminal.RunExec(ctx, terminal.NewConn(stream), terminal.ExecIO{Stdin: strings.NewReader(""),
		Stdout: &out, Stderr: &out})
	must(j.t, err)
	return strings.TrimSpace(out.String())
}

// processes are those of the person.
func (j *job) processes() (found []string) {
	entries, err := os.ReadDir("/proc")
	must(j.t, err)
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		info, err := os.Stat("/proc/" + e.Name())
		line, errLine := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if err == nil && errLine == nil && int(info.Sys().(*syscall.Stat_t).Uid) == j.uid && len(line) > 0 {
			found = append(found, e.Name()+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

// expectNothing fails if a process of the person outlives the runner by more than 2 s of a quiet machine.
func (j *job) expectNothing() {
	j.t.Helper()
	if os.Getuid() != 0 {
		return // the person runs the tests as well
	}
	for deadline := time.Now().Add(patience); len(j.processes()) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			j.t.Fatalf("these outlive the runner: %q", j.processes())
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
