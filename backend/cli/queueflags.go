package cli

import (
	"context"

	"github.com/spf13/cobra"

	"slipway/backend/session"
	"slipway/gpu"
)

// queueFlags are the flags that say which devices a session shares, how it
// waits, how it is counted, and when it counts as idle.
type queueFlags struct {
	gpu, label, pendingTimeout, preset string
	uncooperative, mps, noSSH          bool
	cluster, priority, commitOnEnd     int
	after                              []string
	idle                               idleFlags
}

func (f *queueFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.gpu, "gpu", "",
		"devices of each container: 0.5 (a share), 2 (whole devices), mig:1g.10gb[:2], vram:12g, or none")
	flags.StringVar(&f.preset, "preset", "", "name of a resource preset; other flags override it")
	flags.BoolVar(&f.uncooperative, "uncooperative", false,
		"do not configure frameworks to stay within the share")
	flags.BoolVar(&f.mps, "mps", false, "share the device through MPS, if the agent supports it")
	flags.IntVar(&f.cluster, "cluster", 0, "containers on one private network, 1 to 8 (default 1)")
	flags.IntVar(&f.priority, "priority", 0, "0 to 100, higher goes first (default 10)")
	flags.StringArrayVar(&f.after, "after", nil, "start after this session succeeds; repeatable")
	flags.StringVar(&f.pendingTimeout, "pending-timeout", "",
		"cancel after waiting this long, a number with s, m, h, d or w (default: never)")
	flags.BoolVar(&f.noSSH, "no-ssh", false, "turn off SSH access to the session")
	flags.IntVar(&f.commitOnEnd, "commit-on-end", 0,
		"save an image when it ends, and keep this many of the newest with its name (default: none)")
	flags.StringVar(&f.label, "label", "", "project label for usage")
	f.idle.add(cmd)
}

// set puts what the flags say into spec.
// What is no amount is added to wrong.
func (f queueFlags) set(cmd *cobra.Command, spec *session.Spec, wrong *[]session.FieldError) error {
	changed := cmd.Flags().Changed
	if changed("gpu") {
		spec.Accelerator = gpu.Request{}
	}
	if changed("pending-timeout") {
		spec.PendingTimeout = 0
	}
	if changed("label") {
		spec.Label = f.label
	}
	*wrong = append(*wrong, readUnits(unitFlag{"accelerator", f.gpu, &spec.Accelerator},
		unitFlag{"pendingTimeout", f.pendingTimeout, &spec.PendingTimeout})...)
	spec.Uncooperative = spec.Uncooperative || f.uncooperative
	spec.MPS = spec.MPS || f.mps
	spec.NoSSH = spec.NoSSH || f.noSSH
	if changed("cluster") {
		if f.cluster < 1 {
			return usagef("invalid --cluster %d: use a whole number from 1", f.cluster)
		}
		spec.Cluster = f.cluster
	}
	if changed("commit-on-end") {
		if f.commitOnEnd < 1 {
			return usagef("--commit-on-end %d is no number of images to keep; write a whole number from 1",
				f.commitOnEnd)
		}
		spec.CommitOnEnd = f.commitOnEnd
	}
	if changed("priority") {
		spec.Priority = &f.priority
	}
	for _, ref := range f.after {
		if ref == "" {
			return usagef("--after needs the ID or name of a session")
		}
	}
	spec.After = append(spec.After, f.after...)
	policy, err := f.idle.policy(cmd, wrong)
	if policy != nil {
		spec.Idle = policy
	}
	return err
}

// idleFlags say when a session counts as idle.
type idleFlags struct {
	lifetime, network, window, grace string
	off, any                         bool
	cpu, memory, gpu, vram           float64
}

func (f *idleFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.lifetime, "idle-lifetime", "",
		"maximum lifetime, such as 2d")
	flags.StringVar(&f.network, "idle-network", "",
		"reclaim it after this long without activity, such as 4h")
	flags.StringVar(&f.window, "idle-window", "", "average utilization over this time, such as 30m")
	flags.StringVar(&f.grace, "idle-grace", "", "do not check utilization before this time after its start")
	flags.BoolVar(&f.any, "idle-any", false, "any metric below its threshold is enough (default: all)")
	flags.Float64Var(&f.cpu, "idle-cpu", 0, "CPU threshold in percent")
	flags.Float64Var(&f.memory, "idle-memory", 0, "memory threshold in percent")
	flags.Float64Var(&f.gpu, "idle-gpu", 0, "GPU threshold in percent")
	flags.Float64Var(&f.vram, "idle-vram", 0, "GPU memory threshold in percent")
	flags.BoolVar(&f.off, "idle-off", false, "never reclaim it, whatever the agent's policy")
}

// policy is what the flags say, nil where they say nothing.
func (f idleFlags) policy(cmd *cobra.Command, wrong *[]session.FieldError) (*session.IdlePolicy, error) {
	changed := cmd.Flags().Changed
	var policy session.IdlePolicy
	use := &policy.Use
	for name, threshold := range map[string]struct {
		from float64
		to   **float64
	}{"idle-cpu": {f.cpu, &use.CPU}, "idle-memory": {f.memory, &use.Memory}, "idle-gpu": {f.gpu, &use.GPU},
		"idle-vram": {f.vram, &use.VRAM}} {
		if changed(name) {
			*threshold.to = &threshold.from
		}
	}
	use.Any = f.any
	*wrong = append(*wrong, readUnits(unitFlag{"idle.lifetime", f.lifetime, &policy.Lifetime},
		unitFlag{"idle.network", f.network, &policy.Network}, unitFlag{"idle.use.window", f.window, &use.Window},
		unitFlag{"idle.use.grace", f.grace, &use.Grace})...)
	switch {
	case f.off && policy != (session.IdlePolicy{}):
		return nil, usagef("use either --idle-off or the other --idle flags")
	case f.off || policy != (session.IdlePolicy{}):
		return &policy, nil
	}
	return nil, nil
}

// resolve gives sessions to wait for by their ids, however they were named, fills
// in the resources of a preset that flags and file left open, and creates the
// folders that are wanted and not there. A session that only the file names and
// that there is not is left for the server to tell, with whatever else is missing.
func (p runCommands) resolve(ctx context.Context, c *caller, spec *session.Spec, opts runOptions) error {
	for i, ref := range spec.After {
		s, err := c.find(ctx, ref)
		switch {
		case err == nil:
			spec.After[i] = string(s.ID)
		case !opts.file || !isNotFound(err):
			return err
		}
	}
	if err := p.fill(ctx, c, spec, opts); err != nil || !opts.createFolders {
		return err
	}
	return p.createMissing(ctx, c, *spec)
}

// fill takes from a preset what a spec leaves open.
func (p runCommands) fill(ctx context.Context, c *caller, spec *session.Spec, opts runOptions) error {
	if opts.preset == "" {
		return nil
	}
	found, err := c.findPreset(ctx, opts.preset)
	if err != nil {
		return err
	}
	if spec.Resources.CPU == 0 {
		spec.Resources.CPU = found.Resources.CPU
	}
	if spec.Resources.Memory == 0 {
		spec.Resources.Memory = found.Resources.Memory
	}
	if spec.Resources.Shm == 0 {
		spec.Resources.Shm = found.Resources.Shm
	}
	if spec.Accelerator.IsZero() && !opts.gpuGiven {
		spec.Accelerator = found.Accelerator
	}
	return nil
}

// failures is several failures, each of which is told.
func (p runCommands) failures(problems []error) error {
	if len(problems) == 0 {
		return nil
	}
	for _, problem := range problems[:len(problems)-1] {
		p.finish(problem)
	}
	return problems[len(problems)-1] // the last one decides the exit code
}
