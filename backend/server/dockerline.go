package server

import (
	"cmp"
	"fmt"
	"path"
	"strconv"
	"strings"

	"slipway/backend/session"
	"slipway/gpu"
)

// dockerRun is the docker run command that is closest to a spec, and what it lacks, one sentence each.
type dockerRun struct {
	shellLine
	lacks []string
}

func (d *dockerRun) lack(format string, args ...any) {
	d.lacks = append(d.lacks, fmt.Sprintf(format, args...))
}

// dockerLine returns the command of a spec with its defaults. paths has the directories of folders.
func dockerLine(spec session.Spec, paths map[string]string) *dockerRun {
	d := &dockerRun{shellLine: shellLine{"docker", "run", "-d"}}
	if spec.Type == session.Interactive {
		d.shellLine[2] = "-dit"
	}
	d.some("--name", spec.Name)
	d.resources(spec)
	d.env(append(threadVariables(spec), spec.Env...))
	for _, m := range spec.Mounts {
		d.mount(d.source(m, paths), m)
	}
	for _, port := range spec.Ports {
		d.add("-p", fmt.Sprintf("127.0.0.1:%d:%d", port, port))
	}
	d.word(spec.Image)
	if spec.Type == session.Batch {
		d.word("sh")
		d.add("-c", spec.Command)
	}
	d.rest(spec)
	return d
}

func (d *dockerRun) resources(spec session.Spec) {
	d.add("--cpus", strconv.Itoa(spec.Resources.CPU))
	d.add("--memory", spec.Resources.Memory.Exact())
	d.add("--memory-swap", spec.Resources.Memory.Exact())
	d.add("--shm-size", spec.Resources.Shm.Exact())
	asked := spec.Accelerator
	switch {
	case asked.IsZero():
	case asked.Devices > 0:
		d.add("--gpus", strconv.Itoa(asked.Devices))
	case asked.Shares > 0 && asked.Shares%gpu.WholeDevice == 0:
		d.add("--gpus", strconv.Itoa(int(asked.Shares/gpu.WholeDevice)))
	default:
		d.add("--gpus", strconv.Itoa(wholeDevices(asked)))
		d.lack("Docker gives whole GPUs, not %s: nothing keeps this container to its part.", asked)
	}
}

// wholeDevices returns the minimum number of devices of a request.
func wholeDevices(asked gpu.Request) int {
	return max(1, int((asked.Shares+gpu.WholeDevice-1)/gpu.WholeDevice), asked.Count)
}

// threadVariables returns the variables that set the number of threads of libraries, as Slipway does.
func threadVariables(spec session.Spec) []session.EnvVar {
	threads := cmp.Or(spec.Threads, spec.Resources.CPU)
	var env []session.EnvVar
	for _, name := range []string{"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"} {
		env = append(env, session.EnvVar{Name: name, Value: strconv.Itoa(threads)})
	}
	return env
}

// source returns the path of a mount on the machine.
func (d *dockerRun) source(m session.Mount, paths map[string]string) string {
	if m.Folder == "" {
		return m.Source
	}
	at, known := paths[m.Folder]
	if !known {
		at = "/path/of/" + m.Folder
		d.lack("It is not known where the folder %s lies: put its path in place of %s.", m.Folder, at)
	}
	return path.Join(at, m.Path)
}

// rest reports what Docker has no option for.
func (d *dockerRun) rest(spec session.Spec) {
	if spec.Agent != "" || spec.Group != "" {
		d.lack("It runs where the line is typed, not on %s.", strings.TrimSpace(spec.Agent+" "+spec.Group))
	}
	if spec.Cluster > 1 {
		d.lack("It starts one container, not a cluster of %d.", spec.Cluster)
	}
	if spec.NotBefore != nil || spec.PendingTimeout != 0 || spec.Priority != nil {
		d.lack("There is no queue: it starts at once.")
	}
	if spec.Timeout != 0 {
		d.lack("Nothing ends it after %s.", spec.Timeout)
	}
	if spec.Idle != nil {
		d.lack("There are no idle checks.")
	}
	d.lack("There is no terminal that survives, no apps and no account of what it used.")
}
