package slurm

import (
	"context"
	"errors"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"slipway/backend/engine"
	"slipway/backend/engine/slurm/images"
	"slipway/backend/guest/node"
	"slipway/backend/session"
	"slipway/backend/slurm"
)

// Create adopts the kernel of a run that a [Planner] has prepared. Without a planner it prepares one, and Start submits
// its job. It also fails with engine_call_invalid where a directory does not exist, with engine_create_unsupported for
// administrator sessions, and with engine_create_devices-taken if there was a job and it is over.
func (e *Engine) Create(ctx context.Context, c engine.Container) (string, error) {
	if err := ended(ctx); err != nil {
		return "", err
	}
	if err := validate(c); err != nil {
		return "", err
	}
	name, _, _ := parseName(c.Name)
	r, err := e.runs.take(ctx, name)
	if err != nil {
		return "", err
	}
	defer e.runs.give(r)
	now := r.now()
	at := slices.IndexFunc(now.Kernels, func(k kernel) bool { return k.Name == c.Name })
	switch {
	case at >= 0 && !now.Kernels[at].Created.IsZero():
		if !maps.Equal(now.Kernels[at].Labels, c.Labels) {
			return "", session.NewError(session.CodeEngineConflict, "Another container is named "+c.Name+".",
				"Launch again.")
		}
		return c.Name, nil
	case at < 0 && e.planned.Load():
		return "", session.NewError(session.CodeDevicesTaken, "The job of this session is over before it was used.",
			"It is submitted again.")
	case at < 0 && len(now.Kernels) > 0:
		return "", session.NewError(session.CodeEngineUnsupported,
			"The kernels of a cluster are one job, and this one has no kernel "+c.Name+".", "Launch again.")
	case at < 0:
		if now, err = e.prepare(ctx, r, []engine.Container{c}, Terms{Each: sizeOf(c)}); err != nil {
			return "", errors.Join(err, e.runs.remove(r))
		}
		at = 0
	}
	now.Kernels = slices.Clone(now.Kernels)
	now.Kernels[at].Labels, now.Kernels[at].Created = maps.Clone(c.Labels), e.config.Clock.Now().UTC()
	if err := r.keep(now); err != nil {
		return "", err
	}
	e.wake()
	return c.Name, nil
}

func validate(c engine.Container) error {
	if err := c.Check(); err != nil {
		return err
	}
	run, of, ok := parseName(c.Name)
	switch {
	case !ok || of != c.Labels[engine.LabelKernel] ||
		!strings.HasPrefix(string(run), jobPrefix+c.Labels[engine.LabelSession]+"-"):
		return session.NewError(session.CodeEngineInvalid,
			"The container name \""+c.Name+"\" is not that of a kernel of its session.", "")
	case c.Guest.Admin:
		return session.NewError(session.CodeEngineUnsupported,
			"There are no administrator sessions on a Slurm cluster: jobs have no root.",
			"Launch an ordinary session, with an image that has what you need.")
	case c.MPS:
		return session.NewError(session.CodeEngineUnsupported, "Devices of a Slurm cluster are not shared through MPS.",
			"Launch the session without MPS.")
	}
	for _, m := range c.Mounts {
		if _, err := os.Stat(m.Source); errors.Is(err, fs.ErrNotExist) {
			return session.WrapError(err, session.CodeEngineInvalid,
				"The directory "+m.Source+" does not exist on this cluster.", "Create it or choose another one.")
		}
	}
	return nil
}

// Terms is what is asked of Slurm for a run.
type Terms struct {
	slurm.Target
	Time  time.Duration // 0: the default of the partition
	Each  slurm.Each
	Nice  int // lowers the priority
	Extra []string
}

// prepare writes the folder of a run and returns its record, which is not stored yet. The caller has its turn.
// containers are its kernels, the main one first.
func (e *Engine) prepare(ctx context.Context, r *run, containers []engine.Container, terms Terms) (record, error) {
	main := containers[0]
	runner, err := e.nodes.runner()
	if err != nil {
		return record{}, err
	}
	image, layers, starts, err := e.Content(ctx, main.Image)
	if err != nil {
		return record{}, err
	}
	id, attempt, _ := slurm.ParseJobName(r.name)
	now := record{Image: image, Request: request(terms, len(containers), r.dir)}
	now.Request.Name, now.Request.Comment = e.runs.jobName(e.jobs.view(), id, attempt), e.comment(id, attempt)
	spec := node.Spec{Session: id, Attempt: attempt, Batch: main.Guest.Command != "" || main.Guest.Server != nil,
		Store: e.Layers(), Layers: layers, Local: e.config.Local, Runner: runner,
		Box: node.Box{Env: starts.Env, Mounts: main.Mounts, Hidden: main.Hidden, Shm: main.Shm,
			Processes: main.Processes, Devices: e.config.Devices, Private: len(containers) == 1}}
	now.Batch = spec.Batch
	guests := map[string]engine.GuestConfig{}
	for _, c := range containers {
		k := c.Labels[engine.LabelKernel]
		now.Kernels = append(now.Kernels, kernel{Kernel: k, Name: c.Name, Labels: maps.Clone(c.Labels)})
		spec.Kernels = append(spec.Kernels, k)
		if guests[k], err = guestOf(c, starts, !spec.Private); err != nil {
			return record{}, err
		}
	}
	return now, e.runs.write(r, spec, guests)
}

// request is what is asked of Slurm for a run in a folder, without its name.
func request(terms Terms, nodes int, dir string) slurm.Request {
	return slurm.Request{Target: terms.Target, Time: terms.Time, Nodes: nodes, Nice: terms.Nice, Extra: terms.Extra,
		Each: terms.Each, Dir: dir, Script: filepath.Join(dir, scriptFile), Log: filepath.Join(dir, jobLog)}
}

// comment is what squeue shows of a job. It says whose it is, also when its run is gone.
func (e *Engine) comment(id session.ID, attempt int) string {
	return strings.Join([]string{"slipway", e.config.Instance, string(id), strconv.Itoa(attempt)}, ":")
}

// sizeOf is what a container needs of a node.
func sizeOf(c engine.Container) slurm.Each {
	return slurm.Each{CPUs: max(1, len(c.CPUs)), Memory: c.Memory, GPUs: len(c.Grants)}
}

// guestOf is the configuration of the guest of a container. It runs as the person, who has no other user in a job.
// shared reports that it has the network of its node.
func guestOf(c engine.Container, starts images.Starts, shared bool) (engine.GuestConfig, error) {
	g := c.Guest
	g.Shared = shared
	g.UID, g.GID, g.Groups = os.Getuid(), os.Getgid(), nil
	// Each computer numbers the devices of network file systems by itself. Only the person can change what is
	// mounted meanwhile.
	g.Pins = nil
	if g.Server != nil && len(g.Server.Argv) == 0 {
		g.Server = &engine.Server{Argv: starts.Argv, Dir: starts.Dir, Actions: g.Server.Actions}
		if len(starts.Argv) == 0 {
			return g, session.NewError(session.CodeEngineInvalid, "The image "+c.Image+" starts nothing by itself.",
				"Give the service the command of its server.")
		}
	}
	if g.Cluster != nil && g.Cluster.Port == 0 {
		cluster := *g.Cluster
		cluster.Port = sshPort(g.Session)
		g.Cluster = &cluster
	}
	return g, nil
}

// sshPort is where the kernels of a cluster take ssh from each other. They share the networks of their nodes with other
// sessions, so each session has a port of its own, below those at which their processes meet.
func sshPort(id session.ID) int { return 20000 + int(crc32.ChecksumIEEE([]byte(id))%6000) }
