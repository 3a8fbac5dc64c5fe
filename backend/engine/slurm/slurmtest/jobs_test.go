package slurmtest

import (
	"strings"
	"testing"
)

// opens says of each GPU of a node, and of a device that all may use, whether it can be opened. What a control group
// forbids is "Operation not permitted".
const opens = `python3 -c '
import errno, os
for device in "fakegpu0", "fakegpu1", "null":
    try:
        os.close(os.open("/dev/" + device, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK))
    except OSError as e:
        if e.errno == errno.EPERM: continue
    print(device, end=" ")
'`

func TestJobOnEachNode(t *testing.T) {
	c := RequireSlurm(t)
	dir := c.Folder()
	for _, node := range []string{Node1, Node2} {
		job := c.Submit("hostname; id -un; pwd", "--nodelist="+node, "--output="+dir+"/"+node, "--chdir="+dir)
		c.AwaitState(job, "COMPLETED")
		if got := c.Exec(Login, "cat", dir+"/"+node); got != node+"\nada\n"+dir {
			t.Errorf("the job of %s wrote %q", node, got)
		}
	}
}

func TestJobSeesOnlyItsGPU(t *testing.T) {
	c := RequireSlurm(t)
	for gpus, want := range map[string]int{"--gres=none": 1, "--gres=gpu:1": 2, "--gres=gpu:h200:2": 3} {
		out := c.Exec(Login, "srun", "--nodelist=n1", gpus, "--mem=50", "sh", "-c", opens)
		if got := strings.Fields(out); len(got) != want || got[len(got)-1] != "null" {
			t.Errorf("a job with %s opens %s", gpus, got)
		}
	}
}

func TestShardsGoToDifferentGPUs(t *testing.T) {
	c := RequireSlurm(t)
	dir := c.Folder()
	var got []string
	for _, shards := range []string{"3", "2"} {
		out := dir + "/" + shards
		job := c.Submit(opens+"; sleep 300", "--nodelist=n2", "--gres=shard:"+shards, "--output="+out)
		c.AwaitState(job, "RUNNING")
		var opened string
		c.Await("what the job opens", func() bool {
			opened, _ = c.Try(User, Login, "cat", out)
			return strings.HasSuffix(opened, "null")
		})
		got = append(got, opened)
		details := c.Exec(Login, "scontrol", "show", "job", "--details", job)
		if !strings.Contains(details, "GRES=shard:"+shards+"(IDX:") {
			t.Errorf("the controller says %s", details)
		}
	}
	if got[0] == got[1] || !strings.HasPrefix(got[0], "fakegpu") || !strings.HasPrefix(got[1], "fakegpu") {
		t.Errorf("the jobs open %q", got)
	}
}

func TestWaitingJobSaysWhyAndStarts(t *testing.T) {
	c := RequireSlurm(t)
	options := []string{"--nodelist=n1", "--gres=gpu:1", "--time=5"}
	first, second := c.Submit("sleep 300", options...), c.Submit("sleep 300", options...)
	c.AwaitState(first, "RUNNING")
	c.AwaitState(second, "RUNNING")
	third := c.Submit("sleep 300", options...)
	c.Await("the third job to say why it waits", func() bool {
		state, reason := c.State(third)
		return state == "PENDING" && reason == "Resources"
	})
	c.Cancel(first)
	c.AwaitState(third, "RUNNING")
}

func TestReasonsOfJobsThatNeverStart(t *testing.T) {
	c := RequireSlurm(t)
	for want, option := range map[string]string{
		"PartitionConfig": "--cpus-per-task=20", "JobHeldUser": "--hold", "BeginTime": "--begin=now+1hour",
		"PartitionTimeLimit": "--time=3-00:00:00",
	} {
		job := c.Submit("true", option)
		c.Await("job with "+option+" to wait for "+want, func() bool {
			state, reason := c.State(job)
			return state == "PENDING" && reason == want
		})
	}
}

func TestCancelledJobLeavesNothing(t *testing.T) {
	c := RequireSlurm(t)
	job := c.Submit("setsid sh -c 'trap : TERM; while :; do sleep 300; done' & sleep 300", "--nodelist=n1")
	c.Await("the processes of the job", func() bool {
		out, _ := c.Try(root, Node1, "pgrep", "-u", User, "-x", "sleep")
		return len(strings.Fields(out)) == 2
	})
	c.Cancel(job)
	c.Await("the end of the processes", func() bool {
		_, err := c.Try(root, Node1, "pgrep", "-u", User)
		return err != nil
	})
}

func TestMemoryOfJobIsLimited(t *testing.T) {
	c := RequireSlurm(t)
	c.AwaitState(c.Submit(`python3 -c "x = bytearray(300 << 20)"`), "OUT_OF_MEMORY")
}

func TestJobOnTwoNodes(t *testing.T) {
	c := RequireSlurm(t)
	dir := c.Folder()
	// The first task answers the second over the network of the nodes.
	task := `case $SLURM_PROCID in
0) socat -u TCP-LISTEN:24680,reuseaddr CREATE:` + dir + `/$SLURM_JOB_ID ;;
1) hostname | socat -u - TCP:$(scontrol show hostnames | head -n 1):24680,retry=100,interval=0.1 ;;
esac`
	job := c.Submit("srun --kill-on-bad-exit=1 sh -c '"+task+"'", "--nodes=2", "--ntasks-per-node=1")
	c.AwaitState(job, "COMPLETED")
	if got := c.Exec(Login, "cat", dir+"/"+job); got != Node2 {
		t.Errorf("the first task heard from %q", got)
	}
}

func TestPreemptedJobEnds(t *testing.T) {
	c := RequireSlurm(t)
	job := c.Submit("sleep 300", "--partition=scavenge", "--nodelist=n1", "--cpus-per-task=2", "--no-requeue")
	c.AwaitState(job, "RUNNING")
	better := c.Submit("sleep 300", "--partition=gpu", "--nodelist=n1", "--cpus-per-task=2", "--time=5")
	c.AwaitState(job, "PREEMPTED")
	c.AwaitState(better, "RUNNING")
}

// contained makes what a container without root is made of: namespaces in which the user has the same number, a file
// system above another one, and a network with a way out. It prints the number, how many files are left after one was
// removed, and the device of the network.
const contained = `set -e
work=$(mktemp -d)
mkdir $work/lower $work/upper $work/scratch $work/root
touch $work/lower/file
unshare --user --map-current-user --mount --keep-caps sh -ec "
    mount -t overlay -o userxattr,lowerdir=$work/lower,upperdir=$work/upper,workdir=$work/scratch overlay $work/root
    rm $work/root/file
    id -u
    ls $work/root | wc -l"
unshare --user --map-current-user --net sleep 300 &
network=$!
until [ "$(readlink /proc/$network/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done
mkfifo $work/ready
slirp4netns --configure --disable-host-loopback --userns-path=/proc/$network/ns/user --ready-fd=3 $network tap0 \
    3>$work/ready >/dev/null 2>&1 &
head -c 1 $work/ready >/dev/null
nsenter --preserve-credentials --user --net --target $network grep -o tap0 /proc/net/dev
kill $network
chmod -R u+rwx $work
rm -rf $work`

func TestJobCanMakeContainers(t *testing.T) {
	c := RequireSlurm(t)
	got := c.Exec(Login, "srun", "--nodelist=n1", "--mem=200", "--kill-on-bad-exit=1", "bash", "-c", contained)
	if got != "1500\n0\ntap0" {
		t.Errorf("got %q", got)
	}
}
