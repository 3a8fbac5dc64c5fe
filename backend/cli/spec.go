package cli

import (
	"encoding"
	"errors"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"slipway/backend/client"
	"slipway/backend/recipe"
	"slipway/backend/session"
)

const typeBatch = "batch"

// specFlags are the flags that say what to launch. They win over the file.
type specFlags struct {
	file, image, name, kind, timeout, startAt, agent, group string
	env, mounts, ports                                      []string
	sizeFlags
	queue  queueFlags
	repair repairFlags
}

// sizeFlags are those that say how much a session gets.
type sizeFlags struct {
	memory, shm  string
	cpu, threads int
}

func (f *specFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&f.file, "file", "f", "", "read the session from a YAML file, - for stdin; flags override it")
	flags.StringVar(&f.image, "image", "", "image, as for docker pull")
	flags.StringVar(&f.name, "name", "", "4 to 64 letters, digits, _ . or - (default: a random name)")
	flags.StringVar(&f.kind, "type", "", "interactive or batch (default interactive)")
	flags.IntVar(&f.cpu, "cpu", 0, "whole CPUs (default 1)")
	flags.StringVar(&f.memory, "mem", "", "memory with m, g or t, such as 512m (default 1g)")
	flags.StringVar(&f.shm, "shm", "", "shared memory, part of the memory (default automatic)")
	flags.IntVar(&f.threads, "threads", 0, "threads of OpenMP, OpenBLAS and MKL (default: number of CPUs)")
	flags.StringArrayVarP(&f.env, "env", "e", nil, "variable NAME=VALUE, or NAME to pass its value; repeatable")
	flags.StringArrayVarP(&f.mounts, "volume", "v", nil, "mount a folder, NAME[/SUBPATH][:PATH][:ro], or a directory "+
		"that begins with / or ., DIR[:PATH][:ro]; a relative PATH is under /home/work; repeatable")
	flags.StringArrayVar(&f.ports, "port", nil, "preopened port, or several such as 8000,9000:9003; repeatable")
	flags.StringVar(&f.timeout, "timeout", "", "terminate a batch session after this long, such as 90m")
	flags.StringVar(&f.startAt, "start-at", "",
		"start a batch session not before this time: 18:30, 2026-05-01 08:00, RFC 3339, +90m, or now")
	flags.StringVar(&f.startAt, "at", "", "short for --start-at")
	flags.StringVar(&f.agent, "on", "", "agent to run on; empty: any, overriding the file")
	flags.StringVar(&f.group, "group", "", "resource group of the agent; empty: any, overriding the file")
	f.queue.add(cmd)
	f.repair.add(cmd)
}

// buildSpec makes the spec of run from its file, its flags and its words.
func (p runCommands) buildSpec(cmd *cobra.Command, f specFlags, words []string) (session.Spec, error) {
	var spec session.Spec
	if f.file != "" {
		read, err := recipeCommands(p).readSpec(f.file)
		if err != nil {
			return spec, err
		}
		if err := recipeCommands(p).addSecrets(&read, f.env); err != nil {
			return spec, err
		}
		spec = read
	}
	if err := f.repair.set(&spec); err != nil {
		return spec, err
	}
	wrong := f.texts(&spec)
	f.anywhere(cmd, &spec)
	if cmd.Flags().Changed("cpu") {
		if f.cpu < 1 {
			return spec, usagef("invalid --cpu %d: use a whole number from 1", f.cpu)
		}
		spec.Resources.CPU = f.cpu
	}
	if cmd.Flags().Changed("threads") {
		if f.threads < 1 {
			return spec, usagef("invalid --threads %d: use a whole number from 1", f.threads)
		}
		spec.Threads = f.threads
	}
	if err := errors.Join(p.addEnv(&spec, f.env), addMounts(&spec, f.mounts), addPorts(&spec, f.ports),
		p.addStart(&spec, f.startAt), f.queue.set(cmd, &spec, &wrong)); err != nil {
		return spec, err
	}
	if len(wrong) > 0 {
		return spec, runOptions{file: f.file != ""}.repairable(invalid(session.CodeInvalid, wrong), spec)
	}
	if spec.Type == typeBatch && len(words) > 0 {
		spec.Command = commandLine(words)
	}
	if spec.Image == "" {
		return spec, usagef("missing --image: use an image as for docker pull")
	}
	return spec, nil
}

// texts takes the flags that are passed on as they are; the server judges them
// with the rest of the spec. What is no amount is told by its field.
func (f specFlags) texts(spec *session.Spec) []session.FieldError {
	for _, pair := range []struct {
		from string
		to   *string
	}{{f.image, &spec.Image}, {f.name, &spec.Name}, {f.kind, (*string)(&spec.Type)}, {f.agent, &spec.Agent},
		{f.group, &spec.Group}} {
		if pair.from != "" {
			*pair.to = pair.from
		}
	}
	return readUnits(
		unitFlag{"timeout", f.timeout, &spec.Timeout},
		unitFlag{"resources.memory", f.memory, &spec.Resources.Memory},
		unitFlag{"resources.shm", f.shm, &spec.Resources.Shm})
}

// unitFlag is the text of a flag that is an amount or a length of time, and the
// field of the spec that it is for.
type unitFlag struct {
	field, text string
	into        encoding.TextUnmarshaler
}

// readUnits reads flags, and says what is wrong with them as the server does.
func readUnits(flags ...unitFlag) (wrong []session.FieldError) {
	for _, flag := range flags {
		if fault := session.ReadUnit(flag.field, flag.text, flag.into); fault != nil {
			wrong = append(wrong, *fault)
		}
	}
	return wrong
}

// invalid is the refusal of a spec in which fields are wrong.
func invalid(code session.Code, wrong []session.FieldError) error {
	if len(wrong) == 0 {
		return nil
	}
	refusal := *session.AsError(session.Invalid(wrong), code)
	refusal.Code = code
	return &client.Refused{Problem: refusal, Status: http.StatusUnprocessableEntity}
}

// anywhere takes an empty --on or --group as what it is: any.
func (f specFlags) anywhere(cmd *cobra.Command, spec *session.Spec) {
	if f.agent == "" && cmd.Flags().Changed("on") {
		spec.Agent = ""
	}
	if f.group == "" && cmd.Flags().Changed("group") {
		spec.Group = ""
	}
}

func (p runCommands) addEnv(spec *session.Spec, entries []string) error {
	for _, entry := range entries {
		name, value, given := strings.Cut(entry, "=")
		if name == "" {
			return usagef("invalid --env %q: use NAME=VALUE", entry)
		}
		if !given {
			if value = p.Env(name); value == "" {
				return usagef("--env %s: the variable is not set here", name)
			}
		}
		spec.Env = setEnv(spec.Env, session.EnvVar{Name: name, Value: value})
	}
	return nil
}

// setEnv replaces the variable of that name or adds it.
func setEnv(env []session.EnvVar, v session.EnvVar) []session.EnvVar {
	for i := range env {
		if env[i].Name == v.Name {
			env[i].Value = v.Value
			return env
		}
	}
	return append(env, v)
}

// addMounts adds what -v says. One that appears where one of the file's would
// takes its place.
func addMounts(spec *session.Spec, entries []string) error {
	ofFile := len(spec.Mounts)
	for _, entry := range entries {
		mount, err := parseMount(entry)
		if err != nil {
			return err
		}
		if mount.Folder == "" && spec.Agent == "" { // this computer's directory; another agent's is named in full
			if mount.Source, err = filepath.Abs(mount.Source); err != nil {
				return err
			}
		}
		same := func(other session.Mount) bool { return mountTarget(other) == mountTarget(mount) }
		if at := slices.IndexFunc(spec.Mounts[:ofFile], same); at >= 0 {
			spec.Mounts[at] = mount
			continue
		}
		spec.Mounts = append(spec.Mounts, mount)
	}
	return nil
}

// directory reports whether what is to be mounted is written as a directory of
// the machine and not as a folder.
func directory(text string) bool {
	return filepath.IsAbs(text) || strings.HasPrefix(text, "/") || text == "." || text == ".." ||
		strings.HasPrefix(text, "./") || strings.HasPrefix(text, "../") || strings.Contains(text, `\`)
}

// parseMount reads DIR[:PATH][:ro|rw] or NAME[/SUBPATH][:PATH][:ro|rw].
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

func addPorts(spec *session.Spec, entries []string) error {
	for _, entry := range entries {
		for _, text := range strings.FieldsFunc(entry, func(r rune) bool { return r == ',' || r == ' ' }) {
			ports, err := recipe.ParsePorts(text)
			if err != nil {
				return usagef("invalid --port %q: use a port such as 8080, or a range such as 9000:9003",
					text)
			}
			spec.Ports = append(spec.Ports, ports...)
		}
	}
	return nil
}

func (p runCommands) addStart(spec *session.Spec, text string) error {
	if text == "" {
		return nil
	}
	if text == "now" {
		spec.NotBefore = nil
		return nil
	}
	at, err := parseStart(text, p.Now())
	if err != nil {
		return err
	}
	spec.NotBefore = &at
	return nil
}

// parseStart reads a moment as people write one: a time of the day, today or
// tomorrow; a date with a time; RFC 3339; or how long from now.
func parseStart(text string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	for _, layout := range []string{"2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02T15:04:05",
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
	return time.Time{}, usagef("invalid --start-at %q: use 18:30, 2026-05-01 08:00, an RFC 3339 time, or +90m",
		text)
}

var plainWord = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// commandLine joins words to a line for a shell that reads them as the same
// words. One word with blanks or signs in it is a line already.
func commandLine(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = shellWord(word)
	}
	return strings.Join(quoted, " ")
}

// shellWord quotes a word for a shell where it has to be.
func shellWord(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
