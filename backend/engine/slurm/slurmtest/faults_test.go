package slurmtest

import (
	"context"
	"strings"
	"testing"
)

func TestJobOutlivesDaemons(t *testing.T) {
	c := RequireSlurm(t)
	dir := c.Folder()
	job := c.Submit("touch "+dir+"/began; until [ -e "+dir+"/end ]; do sleep 0.1; done; touch "+dir+"/ended",
		"--nodelist=n1")
	c.AwaitState(job, "RUNNING")
	c.AwaitSaved(job)
	c.Kill(Login, "slurmctld")
	c.Kill(Node1, "slurmd")
	c.Exec(Login, "touch", dir+"/end")
	c.Await("the job to end without the daemons", func() bool {
		_, err := c.Try(User, Login, "test", "-e", dir+"/ended")
		return err == nil
	})
	c.Start(Login, "slurmctld")
	c.Start(Node1, "slurmd")
	c.AwaitState(job, "COMPLETED")
}

func TestLostAnswerLeavesOneJob(t *testing.T) {
	c := RequireSlurm(t)
	c.Signal(Login, "slurmctld", "STOP")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	submitted := make(chan error, 1)
	go func() {
		_, err := c.Run(ctx, "sbatch",
			[]string{"--job-name=lost", "--hold", "--output=/dev/null", "--wrap", "true"}, nil)
		submitted <- err
	}()
	c.Await("the request to be where the controller reads it", func() bool {
		sockets := c.Root(Login, "ss", "-Htn", "state", "established", "sport = :6817 and dst 10.214.0.1")
		return sockets != "" && !strings.HasPrefix(sockets, "0 ")
	})
	cancel()
	if err := <-submitted; err == nil {
		t.Fatal("a controller that is stopped answers")
	}
	c.Signal(Login, "slurmctld", "CONT")
	jobs := func() []string {
		out, _ := c.Try(User, Login, "squeue", "--noheader", "--user="+User, "--name=lost", "--format=%i")
		return strings.Fields(out)
	}
	c.Await("the job of the lost answer", func() bool { return len(jobs()) > 0 })
	if got := jobs(); len(got) != 1 {
		t.Errorf("there are jobs %s", got)
	}
	for _, job := range jobs() {
		c.Cancel(job)
	}
}

func TestNodeForgetsWhatIsTemporaryInReboot(t *testing.T) {
	c := RequireSlurm(t)
	c.Exec(Node2, "touch", "/tmp/file")
	c.Root(Node2, "touch", "/var/tmp/file")
	c.Reboot(Node2)
	if out, err := c.Try(User, Node2, "ls", "/tmp/file"); err == nil {
		t.Errorf("after the reboot there is %s", out)
	}
	c.Root(Node2, "rm", "/var/tmp/file")
	c.Mend()
	c.AwaitState(c.Submit("true", "--nodelist=n2"), "COMPLETED")
}

func TestNodeThatDiesEndsItsJob(t *testing.T) {
	c := RequireSlurm(t)
	job := c.Submit("sleep 300", "--nodelist=n2", "--no-requeue")
	c.AwaitState(job, "RUNNING")
	c.Down(Node2)
	c.AwaitState(job, "NODE_FAIL")
	c.Mend()
	c.AwaitState(c.Submit("true", "--nodelist=n2"), "COMPLETED")
}

func TestJobOutlivesRebootOfLogin(t *testing.T) {
	c := RequireSlurm(t)
	job := c.Submit("sleep 300", "--nodelist=n1")
	c.AwaitState(job, "RUNNING")
	c.AwaitSaved(job)
	c.Reboot(Login)
	c.AwaitState(job, "RUNNING")
}

func TestAccountingKnowsEndedJob(t *testing.T) {
	c := RequireSlurm(t)
	c.Accounting(true)
	job := c.Submit("exit 3", "--account=bio", "--gres=gpu:1")
	c.AwaitState(job, "FAILED")
	var got string
	c.Await("the account of the job", func() bool {
		got = c.Exec(Login, "sacct", "-nXP", "--jobs="+job, "--format=state,exitcode,account,end,alloctres")
		return strings.HasPrefix(got, "FAILED")
	})
	if !strings.HasPrefix(got, "FAILED|3:0|bio|") || !strings.Contains(got, "gres/gpu=1") {
		t.Errorf("the account is %q", got)
	}
	second := c.Submit("sleep 300", "--qos=high", "--gres=gpu:1")
	c.AwaitState(second, "RUNNING")
	third := c.Submit("sleep 300", "--qos=high", "--gres=gpu:1")
	c.Await("the limit of the quality of service", func() bool {
		_, reason := c.State(third)
		return reason == "QOSMaxGRESPerUser"
	})
	if out, err := c.Try(User, Login, "sbatch", "--account=none", "--wrap", "true"); err == nil {
		t.Errorf("an account that does not exist is answered with %q", out)
	}
}

func TestWithoutAccountingNothingIsKnown(t *testing.T) {
	c := RequireSlurm(t)
	c.Accounting(false)
	if out, err := c.Try(User, Login, "sacct", "-nXP"); err == nil || !strings.Contains(err.Error(), "disabled") {
		t.Errorf("got %q, %v", out, err)
	}
}
