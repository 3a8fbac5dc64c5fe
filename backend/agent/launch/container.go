package launch

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"slipway/backend/engine"
	"slipway/backend/session"
	"slipway/gpu"
)

// threadVars are the variables that tell numeric libraries how many threads to start.
var threadVars = []string{"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"}

// containers is what the engine needs to create the kernels of a session.
func (r *Runner) containers(s session.Session) ([]engine.Container, error) {
	mounts, err := r.config.Folders.Mounts(s)
	if err != nil {
		return nil, err
	}
	kept, err := r.config.Confidential.Get(s)
	if err != nil {
		return nil, err
	}
	list := make([]engine.Container, len(s.Kernels))
	for number := range list {
		c := r.container(s, number)
		c.Mounts, c.Hidden, c.Guest.Pins = mounts.List, mounts.Hidden, mounts.Pins
		c.Guest.Env, c.Guest.Author = append(c.Guest.Env, kept.Secrets...), kept.Author
		list[number] = c
	}
	return list, nil
}

// container is what the engine needs to create one kernel, except the mounts. Each attempt has the same.
func (r *Runner) container(s session.Session, number int) engine.Container {
	k := s.Kernels[number]
	guest := engine.GuestConfig{
		Session: s.ID, Kernel: k.Name, UID: r.config.UID, GID: r.config.GID, Env: r.environment(s, number),
		Setup: s.Spec.Setup, Ports: s.Spec.Ports, Cluster: r.clusterOf(s, k),
	}
	if s.Spec.Admin {
		guest.Admin, guest.UID, guest.GID = true, 0, 0
	}
	if slices.ContainsFunc(s.Folders, func(m session.FolderMount) bool {
		return m.Target == session.CachePath && !m.ReadOnly
	}) {
		guest.Defaults = cacheEnv()
	}
	guest.Defaults = append(guest.Defaults, gitEnv(s)...)
	if s.Spec.Type == session.Batch && number == 0 {
		guest.Command = s.Spec.Command
	}
	if s.Spec.Serving != nil {
		guest.Server = &engine.Server{Actions: s.Spec.Serving.PreStart,
			Argv: withShare(s.Spec.Serving.Command, memoryShare(r.devicesOf(k.Grants.GPUs), k.Grants.GPUs))}
	}
	return engine.Container{
		Name:      fmt.Sprintf("slipway-%s-%s-%d", s.ID, k.Name, s.Attempt),
		Hostname:  k.Hostname,
		Image:     s.Spec.Image,
		Labels:    r.labels(s, k),
		Guest:     guest,
		CPUs:      k.Grants.CPUs,
		Memory:    k.Grants.Memory,
		Shm:       s.Spec.Resources.Shm,
		Processes: s.Processes,
		Network:   r.networks.of(s).Name,
		Devices:   r.devicesOf(k.Grants.GPUs),
		Grants:    k.Grants.GPUs,
		MPS:       s.Spec.MPS,
	}
}

// devicesOf describes the granted devices. One that is not found has only its UUID: the engine reports what is wrong.
func (r *Runner) devicesOf(grants []gpu.Grant) []gpu.Device {
	if len(grants) == 0 {
		return nil
	}
	known := r.config.Devices.Now().Devices
	var list []gpu.Device
	for _, g := range grants {
		if slices.ContainsFunc(list, func(d gpu.Device) bool { return d.UUID == g.Device }) {
			continue
		}
		device := gpu.Device{UUID: g.Device}
		if i := slices.IndexFunc(known, func(d gpu.Device) bool { return d.UUID == g.Device }); i >= 0 {
			device = known[i]
		}
		list = append(list, device)
	}
	return list
}

// labels are enough to adopt a container without a record. The name is the one at creation, whatever it is renamed to.
func (r *Runner) labels(s session.Session, k session.Kernel) map[string]string {
	grants, _ := json.Marshal(k.Grants) // numbers can always be marshalled
	labels := map[string]string{
		engine.LabelSession:  string(s.ID),
		engine.LabelKernel:   k.Name,
		engine.LabelAttempt:  strconv.Itoa(s.Attempt),
		engine.LabelOwner:    s.Owner,
		engine.LabelAgent:    r.config.Agent,
		engine.LabelInstance: r.config.Records.Instance(),
		engine.LabelGrants:   string(grants),
		engine.LabelName:     s.Spec.Name,
	}
	if folders, err := json.Marshal(s.Folders); err == nil && len(s.Folders) > 0 {
		labels[engine.LabelFolders] = string(folders)
	}
	return labels
}

// environment is all that Slipway adds to the environment: the description of the session, the number of threads, where
// the kernels of a cluster meet, the share of devices, and the person's own variables, which win over all but the
// first.
func (r *Runner) environment(s session.Session, number int) []session.EnvVar {
	k := s.Kernels[number]
	cpus := max(s.Spec.Resources.CPU, 1)
	ports := make([]string, len(s.Spec.Ports))
	for i, port := range s.Spec.Ports {
		ports[i] = strconv.Itoa(port)
	}
	env := []session.EnvVar{
		{Name: "SLIPWAY_SESSION_ID", Value: string(s.ID)},
		{Name: "SLIPWAY_SESSION_NAME", Value: s.Spec.Name},
		{Name: "SLIPWAY_SESSION_TYPE", Value: string(s.Spec.Type)},
		{Name: "SLIPWAY_KERNEL", Value: k.Name},
		{Name: "SLIPWAY_IMAGE", Value: s.Spec.Image},
		{Name: "SLIPWAY_OWNER", Value: s.Owner},
		{Name: "SLIPWAY_AGENT", Value: s.Agent},
		{Name: "SLIPWAY_CPUS", Value: strconv.Itoa(cpus)},
		{Name: "SLIPWAY_MEMORY", Value: strconv.FormatInt(int64(k.Grants.Memory), 10)},
		{Name: "SLIPWAY_SHM", Value: strconv.FormatInt(int64(s.Spec.Resources.Shm), 10)},
		{Name: "SLIPWAY_PORTS", Value: strings.Join(ports, ",")},
	}
	env = append(env, clusterEnv(s, number)...)
	var defaults []session.EnvVar
	for _, name := range threadVars {
		defaults = append(defaults, session.EnvVar{Name: name, Value: strconv.Itoa(cmp.Or(s.Spec.Threads, cpus))})
	}
	defaults = append(defaults, meetingEnv(s, number)...)
	defaults = append(defaults, deviceEnv(s, r.devicesOf(k.Grants.GPUs), k.Grants.GPUs)...)
	defaults = slices.DeleteFunc(defaults, func(v session.EnvVar) bool {
		return slices.ContainsFunc(s.Spec.Env, func(own session.EnvVar) bool { return own.Name == v.Name })
	})
	return slices.Concat(env, defaults, s.Spec.Env)
}

// cacheEnv leads package managers to the person's cache, which is not on the file system that they install to.
func cacheEnv() []session.EnvVar {
	return []session.EnvVar{
		{Name: "PIP_CACHE_DIR", Value: session.CachePath + "/pip"},
		{Name: "UV_CACHE_DIR", Value: session.CachePath + "/uv"},
		{Name: "UV_LINK_MODE", Value: "copy"},
		{Name: "CONDA_PKGS_DIRS", Value: session.CachePath + "/conda/pkgs"},
		{Name: "HF_HOME", Value: session.CachePath + "/huggingface"},
	}
}

// gitEnv lets git work in what the person has mounted to write in, also if it belongs to another user there.
func gitEnv(s session.Session) (vars []session.EnvVar) {
	var dirs []string
	for _, m := range s.Folders {
		if !m.Auto && !m.ReadOnly {
			dirs = append(dirs, m.Target)
		}
	}
	for _, m := range s.Spec.Mounts {
		if m.Source != "" && !m.ReadOnly {
			dirs = append(dirs, session.MountTarget(m))
		}
	}
	for i, dir := range dirs {
		vars = append(vars, session.EnvVar{Name: fmt.Sprintf("GIT_CONFIG_KEY_%d", i), Value: "safe.directory"},
			session.EnvVar{Name: fmt.Sprintf("GIT_CONFIG_VALUE_%d", i), Value: dir})
	}
	if len(dirs) > 0 {
		vars = append(vars, session.EnvVar{Name: "GIT_CONFIG_COUNT", Value: strconv.Itoa(len(dirs))})
	}
	return vars
}

const (
	// contextRoom is what the fraction leaves free of a share, at most one part in contextMost: frameworks count only
	// what they allocate, and the driver's context takes up to this much for one process on the cards of data centres.
	// The guard and the driver count all of it.
	contextRoom = 512 * gpu.MiB
	contextMost = 4
)

// deviceEnv tells a kernel's processes their share of devices, and, unless the person opts out, tells frameworks to
// keep to it: JAX to allocate no more than the share in advance, TensorFlow to allocate memory as needed. PyTorch has
// no variable that all its versions accept; the guest adds a sitecustomize that calls
// torch.cuda.set_per_process_memory_fraction once a device is used. The fraction leaves room for the context of one
// process; whoever starts more divides it. GPU_MEMORY_LIMIT_MIB is the whole share, contexts included. The hardware
// limits whole devices and MIG instances. Where another scheduler gives the devices, their memory is unknown.
func deviceEnv(s session.Session, devices []gpu.Device, grants []gpu.Grant) []session.EnvVar {
	if len(grants) == 0 {
		return nil
	}
	least, shared := grants[0].Memory, false
	var share gpu.Share
	for _, g := range grants {
		share += g.Share
		least = min(least, g.Memory)
		shared = shared || partOf(g)
	}
	text := memoryShare(devices, grants)
	env := []session.EnvVar{
		{Name: "SLIPWAY_GPUS", Value: strconv.Itoa(len(grants))},
		{Name: "SLIPWAY_GPU_SHARE", Value: share.String()},
		{Name: "SLIPWAY_GPU_FRACTION", Value: text},
	}
	if s.Enforcement != "" {
		env = append(env, session.EnvVar{Name: "SLIPWAY_GPU_ENFORCEMENT", Value: string(s.Enforcement)})
	}
	if least > 0 {
		env = append(env, session.EnvVar{Name: "SLIPWAY_GPU_MEMORY", Value: strconv.FormatInt(int64(least), 10)},
			session.EnvVar{Name: "GPU_MEMORY_LIMIT_MIB", Value: strconv.FormatInt(int64(least/gpu.MiB), 10)})
	}
	if !shared || s.Spec.Uncooperative {
		return env
	}
	return append(env, session.EnvVar{Name: "SLIPWAY_GPU_COOPERATIVE", Value: "1"},
		session.EnvVar{Name: "XLA_PYTHON_CLIENT_MEM_FRACTION", Value: text},
		session.EnvVar{Name: "TF_FORCE_GPU_ALLOW_GROWTH", Value: "true"})
}

// partOf reports whether a grant is a part of a device that only programs themselves limit.
func partOf(g gpu.Grant) bool { return !g.Whole && g.Instance == "" }

// memoryShare is the part of a device's memory that a framework should allocate, the least of all granted devices. Of
// memory that is unknown, it is the share.
func memoryShare(devices []gpu.Device, grants []gpu.Grant) string {
	fraction := 1.0
	for _, g := range grants {
		own := g.Memory
		if partOf(g) && own == 0 {
			fraction = min(fraction, float64(g.Share)/float64(gpu.WholeDevice))
			continue
		}
		if partOf(g) {
			own -= min(contextRoom, g.Memory/contextMost)
		}
		for _, d := range devices {
			if d.UUID == g.Device && d.Memory > 0 && g.Instance == "" {
				fraction = min(fraction, float64(own)/float64(d.Memory))
			}
		}
	}
	return strconv.FormatFloat(float64(int(fraction*1000))/1000, 'f', 3, 64) // rounded down
}

// withShare returns the command of a server with the part of a device's memory that it should allocate.
func withShare(command []string, share string) []string {
	command = slices.Clone(command)
	for i := range command {
		command[i] = strings.ReplaceAll(command[i], session.GPUMemoryShare, share)
	}
	return command
}
