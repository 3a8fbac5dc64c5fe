package agent

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"slipway/backend/engine"
	"slipway/backend/engine/sim/simtest"
	"slipway/backend/session"
	"slipway/gpu"
)

// containersOf returns a session's containers as they were asked for, by kernel.
func (w *world) containersOf(s session.Session) map[string]engine.Container {
	w.t.Helper()
	all := map[string]engine.Container{}
	for _, k := range s.Kernels {
		c, ok := w.fake.Container(k.Container)
		if !ok {
			w.t.Errorf("the kernel %s has no container", k.Name)
		}
		all[k.Name] = c
	}
	return all
}

func valueOf(env []session.EnvVar, name string) string {
	for _, v := range env {
		if v.Name == name {
			return v.Value
		}
	}
	return ""
}

func TestClusterRunsAsKernelsOnOneNetwork(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{}), nil)
		s := w.launch(session.Spec{Name: "trio", Cluster: 3, Resources: session.Resources{CPU: 2, Memory: gpu.GiB}})
		s = w.awaitStatus(s.ID, session.Running)
		if len(s.Kernels) != 3 || len(s.Grants.CPUs) != 6 || s.Grants.Memory != 3*gpu.GiB {
			t.Fatalf("it runs as %+v", s)
		}
		network := "slipway-" + string(s.ID)
		if got := w.fake.Networks(); !slices.Equal(got, []string{network}) {
			t.Errorf("networks %v", got)
		}
		containers := w.containersOf(s)
		cpus := map[int]bool{}
		main := containers["main1"].Guest.Cluster
		for number, k := range s.Kernels {
			c := containers[k.Name]
			if k.Name != session.KernelName(number) || c.Hostname != k.Name || c.Network != network ||
				c.Memory != gpu.GiB || len(c.CPUs) != 2 || k.Status != session.Running {
				t.Errorf("%s: %+v as %+v", k.Name, k, c)
			}
			for _, cpu := range c.CPUs {
				if cpus[cpu] {
					t.Errorf("CPU %d belongs to two kernels", cpu)
				}
				cpus[cpu] = true
			}
			env := c.Guest.Env
			if valueOf(env, "SLIPWAY_CLUSTER_SIZE") != "3" ||
				valueOf(env, "SLIPWAY_CLUSTER_HOSTS") != "main1,sub1,sub2" ||
				valueOf(env, "SLIPWAY_CLUSTER_HOST") != k.Name ||
				valueOf(env, "SLIPWAY_KERNEL") != k.Name || valueOf(env, "OMP_NUM_THREADS") != "2" {
				t.Errorf("%s is told %v", k.Name, env)
			}
			cluster := c.Guest.Cluster
			if cluster == nil || cluster.Self != k.Name || !slices.Equal(cluster.Hosts, main.Hosts) ||
				cluster.HostKey != main.HostKey || cluster.UserKey != main.UserKey ||
				cluster.HostKey == cluster.UserKey {
				t.Errorf("%s may reach %+v", k.Name, cluster)
			}
		}
		if _, err := w.agent.Terminate(context.Background(), s.ID, false); err != nil {
			t.Fatal(err)
		}
		s = w.awaitStatus(s.ID, session.Terminated)
		if left, networks := w.fake.States(), w.fake.Networks(); len(left) > 0 || len(networks) > 0 {
			t.Errorf("left are %+v and %v", left, networks)
		}
		for _, k := range s.Kernels {
			if k.ExitCode == nil || k.Status != session.Terminated {
				t.Errorf("kernel %+v", k)
			}
		}
		w.audit()
	})
}

func TestKernelsOfAClusterKnowWhereTheyMeet(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{}), nil)
		s := w.awaitStatus(w.launch(session.Spec{Cluster: 2, Env: []session.EnvVar{{Name: "RANK", Value: "7"}}}).ID,
			session.Running)
		containers := w.containersOf(s)
		port := valueOf(containers["main1"].Guest.Env, "MASTER_PORT")
		for rank, kernel := range []string{"main1", "sub1"} {
			env := containers[kernel].Guest.Env
			for name, want := range map[string]string{
				"MASTER_ADDR": "main1", "MASTER_PORT": port, "PET_MASTER_ADDR": "main1", "PET_MASTER_PORT": port,
				"NNODES": "2", "PET_NNODES": "2", "NODE_RANK": strconv.Itoa(rank), "PET_NODE_RANK": strconv.Itoa(rank),
				"WORLD_SIZE": "2", "RANK": "7", "LOCAL_RANK": "",
			} {
				if got := valueOf(env, name); got != want || name == "MASTER_PORT" && got == "" {
					t.Errorf("%s: %s is %q, not %q", kernel, name, got, want)
				}
			}
		}
		alone := w.awaitStatus(w.launch(session.Spec{}).ID, session.Running)
		if env := w.containersOf(alone)["main1"].Guest.Env; valueOf(env, "MASTER_ADDR") != "" {
			t.Errorf("a single kernel is told %v", env)
		}
	})
}

func TestOneKernelThatEndsEndsTheCluster(t *testing.T) {
	for name, c := range map[string]struct {
		typ    session.Type
		kernel int
		code   int
		reason session.Reason
		result session.Result
		exit   int
		cause  session.Code
	}{
		"the main kernel of a batch, well": {session.Batch, 0, 0, session.ReasonFinished, session.ResultSuccess, 0,
			""},
		"the main kernel of a batch, badly": {session.Batch, 0, 3, session.ReasonTaskFailed, session.ResultFailure,
			3, "session_run_task-failed"},
		"another kernel of a batch": {session.Batch, 1, 4, session.ReasonTaskFailed, session.ResultFailure,
			143, "session_run_kernel-ended"},
		"another kernel of an interactive one": {session.Interactive, 2, 5, session.ReasonSelf,
			session.ResultUndefined, 143, "session_run_kernel-ended"},
		"the main kernel of an interactive one": {session.Interactive, 0, 0, session.ReasonSelf,
			session.ResultUndefined, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, newFake(t, simtest.Config{}), nil)
				spec := session.Spec{Type: c.typ, Cluster: 3}
				if c.typ == session.Batch {
					spec.Command = "mpirun"
				}
				s := w.awaitStatus(w.launch(spec).ID, session.Running)
				for kernel, container := range w.containersOf(s) {
					if (container.Guest.Command != "") != (kernel == session.MainKernel && c.typ == session.Batch) {
						t.Errorf("%s runs %q", kernel, container.Guest.Command)
					}
				}
				w.fake.Exit(s.Kernels[c.kernel].Container, c.code)
				s = w.awaitStatus(s.ID, session.Terminated)
				if s.Reason != c.reason || s.Result != c.result || s.ExitCode == nil || *s.ExitCode != c.exit ||
					*s.Kernels[c.kernel].ExitCode != c.code {
					t.Errorf("it ended as %s, %s, code %v; kernels %+v", s.Reason, s.Result, *s.ExitCode, s.Kernels)
				}
				if (s.Error == nil) != (c.cause == "") || (s.Error != nil && s.Error.Code != c.cause) {
					t.Errorf("because of %+v", s.Error)
				}
				if left, networks := w.fake.States(), w.fake.Networks(); len(left) > 0 || len(networks) > 0 {
					t.Errorf("left are %+v and %v", left, networks)
				}
			})
		})
	}
}

func TestClusterIsUndoneAndTriedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		fake := newFake(t, simtest.Config{})
		broken := &session.Error{Code: "engine_call_broken", Message: "A call broke."}
		fake.Fail(simtest.CallCreateNetwork, broken)
		fake.FailAfter(simtest.CallCreate, broken) // the first was made, and nobody learned its id
		w := newWorld(t, fake, nil)
		s := w.awaitStatus(w.launch(session.Spec{Cluster: 2}).ID, session.Running)
		if p := w.phaseOf(s.ID, session.PhaseStart); p.Attempts != 3 || p.Steps[0].Step != "network" ||
			p.Steps[0].Result != session.OutcomeSuccess {
			t.Errorf("history says %+v", p)
		}
		if states := fake.States(); len(states) != 2 {
			t.Errorf("containers %+v", states)
		}
		w.audit()
	})
}

func TestClusterThatGoesBackIntoTheQueueLeavesNoNetwork(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		fake := newFake(t, simtest.Config{})
		w := newWorld(t, fake, nil)
		gate := fake.Block(simtest.CallStart)
		s := w.launch(session.Spec{Cluster: 2})
		<-gate.Entered()
		fake.SetDown(true)
		gate.Release()
		w.awaitStatus(s.ID, session.Pending)
		if _, err := w.agent.Terminate(context.Background(), s.ID, false); err != nil {
			t.Fatal(err)
		}
		w.awaitStatus(s.ID, session.Cancelled)
		w.halt() // whoever comes next must find it
		w.start()
		fake.SetDown(false)
		time.Sleep(time.Minute)
		if left, networks := fake.States(), fake.Networks(); len(left) > 0 || len(networks) > 0 {
			t.Errorf("left are %+v and %v", left, networks)
		}
	})
}

func TestClusterIsAdoptedFromItsLabels(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		fake := newFake(t, simtest.Config{})
		w := newWorld(t, fake, nil)
		s := w.awaitStatus(w.launch(session.Spec{Cluster: 3, Name: "lost"}).ID, session.Running)
		w.halt()
		if err := os.Remove(filepath.Join(w.dir, "agent.db")); err != nil {
			t.Fatal(err)
		}
		w.start()
		found := w.awaitStatus(s.ID, session.Running)
		if len(found.Kernels) != 3 || len(found.Grants.CPUs) != 3 || found.Spec.Cluster != 3 {
			t.Errorf("adopted as %+v", found)
		}
		for i, k := range found.Kernels {
			if k.Name != session.KernelName(i) || k.Container != s.Kernels[i].Container || len(k.Grants.CPUs) != 1 {
				t.Errorf("kernel %+v", k)
			}
		}
		w.audit()
		if _, err := w.agent.Terminate(context.Background(), s.ID, false); err != nil {
			t.Fatal(err)
		}
		w.awaitStatus(s.ID, session.Terminated)
		if left, networks := fake.States(), fake.Networks(); len(left) > 0 || len(networks) > 0 {
			t.Errorf("left are %+v and %v", left, networks)
		}
	})
}

func TestKernelsAreReachedByName(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{}), nil)
		ctx := context.Background()
		s := w.awaitStatus(w.launch(session.Spec{Cluster: 2}).ID, session.Running)
		first, err := w.agent.OpenTerminal(ctx, s.ID, session.TerminalRequest{})
		if err != nil || strings.Contains(first.ID, ".") || first.Kernel != "" {
			t.Errorf("%+v, %v", first, err)
		}
		second, err := w.agent.OpenTerminal(ctx, s.ID, session.TerminalRequest{Kernel: "sub1"})
		if err != nil || !strings.HasPrefix(second.ID, "sub1.") || second.Kernel != "sub1" {
			t.Errorf("%+v, %v", second, err)
		}
		list, err := w.agent.ListTerminals(ctx, s.ID)
		if err != nil || len(list) != 2 || list[0].ID != first.ID || list[1].ID != second.ID {
			t.Errorf("%+v, %v", list, err)
		}
		stream, err := w.agent.AttachTerminal(ctx, s.ID, session.AttachRequest{Terminal: second.ID, Client: "test"})
		if err != nil {
			t.Error(err)
		} else {
			stream.Close()
		}
		if err := w.agent.CloseTerminal(ctx, s.ID, second.ID); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute) // what it showed is kept for who watches
		if list, err := w.agent.ListTerminals(ctx, s.ID); err != nil || len(list) != 1 || list[0].ID != first.ID {
			t.Errorf("after one was closed: %+v, %v", list, err)
		}
		if _, err := w.agent.OpenTerminal(ctx, s.ID, session.TerminalRequest{Kernel: "sub7"}); session.CodeOf(
			err) != "session_use_not-found" {
			t.Errorf("%v", err)
		}
		if _, err := w.agent.Exec(ctx, s.ID,
			session.ExecRequest{Kernel: "sub7", Command: []string{"ls"}}); session.CodeOf(
			err) != "session_use_not-found" {
			t.Errorf("%v", err)
		}
		w.fake.WriteLog(s.Kernels[1].Container, "from sub1")
		log, err := w.agent.Logs(ctx, s.ID, session.LogOptions{Kernel: "sub1"})
		if err != nil {
			t.Fatal(err)
		}
		text := make([]byte, 100)
		n, _ := log.Read(text)
		log.Close()
		if !strings.Contains(string(text[:n]), "from sub1") {
			t.Errorf("the log of sub1 is %q", text[:n])
		}
		if _, err := w.agent.Logs(ctx, s.ID, session.LogOptions{Kernel: "sub2"}); session.CodeOf(
			err) != "session_use_not-found" {
			t.Errorf("%v", err)
		}
	})
}
