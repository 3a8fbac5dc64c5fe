package server

import (
	"cmp"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// shellLine is a command line for a POSIX shell, as quoted words.
type shellLine []string

func (l *shellLine) word(text string) { *l = append(*l, session.ShellWord(text)) }

func (l *shellLine) add(flag, value string) { *l = append(*l, flag, session.ShellWord(value)) }

// some adds a flag unless its value is empty.
func (l *shellLine) some(flag, value string) {
	if value != "" {
		l.add(flag, value)
	}
}

// number adds a flag unless its value is 0.
func (l *shellLine) number(flag string, n int) {
	if n != 0 {
		l.add(flag, strconv.Itoa(n))
	}
}

// on adds a flag without a value if set is true.
func (l *shellLine) on(flag string, set bool) {
	if set {
		*l = append(*l, flag)
	}
}

// env adds variables. -e NAME leaves out the value of a variable with a secret-looking name, so that it comes from the
// environment of the shell.
func (l *shellLine) env(vars []session.EnvVar) {
	for _, v := range vars {
		if session.SecretName(v.Name) {
			l.add("-e", v.Name)
		} else {
			l.add("-e", v.Name+"="+v.Value)
		}
	}
}

// mount adds a mount of source.
func (l *shellLine) mount(source string, m session.Mount) {
	text := source + ":" + session.MountTarget(m)
	if m.ReadOnly {
		text += ":ro"
	}
	l.add("-v", text)
}

func (l *shellLine) text() string { return strings.Join(*l, " ") }

// commandLine is the line that launches count sessions of spec.
func commandLine(spec session.Spec, count int) string {
	line := shellLine{"slipway", "run"}
	line.some("--image", spec.Image)
	line.some("--name", spec.Name)
	if count > 1 {
		line.number("--count", count)
	}
	if spec.Type == session.Batch {
		line.add("--type", string(spec.Type))
	}
	line.number("--cpu", spec.Resources.CPU)
	if spec.Resources.Memory != 0 {
		line.add("--mem", spec.Resources.Memory.Exact())
	}
	if spec.Resources.Shm != 0 {
		line.add("--shm", spec.Resources.Shm.Exact())
	}
	line.number("--threads", spec.Threads)
	line.some("--setup", spec.Setup)
	line.env(spec.Env)
	for _, name := range spec.Secrets {
		line.add("--secret", name)
	}
	for _, m := range spec.Mounts {
		source := m.Source
		if m.Folder != "" {
			source = path.Join(m.Folder, m.Path)
		}
		line.mount(source, m)
	}
	for _, port := range spec.Ports {
		line.number("--port", port)
	}
	line.some("--on", spec.Agent)
	line.some("--group", spec.Group)
	line.queue(spec)
	line.slurm(spec.Slurm)
	if spec.Type == session.Batch {
		line.batch(spec)
	}
	return line.text()
}

// queue adds the flags about devices, the queue, usage accounts and idle checks.
func (l *shellLine) queue(spec session.Spec) {
	l.some("--gpu", requestOut(spec.Accelerator))
	l.on("--uncooperative", spec.Uncooperative)
	l.on("--no-ssh", spec.NoSSH)
	l.on("--admin", spec.Admin)
	l.on("--mps", spec.MPS)
	l.number("--cluster", spec.Cluster)
	if spec.Priority != nil {
		l.add("--priority", strconv.Itoa(*spec.Priority))
	}
	for _, ref := range spec.After {
		l.some("--after", ref)
	}
	l.some("--pending-timeout", lengthOut(spec.PendingTimeout))
	l.some("--label", spec.Label)
	l.number("--commit-on-end", spec.CommitOnEnd)
	if spec.KeepHome != nil {
		*l = append(*l, "--keep-home="+spec.KeepHome.String())
	}
	if spec.Idle == nil {
		return
	}
	l.on("--idle-off", *spec.Idle == (session.IdlePolicy{}))
	l.some("--idle-lifetime", lengthOut(spec.Idle.Lifetime))
	l.some("--idle-network", lengthOut(spec.Idle.Network))
	use := spec.Idle.Use
	l.some("--idle-window", lengthOut(use.Window))
	l.some("--idle-grace", lengthOut(use.Grace))
	l.on("--idle-any", use.Any)
	l.on("--idle-keep", spec.Idle.Park)
	for _, threshold := range []struct {
		flag  string
		value *float64
	}{{"--idle-cpu", use.CPU}, {"--idle-memory", use.Memory}, {"--idle-gpu", use.GPU}, {"--idle-vram", use.VRAM}} {
		if threshold.value != nil {
			l.add(threshold.flag, strconv.FormatFloat(*threshold.value, 'f', -1, 64))
		}
	}
}

// slurm adds the flags about Slurm.
func (l *shellLine) slurm(asked *session.Slurm) {
	if asked == nil {
		return
	}
	l.some("--partition", asked.Partition)
	l.some("--account", asked.Account)
	l.some("--qos", asked.QOS)
	l.some("--gpu-type", asked.GPUType)
	l.some("--time-limit", lengthOut(asked.Time))
	l.some("--constraint", asked.Constraint)
	l.some("--reservation", asked.Reservation)
	for _, option := range asked.Options {
		*l = append(*l, "--sbatch-option="+session.ShellWord(option))
	}
}

func (l *shellLine) batch(spec session.Spec) {
	if spec.NotBefore != nil {
		l.add("--start-at", spec.NotBefore.Format(time.RFC3339))
	}
	l.some("--timeout", lengthOut(spec.Timeout))
	if spec.Command != "" {
		l.add("--", spec.Command)
	}
}

// lengthOut formats a duration; 0 is empty.
func lengthOut(d session.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

// requestOut formats a request for devices; none is empty.
func requestOut(r gpu.Request) string {
	if r.IsZero() {
		return ""
	}
	return r.String()
}

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
	for _, name := range spec.Secrets {
		d.add("-e", name) // from the environment of the shell
	}
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
		d.lack("Docker assigns whole GPUs, not %s: nothing limits this container to its share.", asked)
	}
}

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
		d.lack("The path of the folder %s is unknown: replace %s with it.", m.Folder, at)
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
		d.lack("It does not queue: it starts at once.")
	}
	if !spec.Slurm.IsZero() {
		d.lack("Slurm has no part in it.")
	}
	if spec.Timeout != 0 {
		d.lack("Nothing ends it after %s.", spec.Timeout)
	}
	if spec.Idle != nil {
		d.lack("It has no idle checks.")
	}
	if spec.Setup != "" {
		d.lack("It does not run the setup.")
	}
	d.lack("It has no persistent terminal, no apps and no usage accounts.")
}
