//go:build linux

package slurm_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway/backend/guest/node"
	"slipway/backend/session"
	"slipway/backend/terminal"
)

// ring sends messages from each kernel to the next, in both directions over one connection each, by their names. The
// first kernel measures.
const ring = `
import os, socket, time
size, rank = int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"])
names, port = os.environ["SLIPWAY_CLUSTER_HOSTS"].split(","), int(os.environ["MASTER_PORT"])
listener = socket.create_server((names[rank], port))
while True:
    try:
        after = socket.create_connection((names[(rank + 1) % size], port), 10)
        break
    except ConnectionRefusedError:
        time.sleep(0.05)
before, _ = listener.accept()
for s in (after, before):
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
def take(n):
    left = n
    while left:
        got = before.recv(min(left, 1 << 20))
        assert got, "the ring is broken"
        left -= len(got)
        if rank:
            after.sendall(got)
def turn(n, times):
    began = time.monotonic()
    for _ in range(times):
        if not rank:
            after.sendall(bytes(n))
        take(n)
    return (time.monotonic() - began) / times
turn(8, 10)
short = turn(8, 2000)
bulk = turn(1 << 16, 1024)
if not rank:
    print("%d us a round, %d MiB/s" % (short * 1e6, 2 / 16 / bulk))
`

// in runs a command in a kernel of a session.
func (m *manager) in(id session.ID, kernel string, command ...string) (string, error) {
	ctx, cancel := context.WithTimeout(m.Context(), time.Minute)
	defer cancel()
	stream, err := m.Exec(ctx, id, session.ExecRequest{Kernel: kernel, Command: command})
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	code, err := terminal.RunExec(ctx, terminal.NewConn(stream), terminal.ExecIO{Stdout: &out, Stderr: &out})
	if err == nil && code != 0 {
		err = fmt.Errorf("it ends with %d", code)
	}
	return strings.TrimSpace(out.String()), err
}

// pair launches a session with a kernel on each node.
func (m *manager) pair(name string) session.Session {
	m.Helper()
	id := m.launch(name, "", func(s *session.Spec) { s.Cluster = 2 })
	s := m.becomes(id, "RUNNING", running)
	if len(s.Kernels) != 2 || s.Kernels[0].Node != "n1" || s.Kernels[1].Node != "n2" {
		m.Fatalf("it runs as %+v", s.Kernels)
	}
	return s
}

func (l login) pairs(t *testing.T) {
	m := l.manage(t)
	s := m.pair("pair")
	for _, c := range []struct{ kernel, command, want string }{
		{"main1", "echo $MASTER_ADDR $NNODES $NODE_RANK $WORLD_SIZE $RANK $PET_NODE_RANK", "main1 2 0 2 0 0"},
		{"sub1", "echo $MASTER_ADDR $NNODES $NODE_RANK $WORLD_SIZE $RANK $PET_NODE_RANK", "main1 2 1 2 1 1"},
		{"main1", "ssh sub1 hostname", "sub1"},
		{"main1", "ssh sub1 ssh main1 hostname", "main1"},
		{"sub1", "ssh main1 hostname", "main1"},
	} {
		if said, err := m.in(s.ID, c.kernel, "sh", "-c", c.command); said != c.want || err != nil {
			t.Errorf("%s: %s says %q, %v", c.kernel, c.command, said, err)
		}
	}
	var both sync.WaitGroup
	for _, k := range s.Kernels {
		both.Go(func() {
			said, err := m.in(s.ID, k.Name, "python3", "-c", ring)
			if err != nil || k.Name == session.MainKernel && !strings.Contains(said, " us a round, ") {
				t.Errorf("the ring in %s says %q, %v", k.Name, said, err)
			} else if said != "" {
				t.Logf("ring over both nodes: %s", said)
			}
		})
	}
	both.Wait()
	l.servesNobodyElse(m, s.ID)
	// One kernel is killed, and ends the other.
	meeting, err := node.ReadMeeting(filepath.Join(l.dir, "runs", string(s.ID)+"-1"), "sub1")
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	kill := exec.Command("srun", "-Q", "--overlap", "--mem=0", "--jobid="+meeting.Job, "-N1", "-n1", "-w", "n2",
		"kill", "-KILL", fmt.Sprint(meeting.PID))
	if out, err := kill.CombinedOutput(); err != nil {
		t.Fatalf("the runner is not killed: %v: %s", err, out)
	}
	end := m.becomes(s.ID, "its end", over)
	t.Logf("%s after sub1 was killed: %s, %+v", time.Since(began).Round(time.Second/10), end.Reason, end.Error)
	if end.Reason != session.ReasonLost || end.Error == nil ||
		end.Error.Message != "The container sub1 on node n2 was killed, and the session ended with it." {
		t.Errorf("it ended as %s, %+v", end.Reason, end.Error)
	}
	// What the one that was killed left on its node goes with the next.
	job := m.launch("batch-pair", "ssh sub1 hostname; exit 3", func(s *session.Spec) { s.Cluster = 2 })
	if end := m.becomes(job, "its end", over); end.ExitCode == nil || *end.ExitCode != 3 {
		t.Errorf("the job ended as %s, %+v, %+v", end.Reason, end.ExitCode, end.Error)
	}
	l.nothingLeft(t)
}

// editor and board are programs in place of two apps: one that can listen on a socket, and one that cannot.
const (
	editor = `#!/usr/bin/env python3
import http.server, socketserver, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"private")
    def log_message(self, *args):
        pass
path = [a for a in sys.argv if a.startswith("--socket=")][0].split("=", 1)[1]
socketserver.UnixStreamServer(path, Handler).serve_forever()
`
	board = "#!/bin/sh\nexec sleep 60\n"
)

// burglar tries to reach the editor from the same node, by all of its networks and by its socket in every file system
// that it finds.
const burglar = `
import os, socket
reached, tried = [], 0
for host in ("127.0.0.1", "n1"):
    try:
        socket.create_connection((host, 7432), 2)
        reached.append(host)
    except OSError:
        pass
for line in open("/proc/net/unix"):
    path = line.split()[-1]
    if "slipway-apps" in path:
        for root in [""] + ["/proc/%s/root" % p for p in os.listdir("/proc") if p.isdigit()]:
            tried += 1
            try:
                socket.socket(socket.AF_UNIX).connect(root + path)
                reached.append(root + path)
            except OSError:
                pass
print(reached, "tried" if tried else "found no socket")
`

// servesNobodyElse starts apps in a session that shares the network of its node, and lets another user try to reach
// them.
func (l login) servesNobodyElse(m *manager, id session.ID) {
	m.Helper()
	for path, program := range map[string]string{"/usr/local/bin/code-server": editor,
		"/usr/local/bin/tensorboard": board} {
		if said, err := m.in(id, "", "sh", "-c", `printf %s "$1" >"$0" && chmod 755 "$0"`, path, program); err != nil {
			m.Fatalf("%s, %v", said, err)
		}
	}
	app, err := m.StartApp(m.Context(), id, session.AppRequest{App: "code-server"})
	if err != nil || app.State != session.AppReady {
		m.Fatalf("the editor is %+v, %v", app, err)
	}
	conn, err := m.DialPort(m.Context(), id, app.Port)
	if err != nil {
		m.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // of a test
	fmt.Fprint(conn, "GET / HTTP/1.0\r\n\r\n")
	if page, err := io.ReadAll(conn); err != nil || !strings.HasSuffix(string(page), "private") {
		m.Errorf("its person gets %q, %v", page, err)
	}
	here := login{m.T, l.dir}
	if said := here.chore(choreRun, "n1", burglar); said != "[] tried" {
		m.Errorf("another user reaches %s", said)
	}
	_, err = m.StartApp(m.Context(), id, session.AppRequest{App: "tensorboard"})
	if session.CodeOf(err) != session.CodeAppUnavailable {
		m.Errorf("an app that only has a port: %v", err)
	}
	if conn, err := m.DialPort(m.Context(), id, 22); err == nil { // where the node's sshd listens
		conn.Close() //nolint:errcheck // of a test
		m.Error("the session leads to a program of another user")
	}
	apps, err := m.ListApps(m.Context(), id)
	for _, app := range apps {
		if app.Found {
			m.Errorf("a port of another user is shown: %+v", app)
		}
	}
	if err != nil {
		m.Error(err)
	}
}

func (l login) fails(t *testing.T) {
	m := l.manage(t)
	s := m.pair("failing")
	began := time.Now()
	login{t, l.dir}.chore(choreDown, "n2")
	end := m.becomes(s.ID, "its end", over)
	t.Logf("%s after n2 lost its power: %s, %+v", time.Since(began).Round(time.Second/10), end.Reason, end.Error)
	if end.Reason != session.ReasonLost || end.Error == nil ||
		end.Error.Message != "Node n2 failed, and the session ended with it." {
		t.Errorf("it ended as %s, %+v", end.Reason, end.Error)
	}
	l.nothingLeft(t)
}

// arrays launches batch sessions together, as the hub does.
func (l login) arrays(t *testing.T) {
	m := l.manage(t)
	var ids []session.ID
	for i := range 5 {
		s, err := m.Launch(t.Context(), session.LaunchRequest{Owner: "ada", Launch: third,
			Spec: session.Spec{Type: session.Batch, Name: fmt.Sprintf("task-%d", i), Image: loginImage,
				Command:   "echo $SLIPWAY_SESSION_NAME on $(nproc) CPU; sleep 8; exit ${SLIPWAY_SESSION_NAME#task-}",
				Resources: session.Resources{CPU: 1, Memory: 3_000_000_000}}})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, s.ID)
	}
	var queue string
	m.becomes(ids[4], "a wait in Slurm", func(s session.Session) bool {
		return s.Wait != nil && len(s.Wait.Said) > 0 && s.Wait.Said[0].Say != "slurmSubmitting"
	})
	out, err := exec.Command("squeue", "-h", "-r", "-o", "%F %K %T %r").CombinedOutput()
	if queue = strings.TrimSpace(string(out)); err != nil {
		t.Fatalf("squeue: %v: %s", err, out)
	}
	t.Logf("squeue shows\n%s", queue)
	arrays := map[string]int{}
	for line := range strings.Lines(queue) {
		arrays[strings.Fields(line)[0]]++
	}
	if len(arrays) != 1 || strings.Count(queue, "\n") != 4 {
		t.Errorf("squeue shows other than one array of five: %v", arrays)
	}
	if _, err := m.SetPriority(t.Context(), ids[3], session.DefaultPriority-2); err != nil {
		t.Fatal(err)
	}
	m.becomes(ids[3], "a lower priority in Slurm", func(session.Session) bool {
		out, err := exec.Command("squeue", "-h", "-r", "-t", "PD", "-o", "%K %y").CombinedOutput()
		if err != nil {
			t.Fatalf("squeue: %v: %s", err, out)
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return slices.Contains(lines, "3 200") && slices.Contains(lines, "4 0")
	})
	if _, err := m.Terminate(t.Context(), ids[4], false); err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		s := m.becomes(id, "its end", over)
		if i == 4 {
			if s.Reason != session.ReasonUser {
				t.Errorf("the one that was cancelled ended as %s, %+v", s.Reason, s.Error)
			}
			continue
		}
		log, err := m.Logs(t.Context(), id, session.LogOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		_, err = text.ReadFrom(log)
		log.Close() //nolint:errcheck // only read
		if s.ExitCode == nil || *s.ExitCode != i || err != nil || s.Attempt != 1 ||
			strings.TrimSpace(text.String()) != fmt.Sprintf("task-%d on 1 CPU", i) {
			t.Errorf("%s ended with %v, %+v, attempt %d, log %q, %v", s.Name, s.ExitCode, s.Error, s.Attempt,
				&text, err)
		}
	}
	l.nothingLeft(t)
}
