package slurm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/moby/sys/atomicwriter"

	"slipway/backend/engine"
	"slipway/backend/guest/node"
	"slipway/backend/session"
	"slipway/backend/slurm"
	"slipway/gpu"
)

// The job that finds out what works on a node of the default partition, and its folder. What it found counts for
// the whole site.
const (
	probeID     session.ID = "probe"
	probeFolder            = "probe"
	foundFile              = "found.json" // what the job writes
	probeFile              = "nodes.json" // what is remembered
	probeTime              = time.Minute  // of the job
	probeMemory            = 256 * gpu.MiB
	probeAgain             = 10 * time.Minute    // after a failure
	probeAge               = 30 * 24 * time.Hour // after which nodes are tried again when the agent starts
)

// nodes is what is known of the compute nodes.
type nodes struct {
	engine *Engine

	mu    sync.Mutex // guards everything below
	found *tried     // nil: nothing yet
	err   error      // why the last attempt failed
}

// tried is what a job has found out.
type tried struct {
	At     time.Time   `json:"at"`
	Job    slurm.JobID `json:"job"`
	Probe  node.Probe  `json:"probe"`
	Direct bool        `json:"direct"` // the login node connects to it
}

func (n *nodes) get() (*tried, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.found, n.err
}

func (n *nodes) set(found *tried, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.err = err; err == nil {
		n.found = found
	}
}

// explore has the nodes tried, unless it is known what works there. What did not work may work since the last start.
func (n *nodes) explore() {
	e := n.engine
	if data, err := os.ReadFile(n.path(probeFile)); err == nil {
		var known tried
		if json.Unmarshal(data, &known) == nil {
			n.set(&known, nil)
			if _, ok := known.Probe.Runner(); ok && e.config.Clock.Since(known.At) < probeAge {
				return
			}
		}
	}
	for e.ctx.Err() == nil {
		found, err := n.try(e.ctx)
		if n.set(found, err); err == nil {
			return
		}
		e.config.Log.Warn("the nodes are not tried", "err", err)
		_ = e.config.Clock.Pause(e.ctx, probeAgain) // fails only with the engine's end
	}
}

func (n *nodes) path(name string) string {
	return filepath.Join(n.engine.config.Dir, probeFolder, name)
}

// try runs the job and returns what it has found. One that an earlier engine has submitted is used, unless it is the
// one of the last result, which may take a while to end.
func (n *nodes) try(ctx context.Context) (*tried, error) {
	e := n.engine
	said, err := e.jobs.poller.Fresh(ctx)
	if err != nil {
		return nil, failure(ctx, err)
	}
	comment, job, last := "slipway-probe:"+e.config.Instance, slurm.JobID(0), slurm.JobID(0)
	if known, _ := n.get(); known != nil {
		last = known.Job
	}
	for _, other := range said.Jobs {
		if other.Comment == comment && !other.State.Ended() && other.ID != last {
			job = other.ID
		}
	}
	if job == 0 {
		if job, err = n.submit(ctx, comment); err != nil {
			return nil, err
		}
	}
	submitted := e.config.Clock.Now()
	wait := e.patience()
	for {
		probe, err := node.ReadProbe(n.path(foundFile))
		if err == nil {
			found := &tried{At: e.config.Clock.Now().UTC(), Job: job, Probe: probe, Direct: reachable(ctx, probe)}
			if err := e.config.Commands.Cancel(ctx, job); err != nil {
				return nil, failure(ctx, err)
			}
			return found, n.remember(found)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, fileFailure("what was found on the nodes", err)
		}
		if said := e.jobs.poller.Snapshot(); said.At.Sub(submitted) > settle && !lives(said.Jobs, job) {
			return nil, session.NewError(session.CodeStartFailed, "The job that tries a node failed: "+
				cmp.Or(lastText(n.path(jobLog)), "it says nothing")+".", "")
		}
		if err := wait(ctx); err != nil {
			return nil, err
		}
	}
}

func lives(jobs []slurm.Job, id slurm.JobID) bool {
	for _, job := range jobs {
		if job.ID == id {
			return !job.State.Ended()
		}
	}
	return false
}

func (n *nodes) submit(ctx context.Context, comment string) (slurm.JobID, error) {
	e := n.engine
	program, err := e.runs.program()
	if err != nil {
		return 0, err
	}
	dir := filepath.Join(e.config.Dir, probeFolder)
	quoted := quote(n.path(guestFile)) + " probe " + quote(n.path(foundFile))
	err = errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700))
	if err == nil {
		err = engine.LinkFile(program, n.path(guestFile), 0o700)
	}
	if err == nil {
		err = atomicwriter.WriteFile(n.path(scriptFile), []byte("#!/bin/sh\nexec "+quoted+"\n"), 0o700)
	}
	if err != nil {
		return 0, fileFailure("its folder", err)
	}
	second := int(e.config.Clock.Now().Unix()) // Slurm remembers earlier ones by their names
	job, err := e.config.Commands.Submit(ctx, slurm.Request{Name: slurm.NameOf(probeID, second), Comment: comment,
		Time: probeTime, Nodes: 1, Each: slurm.Each{CPUs: 1, Memory: probeMemory}, Dir: dir,
		Script: n.path(scriptFile), Log: n.path(jobLog)})
	e.jobs.poller.Wake()
	return job, failure(ctx, err)
}

// remember stores what was found.
func (n *nodes) remember(found *tried) error {
	data, err := json.Marshal(found)
	if err == nil {
		err = engine.ReplaceFile(n.path(probeFile), data)
	}
	if err != nil {
		return fileFailure("what was found on the nodes", err)
	}
	return nil
}

// reachable reports whether the login node connects to where a probe waits.
func reachable(ctx context.Context, probe node.Probe) bool {
	dialer := net.Dialer{Timeout: dialTime}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(probe.Host, strconv.Itoa(probe.Port)))
	return err == nil && conn.Close() == nil
}

// runner is what makes containers on the nodes. It fails while it is known that nothing does.
func (n *nodes) runner() (node.Runner, error) {
	found, _ := n.get()
	if found == nil {
		return node.Own, nil
	}
	runner, ok := found.Probe.Runner()
	if !ok {
		return "", session.NewError(session.CodeEngineUnsupported, noRunner(found.Probe), runnerHint)
	}
	return runner, nil
}

const runnerHint = "Ask the admins of the cluster to allow user namespaces on its nodes or to install Apptainer " +
	"there, then restart the agent."

func noRunner(p node.Probe) string {
	return fmt.Sprintf("No containers can be made on the nodes of this cluster: on %s user namespaces are refused "+
		"(%s), and Apptainer does not work (%s).", p.Host, reason(p.OwnReason), reason(p.ApptainerReason))
}

// reason is what a node says, as a part of a sentence.
func reason(said string) string { return plain([]byte(said[:min(len(said), longestLine)])) }

// checks are what the doctor says of the nodes.
func (n *nodes) checks() []session.Check {
	found, err := n.get()
	check := func(id, title string, good bool, text, otherwise, remedy string) session.Check {
		if good {
			return session.Check{ID: id, Title: title, Result: session.CheckOK, Text: text}
		}
		return session.Check{ID: id, Title: title, Result: session.CheckWarning, Text: otherwise, Remedy: remedy}
	}
	runner := check("node-containers", "Containers on compute nodes", false, "",
		"A short job that tries a node has not run yet.", "squeue --me")
	switch {
	case found == nil && err != nil:
		said := session.AsError(err, session.CodeEngineInternal)
		runner.Text = "The nodes could not be tried. " + said.Message
		return []session.Check{runner}
	case found == nil:
		return []session.Check{runner}
	}
	p := found.Probe
	by, ok := p.Runner()
	switch {
	case !ok:
		runner.Result, runner.Text, runner.Remedy = session.CheckFailed, noRunner(p), runnerHint
	case by == node.Apptainer:
		runner.Result, runner.Remedy = session.CheckOK, ""
		runner.Text = "Apptainer makes them, because on " + p.Host + " user namespaces are refused (" +
			reason(p.OwnReason) + ")."
	default:
		runner.Result, runner.Text, runner.Remedy = session.CheckOK, "They work without root, tried on "+p.Host+".", ""
	}
	outside := "Sessions on one node reach nothing outside it: the nodes have neither slirp4netns nor pasta."
	if p.NetworkReason != "" {
		outside = "Sessions on one node reach nothing outside it: " + reason(p.NetworkReason) + "."
	}
	return []session.Check{runner,
		check("node-network", "Network of sessions on compute nodes", p.Network != "",
			"Each session has a private network, joined to the outside by "+reason(p.Network)+".", outside,
			"Ask the admins of the cluster to install slirp4netns or passt on its nodes."),
		check("node-link", "Connection to compute nodes", found.Direct,
			"The login node connects to "+p.Host+" directly.",
			"The login node cannot connect to "+p.Host+", so sessions are reached through srun, which is slower.",
			"Ask the admins of the cluster to allow connections from its login nodes to its compute nodes."),
		check("node-limits", "Limits on compute nodes", p.MemoryGroup && p.CPUGroup,
			"Slurm limits memory and CPUs of jobs by control groups.",
			"Slurm does not limit memory and CPUs of jobs by control groups, so jobs on one node can disturb each "+
				"other.",
			"Ask the admins of the cluster for TaskPlugin=task/cgroup."),
	}
}

// deviceCheck lists the devices of the nodes, by partition.
func deviceCheck(site slurm.Site) session.Check {
	c := session.Check{ID: "devices", Title: "GPUs", Result: session.CheckOK,
		Text: "The nodes of this cluster have none."}
	var names []string
	for _, p := range siteOf(site).Partitions {
		for _, g := range p.GPUs {
			name := strings.TrimSpace(fmt.Sprintf("%d GPU %s", g.Count, g.Type))
			if g.Shards > 0 {
				name += fmt.Sprintf(" with %d shards", g.Shards)
			}
			names = append(names, fmt.Sprintf("%s on a node of %s", name, p.Name))
		}
	}
	if len(names) > 0 {
		c.Text = strings.Join(names, ", ") + "."
	}
	return c
}
