package cli

import (
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"slipway/backend/client"
	"slipway/backend/recipe"
	"slipway/backend/session"
)

const typeBatch = "batch"

// specFlag is a flag that changes a spec.
type specFlag struct {
	kind         string // of its value, for the help
	name, letter string
	usage        string
	usual        string // value of the flag without one; empty: it needs one
	read         func(spec *session.Spec, text string) error
	given        []string // its values
}

// fieldFlag returns a flag that sets a field of a recipe, such as resources.cpu.
func fieldFlag(kind, name, field, usage string) *specFlag {
	read := func(spec *session.Spec, text string) error {
		// an empty text removes these from the file and leaves the others unchanged
		clears := []string{"agent", "group", "label", "accelerator", "pendingTimeout"}
		switch {
		case text == "" && !slices.Contains(clears, field):
			return nil
		case kind == "int" && name != "priority" && (text[0] == '0' || text[0] == '-'):
			return usagef("invalid --%s %s: use a whole number from 1", name, text)
		}
		return recipe.Set(spec, field, text)
	}
	return &specFlag{kind: kind, name: name, usage: usage, read: read}
}

func (f *specFlag) Type() string   { return f.kind }
func (f *specFlag) String() string { return "" }

func (f *specFlag) Set(text string) (err error) {
	var n int
	var on bool
	switch f.kind {
	case "int":
		n, err = strconv.Atoi(text)
		text = strconv.Itoa(n)
	case "float64":
		_, err = strconv.ParseFloat(text, 64)
	case "bool":
		on, err = strconv.ParseBool(text)
		text = strconv.FormatBool(on)
	}
	f.given = append(f.given, text)
	return err
}

// specFlags are flags in the order in which they are applied.
type specFlags []*specFlag

func (f specFlags) add(cmd *cobra.Command) {
	for _, flag := range f {
		added := cmd.Flags().VarPF(flag, flag.name, flag.letter, flag.usage)
		added.NoOptDefVal = flag.usual
		if flag.kind == "bool" {
			added.NoOptDefVal = "true"
		}
	}
}

// set applies the flags to spec. It returns invalid amounts as errors of fields, as the server does.
func (f specFlags) set(spec *session.Spec) (wrong []session.FieldError, err error) {
	for _, flag := range f {
		for _, text := range flag.given {
			var fault *recipe.Fault
			if err := flag.read(spec, text); errors.As(err, &fault) && fault.Field != nil {
				wrong = append(wrong, *fault.Field)
			} else if err != nil {
				return nil, err
			}
		}
	}
	return wrong, nil
}

// runFlags returns the flags for the spec. They override the file.
func (p runCommands) runFlags() specFlags {
	field, ofFile := fieldFlag, -1
	return specFlags{
		{kind: "stringArray", name: "no-volume", read: leaveOutMount,
			usage: "skip a mount of the file, by its folder, directory or path in the session; repeatable"},
		{kind: "stringArray", name: "no-after", read: leaveOutAfter,
			usage: "do not wait for this session of the file; repeatable"},
		field("string", "image", "image", "image, as for docker pull (instead of IMAGE)"),
		field("string", "name", "name", "4 to 64 letters, digits, _ . or - (default: a random name)"),
		field("string", "type", "type", "interactive or batch (default interactive)"),
		field("string", "on", "agent", "agent to run on (default: see slipway use); empty: any, overriding the file"),
		field("string", "group", "group", "resource group of the agent; empty: any, overriding the file"),
		field("int", "cpu", "resources.cpu", "whole CPUs (default 1)"),
		field("string", "mem", "resources.memory", "memory with m, g or t, such as 512m (default 1g)"),
		field("string", "shm", "resources.shm", "shared memory, part of the memory (default automatic)"),
		field("string", "gpu", "accelerator",
			"devices of each container: 0.5 (a share), 2 (whole devices), mig:1g.10gb[:2], vram:12g, or none"),
		field("bool", "uncooperative", "uncooperative", "do not configure frameworks to stay within the share"),
		field("bool", "mps", "mps", "share the device through MPS, if the agent supports it"),
		field("int", "threads", "threads", "threads of OpenMP, OpenBLAS and MKL (default: number of CPUs)"),
		field("int", "cluster", "cluster", "containers on one private network, 1 to 8 (default 1)"),
		{kind: "stringArray", name: "env", letter: "e", read: p.addEnv,
			usage: "variable NAME=VALUE, or NAME to pass its value; repeatable"},
		{kind: "stringArray", name: "secret", read: addSecret,
			usage: "stored secret to set as a variable (see slipway secret); repeatable"},
		{kind: "stringArray", name: "volume", letter: "v",
			read: func(spec *session.Spec, entry string) error {
				if ofFile < 0 {
					ofFile = len(spec.Mounts)
				}
				return addMount(spec, entry, ofFile)
			},
			usage: "mount a folder, NAME[/SUBPATH][:PATH][:ro], or a directory that begins with / or ., " +
				"DIR[:PATH][:ro]; a relative PATH is under /home/work; repeatable"},
		field("string", "setup", "setup",
			"script that the image's shell runs first; in an interactive session, while you work"),
		{kind: "stringArray", name: "port", read: addPorts,
			usage: "preopened port, or several such as 8000,9000:9003; repeatable"},
		field("string", "timeout", "timeout", "terminate a batch session after this long, such as 90m"),
		{kind: "string", name: "start-at", read: p.addStart,
			usage: "start a batch session not before this time: 18:30, 2026-05-01 08:00, RFC 3339, +90m, or now"},
		{kind: "string", name: "at", read: p.addStart, usage: "short for --start-at"},
		field("int", "priority", "priority", "0 to 100, higher goes first (default 10)"),
		{kind: "stringArray", name: "after", read: addAfter, usage: "start after this session succeeds; repeatable"},
		field("string", "pending-timeout", "pendingTimeout",
			"cancel after waiting this long, a number with s, m, h, d or w (default: never)"),
		field("string", "partition", "slurm.partition", "partition of Slurm (default: the site's)"),
		field("string", "account", "slurm.account", "account that Slurm charges (default: yours)"),
		field("string", "qos", "slurm.qos", "quality of service of Slurm (default: the account's)"),
		field("string", "gpu-type", "slurm.gpuType", "type of the GPUs, as Slurm names it (default: any)"),
		field("string", "time-limit", "slurm.time",
			"Slurm ends the session after this long, such as 4h (default: the partition's)"),
		field("string", "constraint", "slurm.constraint", "features that the nodes of Slurm must have"),
		field("string", "reservation", "slurm.reservation", "reservation of Slurm to use"),
		{kind: "stringArray", name: "sbatch-option", read: addSlurmOption,
			usage: "further option of sbatch, as --sbatch-option=--name=value; repeatable"},
		field("bool", "no-ssh", "noSSH", "turn off SSH access to the session"),
		field("bool", "admin", "admin", "be root in the session, to install packages with apt; it has no folders"),
		field("int", "commit-on-end", "commitOnEnd",
			"save an image when it ends, and keep this many of the newest with its name (default: none)"),
		{kind: "string", name: "keep-home", usual: "30d", read: addKeepHome,
			usage: "keep the home directory as a folder until it is unused for this long; 0: delete it with the " +
				"session (default: the setting keepHome)"},
		field("string", "label", "label", "project label for usage"),
	}
}

// idleFlags are the flags for the idle checks.
type idleFlags struct {
	specFlags
	off bool
}

func (f *idleFlags) add(cmd *cobra.Command) {
	field := fieldFlag
	f.specFlags = specFlags{
		field("string", "idle-lifetime", "idle.lifetime", "maximum lifetime, such as 2d"),
		field("string", "idle-network", "idle.network", "reclaim it after this long without activity, such as 4h"),
		field("string", "idle-window", "idle.use.window", "average utilization over this time, such as 30m"),
		field("string", "idle-grace", "idle.use.grace", "do not check utilization before this time after its start"),
		field("bool", "idle-any", "idle.use.any", "any metric below its threshold is enough (default: all)"),
		field("float64", "idle-cpu", "idle.use.cpu", "CPU threshold in percent"),
		field("float64", "idle-memory", "idle.use.memory", "memory threshold in percent"),
		field("float64", "idle-gpu", "idle.use.gpu", "GPU threshold in percent"),
		field("float64", "idle-vram", "idle.use.vram", "GPU memory threshold in percent"),
		field("bool", "idle-keep", "idle.park", "when it is reclaimed, keep it for slipway continue"),
	}
	f.specFlags.add(cmd)
	cmd.Flags().BoolVar(&f.off, "idle-off", false, "never reclaim it, whatever the agent's policy")
}

// policy returns the policy in the flags, or nil if none is set.
func (f idleFlags) policy() (*session.IdlePolicy, []session.FieldError, error) {
	var spec session.Spec
	wrong, err := f.set(&spec)
	none := spec.Idle == nil || *spec.Idle == session.IdlePolicy{}
	switch {
	case f.off && !none:
		return nil, nil, usagef("use either --idle-off or the other --idle flags")
	case f.off:
		return &session.IdlePolicy{}, wrong, err
	case none:
		return nil, wrong, err
	}
	return spec.Idle, wrong, err
}

// buildSpec returns the spec of run from its file, flags and command.
func (p runCommands) buildSpec(flags specFlags, idle idleFlags, opts runOptions) (spec session.Spec, err error) {
	if opts.file != "" {
		if spec, err = p.readSpec(opts.file); err != nil {
			return spec, err
		}
		if len(spec.Secrets) > 0 {
			p.notice("%s asks for your secrets %s.", opts.file, strings.Join(spec.Secrets, ", "))
		}
		if err := p.addSecrets(&spec, flags); err != nil {
			return spec, err
		}
	}
	wrong, err := flags.set(&spec)
	if err != nil {
		return spec, err
	}
	policy, faults, err := idle.policy()
	if err != nil {
		return spec, err
	}
	if policy != nil {
		spec.Idle = policy
	}
	if err := invalid(session.CodeInvalid, append(wrong, faults...)); err != nil {
		return spec, opts.repairable(err, spec)
	}
	if spec.Type == typeBatch && len(opts.words) > 0 {
		spec.Command = commandLine(opts.words)
	}
	return spec, nil
}

// invalid returns the error of a spec with wrong fields, or nil.
func invalid(code session.Code, wrong []session.FieldError) error {
	if len(wrong) == 0 {
		return nil
	}
	refusal := *session.AsError(session.Invalid(wrong), code)
	refusal.Code = code
	return &client.Refused{Problem: refusal, Status: http.StatusUnprocessableEntity}
}

// addEnv reads NAME=VALUE, or the NAME of a variable of this program.
func (p runCommands) addEnv(spec *session.Spec, entry string) error {
	name, value, given := strings.Cut(entry, "=")
	if name == "" {
		return usagef("invalid --env %q: use NAME=VALUE", entry)
	}
	if !given {
		if value = p.Env(name); value == "" {
			return usagef("--env %s: the variable is not set here", name)
		}
	}
	at := slices.IndexFunc(spec.Env, func(v session.EnvVar) bool { return v.Name == name })
	if at < 0 {
		at, spec.Env = len(spec.Env), append(spec.Env, session.EnvVar{Name: name})
	}
	spec.Env[at].Value = value
	return nil
}

func addSecret(spec *session.Spec, name string) error {
	if strings.Contains(name, "=") {
		return usagef("invalid --secret: use a name only, and store the value with slipway secret set")
	}
	if !slices.Contains(spec.Secrets, name) {
		spec.Secrets = append(spec.Secrets, name)
	}
	return nil
}

// addMount adds the mount of a flag -v. It replaces a mount of the file, one of the first ofFile, with the same target.
func addMount(spec *session.Spec, entry string, ofFile int) error {
	mount, err := parseMount(entry)
	if err != nil {
		return err
	}
	if mount.Folder == "" && spec.Agent == "" { // a directory of this computer
		if mount.Source, err = filepath.Abs(mount.Source); err != nil {
			return err
		}
	}
	same := func(other session.Mount) bool { return session.MountTarget(other) == session.MountTarget(mount) }
	if at := slices.IndexFunc(spec.Mounts[:ofFile], same); at >= 0 {
		spec.Mounts[at] = mount
		return nil
	}
	spec.Mounts = append(spec.Mounts, mount)
	return nil
}

// directory reports whether the source of a mount is a directory of the machine rather than a folder.
func directory(text string) bool {
	return filepath.IsAbs(text) || strings.HasPrefix(text, "/") || text == "." || text == ".." ||
		strings.HasPrefix(text, "./") || strings.HasPrefix(text, "../") || strings.Contains(text, `\`)
}

// parseMount parses DIR[:PATH][:ro|rw] or NAME[/SUBPATH][:PATH][:ro|rw].
func parseMount(entry string) (session.Mount, error) {
	volume := filepath.VolumeName(entry) // C: on Windows
	parts := strings.Split(entry[len(volume):], ":")
	mount := session.Mount{}
	if last := parts[len(parts)-1]; len(parts) > 1 && (last == "ro" || last == "rw") {
		mount.ReadOnly = last == "ro"
		parts = parts[:len(parts)-1]
	}
	if len(parts) > 2 || parts[0] == "" || len(parts) == 2 && parts[1] == "" {
		return mount, usagef("invalid --volume %q: use DIR, DIR:PATH or DIR:PATH:ro", entry)
	}
	if mount.Source = volume + parts[0]; !directory(mount.Source) {
		mount.Folder, mount.Path, _ = strings.Cut(mount.Source, "/")
		mount.Source = ""
	}
	if len(parts) == 2 {
		mount.Target = parts[1]
	}
	return mount, nil
}

func addPorts(spec *session.Spec, entry string) error {
	for _, text := range strings.FieldsFunc(entry, func(r rune) bool { return r == ',' || r == ' ' }) {
		ports, err := recipe.ParsePorts(text)
		if err != nil {
			return usagef("invalid --port %q: use a port such as 8080, or a range such as 9000:9003", text)
		}
		spec.Ports = append(spec.Ports, ports...)
	}
	return nil
}

func addSlurmOption(spec *session.Spec, option string) error {
	if spec.Slurm == nil {
		spec.Slurm = &session.Slurm{}
	}
	spec.Slurm.Options = append(spec.Slurm.Options, option)
	return nil
}

func addAfter(spec *session.Spec, ref string) error {
	if ref == "" {
		return usagef("--after needs the ID or name of a session")
	}
	spec.After = append(spec.After, ref)
	return nil
}

func (p runCommands) addStart(spec *session.Spec, text string) error {
	switch text {
	case "":
		return nil
	case "now":
		spec.NotBefore = nil
		return nil
	}
	at, err := parseStart(text, p.Now())
	if err == nil {
		spec.NotBefore = &at
	}
	return err
}

// parseStart parses a time of the day, today or tomorrow; a date with a time; RFC 3339; or a length of time from now.
func parseStart(text string, now time.Time) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02T15:04:05",
		"2006-01-02T15:04"} {
		if at, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return at, nil
		}
	}
	if clock, err := time.Parse("15:04", text); err == nil {
		at := time.Date(now.Year(), now.Month(), now.Day(), clock.Hour(), clock.Minute(), 0, 0, now.Location())
		if !at.After(now) {
			at = at.AddDate(0, 0, 1)
		}
		return at, nil
	}
	if wait, err := time.ParseDuration(strings.TrimPrefix(text, "+")); err == nil && wait > 0 {
		return now.Add(wait), nil
	}
	return time.Time{}, usagef("invalid --start-at %q: use 18:30, 2026-05-01 08:00, an RFC 3339 time, or +90m", text)
}

// commandLine quotes words as one line for a shell. A single word is already a line.
func commandLine(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(each(words, session.ShellWord), " ")
}

// addKeepHome sets how long the home is kept. Unlike other lengths, 0 is not the same as none.
func addKeepHome(spec *session.Spec, text string) error {
	if text == "0" {
		text = "0s"
	}
	return recipe.Set(spec, "keepHome", text)
}
