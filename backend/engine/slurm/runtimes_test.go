//go:build linux && runtimes

package slurm_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway/backend/engine"
	"slipway/backend/engine/slurm/slurmtest"
	"slipway/backend/guest/link"
	"slipway/backend/guest/node"
	"slipway/backend/session"
	"slipway/backend/terminal"
)

// TestOtherRuntimes compares the runner with the container runtimes of Debian: by each, a job runs the guest without
// root, further user ids or a daemon. Only build/slurm/runtimes.sh runs it, on a cluster whose first node has them.
func TestOtherRuntimes(t *testing.T) {
	c := slurmtest.RequireSlurm(t)
	dir := onLogin(t, c)
	c.Exec(slurmtest.Node1, "sh", "-c", "cd "+dir+` && mkdir root store &&
		tar -C root --exclude './dev/*' -xf layer.tar && cd root &&
		mkdir -p .slipway/link .slipway/spool home/work && touch .slipway/guest .slipway/config.json`)
	layer, _, _ := strings.Cut(c.Exec(slurmtest.Login, "sha256sum", dir+"/layer.tar"), " ")
	c.Exec(slurmtest.Login, "mv", dir+"/layer.tar", dir+"/store/"+layer+".tar")
	t.Chdir(filepath.Join(os.Getenv("SLIPWAY_SLURM"), dir)) // the path of a socket must be short
	table := "\n| Runtime | User id | Process 1 | Own processes | Host name | TERM: code | Gone after | If deaf |\n" +
		strings.Repeat("|---", 8) + "|"
	for _, r := range runtimes(dir + "/root") {
		t.Run(r.name, func(t *testing.T) {
			tried := &trial{T: t, c: slurmtest.RequireSlurm(t), containerRuntime: r, dir: dir + "/" + r.name,
				layer: "sha256:" + layer}
			tried.start()
			tried.works()
			row := tried.looks() + " | " + tried.cancel()
			tried.deaf = true
			tried.start()
			table += fmt.Sprintf("\n| %s | %s | %s |", r.name, row, tried.cancel())
		})
	}
	t.Log(table)
}

// containerRuntime is a runtime with the command that starts the guest. A shell runs it in the folder of the run.
type containerRuntime struct {
	name, command string
	uid           int // of the person in the container
}

// ownRunner is the name of the one that needs no other program.
const ownRunner = "Slipway"

// The user of the cluster, and what the containers run.
const (
	adaID     = 1500
	guestPath = "/usr/local/bin:/usr/bin:/bin"
	guestInit = "/.slipway/guest init"
)

// inContainer are the files and folders of a run, or of the node, and where a container has them.
func inContainer(run string) map[string]string {
	return map[string]string{run + "/guest": "/.slipway/guest", run + "/guest.json": "/.slipway/config.json",
		run + "/link": "/.slipway/link", run + "/spool": "/.slipway/spool", run + "/home": session.Home,
		"/dev/fakegpu0": "/dev/fakegpu0", "/dev/fakegpu1": "/dev/fakegpu1"}
}

// runtimes are all of them, the runner first. The image is the folder root.
func runtimes(root string) []containerRuntime {
	binds := func(option, between string) (options string) {
		for from, to := range inContainer("$PWD") {
			options += " " + option + " " + from + between + to
		}
		return options + " "
	}
	return []containerRuntime{
		{ownRunner, "$PWD/guest node $PWD", adaID},
		{"crun", "crun --cgroup-manager=disabled --root $PWD/state run main1", 0},
		{"runc", "runc --root $PWD/state run main1", 0},
		{"bubblewrap", "bwrap --unshare-user --unshare-pid --unshare-uts --unshare-ipc --hostname main1 --as-pid-1 " +
			"--die-with-parent --cap-add ALL --bind " + root + " / --proc /proc --dev /dev" +
			binds("--dev-bind", " ") + guestInit, adaID},
		{"charliecloud", "ch-run --write --no-passwd --uid=0 --gid=0" + binds("--bind", ":") + root + " -- " +
			guestInit, 0},
		{"podman", "podman --root $PWD/state --runroot $PWD/run --storage-driver=vfs --cgroup-manager=cgroupfs run " +
			"--cgroups=disabled --network=host --uts=private --hostname=main1 --log-driver=none" +
			binds("--volume", ":") + "--rootfs " + root + " " + guestInit, 0},
	}
}

// bundle is the configuration of a run for crun and runc, which have the person as root.
func bundle(run string) any {
	type object = map[string]any
	mounts := []object{{"type": "proc", "source": "proc", "destination": "/proc"},
		{"type": "tmpfs", "source": "tmpfs", "destination": "/dev", "options": []string{"nosuid", "mode=755"}},
		{"type": "devpts", "source": "devpts", "destination": "/dev/pts",
			"options": []string{"newinstance", "ptmxmode=0666", "mode=0620"}}}
	for from, to := range inContainer(run) {
		mounts = append(mounts, object{"type": "bind", "source": from, "destination": to, "options": []string{"bind"}})
	}
	ids := []object{{"containerID": 0, "hostID": adaID, "size": 1}}
	kept := []string{"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_KILL", "CAP_SETGID", "CAP_SETPCAP",
		"CAP_SETUID"}
	return object{"ociVersion": "1.0.2", "hostname": "main1", "mounts": mounts,
		"root": object{"path": filepath.Dir(run) + "/root"},
		"process": object{"cwd": "/", "args": strings.Fields(guestInit), "env": []string{"PATH=" + guestPath},
			"user": object{"uid": 0, "gid": 0}, "noNewPrivileges": true,
			"capabilities": object{"bounding": kept, "effective": kept, "permitted": kept}},
		"linux": object{"uidMappings": ids, "gidMappings": ids, "namespaces": []object{
			{"type": "user"}, {"type": "pid"}, {"type": "mount"}, {"type": "uts"}, {"type": "ipc"}}}}
}

// trial is one job with a runtime.
type trial struct {
	*testing.T
	containerRuntime
	c      *slurmtest.Cluster
	dir    string // of the run on the nodes; here it is in the current folder, by the runtime's name
	layer  string // digest of the image's only one
	deaf   bool   // TERM does not reach it, so that Slurm kills it after KillWait
	job    string
	client *link.Client
}

func (t *trial) must(err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (t *trial) write(name string, content any) {
	t.Helper()
	data, err := json.Marshal(content)
	t.must(err)
	t.must(os.WriteFile(filepath.Join(t.name, name), data, 0o644))
}

// start submits the job and connects to the guest.
func (t *trial) start() {
	t.c.Exec(slurmtest.Login, "sh", "-c", "rm -rf "+t.dir+" && mkdir "+t.dir+" && cd "+t.dir+
		" && cp ../slipway-guest guest && mkdir link home && mkdir -m 700 spool")
	config := engine.GuestConfig{Session: first, Kernel: "main1", UID: t.uid, GID: t.uid, Shared: true}
	connect := t.listen
	if t.name == ownRunner {
		connect = t.meet
		t.write(node.SpecFile, node.Spec{Session: first, Attempt: 1, Kernels: []string{"main1"},
			Store: filepath.Dir(t.dir) + "/store", Layers: []string{t.layer},
			Box: node.Box{Devices: []string{"/dev/fakegpu0", "/dev/fakegpu1"}}})
		t.write(node.GuestFile("", "main1"), config)
	} else {
		t.write("config.json", bundle(t.dir))
		t.write("guest.json", config)
	}
	pass := "'kill $!'"
	if t.deaf {
		pass = ":"
	}
	// The TERM of scancel reaches the shell alone, and ends its first wait.
	script := "#!/bin/sh\nPATH=" + guestPath + "\n" + t.command + " &\ntrap " + pass + " TERM\nwait $!\ncode=$?\n" +
		"if kill -0 $! 2>/dev/null; then wait $!; code=$?; fi\necho $code >code\n"
	t.must(os.WriteFile(t.name+"/job.sh", []byte(script), 0o644))
	t.must(os.Chown(t.name+"/job.sh", adaID, adaID))
	submit := func() {
		t.job = t.c.Exec(slurmtest.Login, "sbatch", "--parsable", "--export=NONE", "-w", slurmtest.Node1, "-c", "1",
			"--mem=300", "--gres=gpu:1", "-t", "10", "-D", t.dir, "-o", t.dir+"/out", t.dir+"/job.sh")
		t.Cleanup(func() { t.c.Exec(slurmtest.Login, "scancel", t.job) })
	}
	conn, err := connect(submit)
	if err != nil {
		said, _ := os.ReadFile(t.name + "/out")
		t.Fatalf("the guest does not start: %v\n%s", err, said)
	}
	t.client, err = link.Connect(t.Context(), conn)
	t.must(err)
}

// listen waits for the guest in the folder of the run.
func (t *trial) listen(submit func()) (net.Conn, error) {
	socket := t.name + "/link/agent.sock"
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket})
	t.must(err)
	defer listener.Close()
	t.must(os.Chmod(socket, 0o777))
	submit()
	t.must(listener.SetDeadline(time.Now().Add(time.Minute)))
	return listener.Accept()
}

// meet connects through the runner.
func (t *trial) meet(submit func()) (net.Conn, error) {
	submit()
	var meeting node.Meeting
	t.c.Await("the meeting", func() bool {
		read, err := node.ReadMeeting(t.name, "main1")
		meeting = read
		return err == nil
	})
	conn, err := net.Dial("unix", "../../../"+slurmtest.Node1+meeting.Socket)
	t.must(err)
	return node.Through(t.Context(), conn, meeting)
}

// in runs a script in the container and returns what it writes and its exit code.
func (t *trial) in(script string) (string, int) {
	t.Helper()
	stream, err := t.client.Exec(t.Context(), session.ExecRequest{Command: []string{"sh", "-c", script}})
	t.must(err)
	var out bytes.Buffer
	code, err := terminal.RunExec(t.Context(), terminal.NewConn(stream), terminal.ExecIO{Stdout: &out, Stderr: &out})
	t.must(err)
	return strings.TrimSpace(out.String()), code
}

// works checks what a session needs, by whatever runtime.
func (t *trial) works() {
	if out, code := t.in("id -u; exit 7"); out != fmt.Sprint(t.uid) || code != 7 {
		t.Errorf("a command writes %q and ends with %d", out, code)
	}
	opened, err := t.client.OpenTerminal(t.Context(), session.TerminalRequest{Cols: 80, Rows: 24})
	t.must(err)
	stream, err := t.client.AttachTerminal(t.Context(), session.AttachRequest{Terminal: opened.ID, Client: "test"})
	t.must(err)
	viewer := terminal.NewViewer(terminal.ViewerConfig{Client: "test", Output: new(bytes.Buffer)})
	_, err = viewer.Write([]byte("test -t 0 && exit 3\n"))
	t.must(err)
	if code, err := viewer.Run(t.Context(), terminal.NewConn(stream)); err != nil || code != 3 {
		t.Errorf("a shell ends with %d, %v", code, err)
	}
	t.in("(setsid python3 -m http.server 8123 --bind 127.0.0.1 >/dev/null 2>&1 &)")
	t.c.Await("the port", func() bool {
		conn, err := t.client.Dial(t.Context(), 8123)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	if out, _ := t.in(": </dev/fakegpu0; : </dev/fakegpu1"); strings.Count(out, "not permitted") != 1 ||
		!strings.Contains(out, "fakegpu1") {
		t.Errorf("of the GPUs: %q", out)
	}
	if out, code := t.in("exec python3 -c 'bytearray(400 << 20)'"); code != 128+9 {
		t.Errorf("a program with more memory than the job writes %q and ends with %d", out, code)
	}
}

// looks returns what a container shows of itself.
func (t *trial) looks() string {
	const process, space = "tr '\\0' ' ' </proc/1/cmdline", "readlink /proc/self/ns/pid"
	one, _ := t.in(process)
	own, _ := t.in(space)
	host, _ := t.in("hostname")
	return fmt.Sprintf("%d | %s | %t | %s", t.uid, one, own != t.c.Exec(slurmtest.Node1, "sh", "-c", space), host)
}

// cancel cancels the job and returns the exit code that TERM led to, unless the job is deaf to it, and how long the
// last process of the person was there.
func (t *trial) cancel() string {
	began := time.Now()
	t.c.Exec(slurmtest.Login, "scancel", t.job)
	for {
		left := t.c.Root(slurmtest.Node1, "sh", "-c", "pgrep -a -u ada || test $? = 1")
		switch took := time.Since(began); {
		case left == "":
			took = took.Round(100 * time.Millisecond)
			if t.deaf {
				return took.String()
			}
			code, err := os.ReadFile(t.name + "/code")
			t.must(err)
			return fmt.Sprintf("%s | %s", bytes.TrimSpace(code), took)
		case took > 30*time.Second: // Slurm kills what is left after 10 s
			t.Logf("%s leaves:\n%s\n%s", t.name, left, t.c.Root(slurmtest.Node1, "sh", "-c",
				"squeue -h -j "+t.job+"; cat /proc/$(pgrep -o -u ada)/cgroup"))
			t.c.Root(slurmtest.Node1, "pkill", "-KILL", "-u", slurmtest.User)
			return "not in 30 s"
		}
	}
}
