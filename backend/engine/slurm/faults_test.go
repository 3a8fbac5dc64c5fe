//go:build linux

package slurm_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/backend/engine/slurm/slurmtest"
	"slipway/backend/session"
	"slipway/backend/terminal"
	"slipway/gpu"
)

// agentVariable is the folder of an agent that serves its standard input and output on the login node. It is set there
// only.
const agentVariable = "SLIPWAY_TEST_AGENT"

// order is what an agent on the login node is asked for, and answer what it says.
type order struct {
	Launch *session.LaunchRequest
	Get    session.ID
	End    session.ID
	Log    session.ID
	Exec   string // in the session of Get
}

type answer struct {
	Session session.Session
	Text    string
	Err     string // empty: none
}

// mark begins a line with an answer, because tests write on standard output, too.
const mark = "answer: "

// TestAnAgentOnTheLoginNode is an agent that [TestFaultsOfACluster] ends as it likes.
func TestAnAgentOnTheLoginNode(t *testing.T) {
	l := login{t, os.Getenv(agentVariable)}
	if l.dir == "" {
		return
	}
	if _, err := os.Stat(filepath.Join(l.dir, "agent.db")); err != nil {
		l.image()
	}
	m := l.manage(t)
	for orders := json.NewDecoder(os.Stdin); ; {
		var o order
		if err := orders.Decode(&o); err != nil {
			return
		}
		said, err := m.obey(o)
		if err != nil {
			said.Err = err.Error()
		}
		data, err := json.Marshal(said)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println(mark + string(data))
	}
}

func (m *manager) obey(o order) (said answer, err error) {
	switch {
	case o.Launch != nil:
		said.Session, err = m.Launch(m.Context(), *o.Launch)
	case o.End != "":
		said.Session, err = m.Terminate(m.Context(), o.End, false)
	case o.Log != "":
		log, err := m.Logs(m.Context(), o.Log, session.LogOptions{})
		if err != nil {
			return said, err
		}
		text, err := io.ReadAll(log)
		said.Text = string(text)
		return said, err
	case o.Exec != "":
		stream, err := m.Exec(m.Context(), o.Get, session.ExecRequest{Command: []string{"sh", "-c", o.Exec}})
		if err != nil {
			return said, err
		}
		var out bytes.Buffer
		_, err = terminal.RunExec(m.Context(), terminal.NewConn(stream), terminal.ExecIO{Stdout: &out, Stderr: &out})
		said.Text = strings.TrimSpace(out.String())
		return said, err
	default:
		said.Session, err = m.Get(m.Context(), o.Get)
	}
	return said, err
}

// siege is a cluster with an agent on its login node, as seen from outside of both.
type siege struct {
	*testing.T
	cluster  *slurmtest.Cluster
	dir      string // on the login node
	program  *exec.Cmd
	orders   io.WriteCloser
	answers  *bufio.Scanner
	launched []session.ID
}

// start starts the agent, which goes on with what is stored.
func (s *siege) start() {
	s.Helper()
	s.program = s.cluster.Command(context.Background(), slurmtest.User, slurmtest.Login, "env", agentVariable+"="+s.dir,
		"PATH="+s.dir+"/bin:/usr/bin:/bin", "TMPDIR="+s.dir+"/tmp", s.dir+"/engine.test",
		"-test.run=^TestAnAgentOnTheLoginNode$", "-test.timeout=20m")
	s.program.Stderr = os.Stderr
	s.program.WaitDelay = time.Second
	var err error
	if s.orders, err = s.program.StdinPipe(); err != nil {
		s.Fatal(err)
	}
	out, err := s.program.StdoutPipe()
	if err == nil {
		err = s.program.Start()
	}
	if err != nil {
		s.Fatal(err)
	}
	s.answers = bufio.NewScanner(out)
	s.answers.Buffer(nil, 1<<20)
}

// ended waits for the agent after something has killed it.
func (s *siege) ended() {
	s.orders.Close() //nolint:errcheck // its reader was killed
	s.program.Wait() //nolint:errcheck // it was killed
	s.program = nil
}

// kill kills all processes of the user on the login node, the agent and what it has started among them.
func (s *siege) kill() {
	s.Helper()
	s.cluster.Root(slurmtest.Login, "pkill", "-KILL", "-u", slurmtest.User)
	s.ended()
}

func (s *siege) ask(o order) (said answer, err error) {
	s.Helper()
	if err := json.NewEncoder(s.orders).Encode(o); err != nil {
		s.Fatal(err)
	}
	for s.answers.Scan() {
		text, ok := strings.CutPrefix(s.answers.Text(), mark)
		if !ok {
			s.Log(s.answers.Text())
			continue
		}
		if err := json.Unmarshal([]byte(text), &said); err != nil {
			s.Fatal(err)
		}
		if said.Err != "" {
			err = fmt.Errorf("%+v: %s", o, said.Err)
		}
		return said, err
	}
	s.Fatalf("the agent ended: %v", s.answers.Err())
	return said, err
}

func (s *siege) must(o order) answer {
	s.Helper()
	said, err := s.ask(o)
	if err != nil {
		s.Fatal(err)
	}
	return said
}

// launch launches a session, of batch type if it has a command.
func (s *siege) launch(name, command string, change ...func(*session.Spec)) session.ID {
	s.Helper()
	spec := specOf(name, command, 128*gpu.MiB, change)
	id := s.must(order{Launch: &session.LaunchRequest{Owner: "ada", Spec: spec}}).Session.ID
	s.launched = append(s.launched, id)
	return id
}

// becomes waits until a session is as wanted.
func (s *siege) becomes(id session.ID, what string, is func(session.Session) bool) (now session.Session) {
	s.Helper()
	for deadline := time.Now().Add(150 * time.Second); !is(now); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.Fatalf("waited in vain for %s: %s is %s, reason %s, wait %+v, error %+v", what, now.Name, now.Status,
				now.Reason, now.Wait, now.Error)
		}
		now = s.must(order{Get: id}).Session
	}
	return now
}

// shell runs a command in a session, which may be found again at that moment.
func (s *siege) shell(id session.ID, command string) (out string) {
	s.Helper()
	s.cluster.Await("an answer of "+command, func() bool {
		said, err := s.ask(order{Get: id, Exec: command})
		out = said.Text
		return err == nil
	})
	return out
}

// once fails unless a batch command began once, by its log; or, where it may have been ended before, never.
func (s *siege) once(id session.ID, orNever bool) {
	s.Helper()
	log := s.must(order{Log: id}).Text
	if n := strings.Count(log, "begins"); n > 1 || n == 0 && !orNever {
		s.Errorf("the command of %s began %d times: %q", id, n, log)
	}
}

// jobs are the states of the jobs of a session.
func (s *siege) jobs(id session.ID) (list []string) {
	out, _ := s.cluster.Try(slurmtest.User, slurmtest.Login, "squeue", "-h", "-t", "all", "-u", slurmtest.User, "-o",
		"%j %T")
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "slipway-"+string(id)+"-") {
			list = append(list, strings.TrimSpace(line))
		}
	}
	return list
}

// nothing waits until no trace of any session is left, for at most 30 s: no job, no folder of a run, no process.
func (s *siege) nothing() {
	s.Helper()
	var left []string
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		left = nil
		look := func(node string, command ...string) {
			out, _ := s.cluster.Try(slurmtest.User, node, "sh", "-c", strings.Join(command, " "))
			for line := range strings.Lines(out) {
				left = append(left, node+": "+strings.TrimSpace(line))
			}
		}
		look(slurmtest.Login, "squeue -h -u ada -t PD,R,CF,CG,S -o '%j %T'; ls "+s.dir+"/runs")
		for _, node := range []string{slurmtest.Node1, slurmtest.Node2} {
			look(node, "ls /tmp/slipway-*/runs 2>/dev/null | grep -v lock$; pgrep -l slipway-guest")
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			s.Fatalf("after 30 s there are %s", strings.Join(left, "; "))
		}
	}
}

// TestFaultsOfACluster breaks what there is while an agent has sessions on it.
func TestFaultsOfACluster(t *testing.T) {
	c := slurmtest.RequireSlurm(t)
	s := &siege{T: t, cluster: c, dir: onLogin(t, c)}
	s.start()
	t.Cleanup(func() {
		if s.program != nil {
			s.ended()
		}
	})
	for _, part := range []struct {
		name string
		run  func(*siege)
	}{
		{"the controller dies when jobs have just begun", (*siege).crash},
		{"a queued job is not a lost one", (*siege).requeue},
		{"another job takes the resources", (*siege).preempt},
		{"slurmd and the agent die", (*siege).reboot},
		{"the answer to a submission comes too late", (*siege).late},
		{"a node dies", (*siege).nodeDies},
	} {
		ok := t.Run(part.name, func(t *testing.T) {
			began := time.Now()
			whole := s.T
			s.T = t
			defer func() { s.T = whole }()
			part.run(s)
			s.cluster.Mend()
			s.nothing()
			t.Logf("took %s", time.Since(began).Round(time.Second))
		})
		if !ok {
			return
		}
	}
	for _, id := range s.launched {
		if now := s.must(order{Get: id}).Session; !now.Status.Terminal() || now.Reason == "" {
			t.Errorf("%s is %s, reason %s", now.Name, now.Status, now.Reason)
		}
	}
}

// crash kills the controller when two jobs began some seconds ago, and two others just now. It may have forgotten them,
// or start them again.
func (s *siege) crash() {
	var all []session.ID
	for _, pair := range [][]string{{"window-0", "window-1"}, {"window-2", "window-3"}} {
		for _, name := range pair {
			all = append(all, s.launch(name, "echo begins; sleep 15; exit 5"))
		}
		for _, id := range all {
			s.cluster.Await("the start of "+string(id), func() bool {
				_, err := s.cluster.Try(slurmtest.User, slurmtest.Login, "test", "-e",
					fmt.Sprintf("%s/runs/%s-1/main1.begun", s.dir, id))
				return err == nil
			})
		}
	}
	s.cluster.Kill(slurmtest.Login, "slurmctld")
	s.cluster.Start(slurmtest.Login, "slurmctld")
	for _, id := range all {
		now := s.becomes(id, "its end", over)
		s.Logf("%s ended as %s, %+v", now.Name, now.Reason, now.Error)
		if now.Reason == session.ReasonFinished || now.Attempt != 1 {
			s.Errorf("%s ended as %s, attempt %d", now.Name, now.Reason, now.Attempt)
		}
		s.once(id, now.Reason != session.ReasonTaskFailed) // a job that is forgotten ends as soon as its guest is there
	}
	// A run that Slurm killed at once has left its folder to the next one there.
	s.cluster.Mend()
	for _, node := range []string{slurmtest.Node1, slurmtest.Node2} {
		broom := s.launch("broom-"+node, "true", func(spec *session.Spec) {
			spec.Slurm = &session.Slurm{Options: []string{"--nodelist=" + node}}
		})
		if now := s.becomes(broom, "its end", over); now.Reason != session.ReasonFinished {
			s.Errorf("%s ended as %s, %+v", now.Name, now.Reason, now.Error)
		}
	}
}

// requeue puts jobs back in the queue, as an admin of the site may after this was allowed again.
func (s *siege) requeue() {
	lasting, command := s.launch("lasting", ""), s.launch("command", "echo begins; sleep 300")
	s.becomes(lasting, "RUNNING", running)
	s.becomes(command, "RUNNING", running)
	for _, id := range []session.ID{lasting, command} {
		job := s.cluster.Exec(slurmtest.Login, "squeue", "-h", "-n", "slipway-"+string(id)+"-1", "-o", "%A")
		if out, err := s.cluster.Try("root", slurmtest.Login, "scontrol", "requeue", job); err == nil {
			s.Errorf("a job is queued again though that was forbidden: %s", out)
		}
		s.cluster.Root(slurmtest.Login, "scontrol", "update", "jobid="+job, "requeue=1")
		s.cluster.Root(slurmtest.Login, "scontrol", "requeue", job)
	}
	now := s.becomes(lasting, "another attempt", func(now session.Session) bool {
		return now.Attempt == 2 && running(now)
	})
	if jobs := s.jobs(lasting); len(jobs) != 2 {
		s.Errorf("the jobs of %s are %q", now.Name, jobs)
	}
	if out := s.shell(lasting, "echo here"); out != "here" {
		s.Errorf("in the second attempt: %q", out)
	}
	now = s.becomes(command, "its end", over)
	if now.Reason != session.ReasonLost || now.Error == nil || !strings.Contains(now.Error.Hint, "not run twice") {
		s.Errorf("%s ended as %s, %+v", now.Name, now.Reason, now.Error)
	}
	s.once(command, false)
	s.must(order{End: lasting})
	s.becomes(lasting, "its end", over)
}

func (s *siege) preempt() {
	id := s.launch("scavenger", "", func(spec *session.Spec) { spec.Slurm = &session.Slurm{Partition: "scavenge"} })
	s.becomes(id, "RUNNING", running)
	job := s.cluster.Submit("sleep 300", "--nodes=2", "--ntasks-per-node=2")
	now := s.becomes(id, "its end", over)
	if now.Reason != session.ReasonPreempted || now.Status != session.Failed || now.Error == nil ||
		now.Error.Code != session.CodePreempted {
		s.Errorf("it ended as %s, %+v", now.Reason, now.Error)
	}
	s.cluster.Cancel(job)
}

// reboot kills slurmd on all nodes, and then ends the login node with all that runs there.
func (s *siege) reboot() {
	lasting := s.launch("patient", "")
	command := s.launch("worker", "echo begins; until [ -e end ]; do sleep 1; done; exit 6")
	for _, id := range []session.ID{lasting, command} {
		s.becomes(id, "RUNNING", running)
		job := s.cluster.Exec(slurmtest.Login, "squeue", "-h", "-n", "slipway-"+string(id)+"-1", "-o", "%A")
		s.cluster.AwaitSaved(job)
	}
	nodes := []string{slurmtest.Node1, slurmtest.Node2}
	for _, node := range nodes {
		s.cluster.Kill(node, "slurmd")
	}
	if out := s.shell(lasting, "touch mine; echo here"); out != "here" {
		s.Errorf("without slurmd: %q", out)
	}
	for _, node := range nodes {
		s.cluster.Start(node, "slurmd")
	}
	s.cluster.Reboot(slurmtest.Login)
	s.ended()
	s.start()
	for _, id := range []session.ID{lasting, command} {
		if now := s.becomes(id, "RUNNING", running); now.Attempt != 1 {
			s.Errorf("%s is attempt %d", now.Name, now.Attempt)
		}
		if jobs := s.jobs(id); len(jobs) != 1 {
			s.Errorf("it has the jobs %q", jobs)
		}
	}
	if out := s.shell(lasting, "ls mine"); out != "mine" {
		s.Errorf("after the reboot: %q", out)
	}
	s.shell(command, "touch end")
	if now := s.becomes(command, "its end", over); now.ExitCode == nil || *now.ExitCode != 6 {
		s.Errorf("it ended as %s, %+v", now.Reason, now.ExitCode)
	}
	s.once(command, false)
	s.must(order{End: lasting})
	s.becomes(lasting, "its end", over)
}

// late has the controller answer a submission only after the agent that sent it has died.
func (s *siege) late() {
	// The agent looks for the job first, and that must be answered.
	s.cluster.Exec(slurmtest.Login, "sh", "-c", `mkdir "$0/bin" && cat >"$0/bin/sbatch" <<END
#!/bin/sh
touch '$0/called'
until [ -e '$0/go' ]; do sleep 0.05; done
exec /usr/bin/sbatch "\$@"
END
chmod 700 "$0/bin/sbatch"`, s.dir)
	id := s.launch("late", "echo begins; exit 7")
	s.cluster.Await("the submission", func() bool {
		_, err := s.cluster.Try(slurmtest.User, slurmtest.Login, "test", "-e", s.dir+"/called")
		return err == nil
	})
	s.cluster.Signal(slurmtest.Login, "slurmctld", "STOP")
	s.cluster.Exec(slurmtest.Login, "touch", s.dir+"/go")
	s.cluster.Await("the request to be where the controller reads it", func() bool {
		sockets := s.cluster.Root(slurmtest.Login, "ss", "-Htn", "state", "established",
			"sport = :6817 and dst 10.214.0.1")
		return slices.ContainsFunc(strings.Split(sockets, "\n"), func(line string) bool {
			return line != "" && !strings.HasPrefix(line, "0 ")
		})
	})
	s.kill()
	s.cluster.Exec(slurmtest.Login, "rm", s.dir+"/bin/sbatch")
	s.cluster.Signal(slurmtest.Login, "slurmctld", "CONT")
	s.start()
	now := s.becomes(id, "its end", over)
	if now.ExitCode == nil || *now.ExitCode != 7 {
		s.Errorf("it ended as %s, %+v", now.Reason, now.Error)
	}
	if jobs := s.jobs(id); len(jobs) != 1 {
		s.Errorf("it has the jobs %q", jobs)
	}
	s.once(id, false)
}

// nodeDies ends a node, which an admin notices before the controller does. Slurm is asked more often while a job waits.
func (s *siege) nodeDies() {
	id := s.launch("unlucky", "")
	node := s.becomes(id, "RUNNING", running).Kernels[0].Node
	next := s.launch("next", "", func(spec *session.Spec) {
		spec.Resources.CPU, spec.Slurm = 2, &session.Slurm{Options: []string{"--nodelist=" + node}}
	})
	s.becomes(next, "waiting for its node", func(now session.Session) bool {
		return now.Wait != nil && now.Wait.Code == session.CodeWaitResources
	})
	s.cluster.Down(node)
	s.cluster.Root(slurmtest.Login, "scontrol", "update", "nodename="+node, "state=down", "reason=test")
	now := s.becomes(id, "its end", over)
	if now.Reason != session.ReasonLost || now.Error == nil || !strings.Contains(now.Error.Message, node) {
		s.Errorf("on %s it ended as %s, %+v", node, now.Reason, now.Error)
	}
	s.must(order{End: next})
	s.becomes(next, "its end", over)
}
