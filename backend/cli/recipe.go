package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/client"
	"slipway/backend/hub"
	"slipway/backend/recipe"
	"slipway/backend/session"
)

// maxRecipe is how much of a file is read, one byte more than [recipe.Parse] accepts.
const maxRecipe = 1<<20 + 1

// readSpec reads a spec from a YAML file, or from stdin for "-".
func (p runCommands) readSpec(path string) (spec session.Spec, err error) {
	err = p.readRecipe(path, func(data []byte) (err error) {
		spec, err = recipe.Parse(data)
		return err
	})
	return spec, err
}

// readRecipe parses a YAML file, or stdin for "-". The errors of parse get the name of the file.
func (p runCommands) readRecipe(path string, parse func([]byte) error) error {
	name, from := path, p.Stdin
	if path == "-" {
		name = "stdin"
	} else {
		file, err := os.Open(path)
		if err != nil {
			return failAs(ExitUsage, session.CodeRecipeNotFound, sentence(err.Error()),
				"-f takes the path of a YAML file.")
		}
		defer file.Close()
		from = file
	}
	data, err := io.ReadAll(io.LimitReader(from, maxRecipe))
	if err != nil {
		return err
	}
	err = parse(data)
	var fault *recipe.Fault
	if errors.As(err, &fault) {
		if fault.Line > 0 {
			name = fmt.Sprintf("%s, line %d", name, fault.Line)
		}
		err = fail(session.CodeRecipeInvalid, name+": "+fault.Message, fault.Hint)
	}
	return err
}

// addSecrets sets variables that a recipe does not contain from the environment, unless a flag sets them.
func (p runCommands) addSecrets(spec *session.Spec, flags specFlags) error {
	at := slices.IndexFunc(flags, func(f *specFlag) bool { return f.name == "env" })
	var missing []string
	for i, v := range spec.Env {
		flagged := slices.ContainsFunc(flags[at].given, func(entry string) bool {
			name, _, _ := strings.Cut(entry, "=")
			return name == v.Name
		})
		if v.Value != "" || flagged || !session.SecretName(v.Name) {
			continue
		}
		if spec.Env[i].Value = p.Env(v.Name); spec.Env[i].Value == "" {
			missing = append(missing, v.Name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	verb := "has no value"
	if len(missing) > 1 {
		verb = "have no values"
	}
	return fail(session.CodeRecipeInvalid, fmt.Sprintf("%s %s: recipes keep no secrets.", strings.Join(missing, ", "),
		verb), fmt.Sprintf("Set it in the environment, or add -e %s=VALUE; -e %s= leaves it empty.", missing[0],
		missing[0]))
}

func (p runCommands) recipeCommand() *cobra.Command {
	parent := &cobra.Command{Use: "recipe", Short: "Manage recipes: sessions saved as files",
		Long: `A recipe is a YAML file that describes a session, with its image pinned by digest. Launch it
with slipway run -f, or drop it on the launcher. It never contains the values of variables
with secret-looking names: run takes them from the environment.`}
	parent.AddCommand(p.recipeExportCommand(), p.recipeCheckCommand(), p.recipeDiffCommand())
	return parent
}

func (p runCommands) recipeExportCommand() *cobra.Command {
	as := "yaml"
	cmd := &cobra.Command{Use: "export SESSION", Short: "Print the recipe of a session or recent launch",
		ValidArgsFunction: p.completeSessions(allSessions),
		Example:           "  slipway recipe export train-a > train.yaml\n  slipway recipe export train-a --as docker"}
	cmd.Flags().StringVar(&as, "as", as, "yaml, run (slipway run command) or docker (similar docker run command)")
	return runs(cmd, p.command(func(ctx context.Context, c *caller, args []string) error {
		if as != "yaml" && as != "run" && as != "docker" {
			return usagef("unknown format --as %s: use yaml, run or docker", as)
		}
		at, err := c.recipeOf(ctx, args[0])
		if err != nil {
			return err
		}
		return show(ctx, c, at, func(w io.Writer, found api.Recipe) { p.printRecipe(w, found, as) })
	}))
}

func (p runCommands) printRecipe(w io.Writer, found api.Recipe, as string) {
	if len(found.Secrets) > 0 {
		p.notice("It does not hold the values of %s.", strings.Join(found.Secrets, ", "))
	}
	if len(found.Spec.Secrets) > 0 {
		p.notice("It uses the stored secrets %s.", strings.Join(found.Spec.Secrets, ", "))
	}
	if !found.Pinned {
		p.notice("The image %s is not pinned: no agent that is reached has it.", found.Spec.Image)
	}
	if found.Passed != nil {
		p.notice("It leaves the start time out, which has passed: %s.", p.moment(found.Passed))
	}
	switch as {
	case "run":
		fmt.Fprintln(w, found.Command)
	case "docker":
		for _, lack := range found.Lacks {
			p.notice("%s", lack)
		}
		fmt.Fprintln(w, found.Docker)
	default:
		fmt.Fprint(w, found.YAML)
	}
}

// recipeOf returns the recipe of a session, or of an entry in the launch history with that name.
func (c *caller) recipeOf(ctx context.Context, ref string) (route.Route[route.None, api.Recipe], error) {
	found, err := c.find(ctx, ref)
	if err == nil {
		return route.SessionRecipe.At(string(found.ID)), nil
	}
	recents, _ := route.Recents.Ask(ctx, c) // without them, err is the reason
	for _, r := range recents {
		if r.ID == ref || r.Name == ref {
			return route.RecentRecipe.At(r.ID), nil
		}
	}
	return route.SessionRecipe, err
}

func (p runCommands) recipeCheckCommand() *cobra.Command {
	return &cobra.Command{Use: "check FILE", Short: "Check whether a recipe can be launched here",
		Long: "Check reads a recipe and asks what a launch would do. It launches nothing. What does not\nfit here " +
			"(an image, folder, agent or device that is not there) is named field by field, with the\nflags of " +
			"slipway run that mend it.",
		RunE: func(cmd *cobra.Command, args []string) error {
			spec, err := p.readSpec(args[0])
			if err != nil {
				return err
			}
			return p.command(func(ctx context.Context, c *caller, _ []string) error {
				return p.checkRecipe(ctx, c, spec)
			})(cmd, args)
		}}
}

func (p runCommands) checkRecipe(ctx context.Context, c *caller, spec session.Spec) error {
	preview, err := route.Preview.Body(spec).Ask(ctx, c)
	if err != nil {
		return err
	}
	if len(preview.Errors) > 0 {
		first := preview.Errors[0]
		refusal := session.Error{Code: session.CodeInvalid, Message: first.Message, Hint: first.Hint,
			Fields: preview.Errors}
		return withRepairs(&client.Refused{Problem: refusal, Status: http.StatusUnprocessableEntity}, spec)
	}
	return p.print(preview, func(w io.Writer) {
		for _, warning := range preview.Warnings {
			p.notice("%s: %s", warning.Field, warning.Message)
		}
		switch {
		case preview.Wait != nil:
			reader := p.reader(preview.Agent)
			fmt.Fprintf(w, "It would wait on %s: %s\nStart: %s\n", preview.Agent, reader.Wait(*preview.Wait),
				reader.Estimate(*preview.Wait))
		case preview.Image == nil:
			fmt.Fprintf(w, "It would pull its image and start on %s.\n", preview.Agent)
		default:
			fmt.Fprintf(w, "It would start at once on %s.\n", preview.Agent)
		}
	})
}

func (p runCommands) recipeDiffCommand() *cobra.Command {
	all := false
	cmd := &cobra.Command{Use: "diff FILE FILE", Short: "Compare two recipes field by field",
		Long: "Prints the fields that differ. Exits with 1 if any do, as diff does."}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "also print identical fields")
	return runs(cmd, func(_ *cobra.Command, args []string) error {
		left, err := p.readSpec(args[0])
		if err != nil {
			return err
		}
		right, err := p.readSpec(args[1])
		if err != nil {
			return err
		}
		return p.printDifferences(recipe.Compare(left, right), all, args)
	})
}

func (p runCommands) printDifferences(fields []recipe.Field, all bool, names []string) error {
	differ := slices.ContainsFunc(fields, func(f recipe.Field) bool { return !f.Same })
	if !all {
		fields = slices.DeleteFunc(fields, func(f recipe.Field) bool { return f.Same })
	}
	return failedIf(differ, p.print(fields, func(w io.Writer) {
		rows := [][]string{{"FIELD", names[0], names[1]}}
		for _, f := range fields {
			rows = append(rows, []string{f.Field, oneLine(f.Left), oneLine(f.Right)})
		}
		if len(rows) > 1 {
			columns(w, rows)
		}
	}))
}

// oneLine formats several lines for a table.
func oneLine(text string) string { return strings.ReplaceAll(strings.TrimSpace(text), "\n", " ⏎ ") }

func (p runCommands) presetCommand() *cobra.Command {
	parent := &cobra.Command{Use: "preset", Short: "Manage resource presets"}
	list := asks(p.program, &cobra.Command{Use: "ls", Aliases: []string{"list"}, Short: "List presets"}, "",
		route.Presets, presetTable)
	rename := changes(p.program, &cobra.Command{Use: "rename PRESET NAME", Short: "Rename one of your presets"},
		route.PresetUpdate, func(name string) hub.PresetUpdate { return hub.PresetUpdate{Name: &name} }, presetName)
	remove := &cobra.Command{Use: "rm PRESET", Short: "Delete one of your presets"}
	remove.RunE = p.about(func(ctx context.Context, c *caller, args []string) error {
		return route.PresetDelete.At(args[0]).Call(ctx, c, nil)
	})
	parent.AddCommand(list, p.presetSaveCommand(), rename, remove)
	return parent
}

func (p runCommands) presetSaveCommand() *cobra.Command {
	flags := specFlags{
		fieldFlag("int", "cpu", "resources.cpu", "whole CPUs (default 1)"),
		fieldFlag("string", "mem", "resources.memory", "memory with m, g or t (default 1g)"),
		fieldFlag("string", "shm", "resources.shm", "shared memory (default automatic)"),
		fieldFlag("string", "gpu", "accelerator", "devices, as in slipway run"),
	}
	cmd := &cobra.Command{Use: "save NAME [--cpu N] [--mem SIZE] [--shm SIZE] [--gpu WHAT]", Short: "Save a preset"}
	flags.add(cmd)
	return runs(cmd, p.command(func(ctx context.Context, c *caller, args []string) error {
		var spec session.Spec
		wrong, err := flags.set(&spec)
		if err == nil {
			err = invalid(session.CodeSettingsInvalid, wrong)
		}
		if err != nil {
			return err
		}
		request := hub.PresetContent{Name: args[0], Resources: spec.Resources, Accelerator: spec.Accelerator}
		return show(ctx, c, route.PresetCreate.Body(request), presetName)
	}))
}

func presetName(w io.Writer, preset hub.Preset) { fmt.Fprintln(w, preset.Name) }

func presetTable(w io.Writer, presets []hub.Preset) {
	table(w, "NAME, CPU, MEMORY, SHARED,GPU,KIND", presets, func(preset hub.Preset) []string {
		shared, devices, kind := "automatic", acceleratorText(preset.Accelerator), "your own"
		if preset.Resources.Shm != 0 {
			shared = size(preset.Resources.Shm)
		}
		if preset.Builtin {
			kind = "built in"
		}
		return []string{preset.Name, strconv.Itoa(preset.Resources.CPU), size(preset.Resources.Memory), shared,
			devices, kind}
	})
}

// findPreset returns a preset by its id or its name, ignoring case.
func (c *caller) findPreset(ctx context.Context, ref string) (hub.Preset, error) {
	presets, err := route.Presets.Ask(ctx, c)
	if err != nil {
		return hub.Preset{}, err
	}
	named := func(preset hub.Preset) bool { return preset.ID == ref || strings.EqualFold(preset.Name, ref) }
	if i := slices.IndexFunc(presets, named); i >= 0 {
		return presets[i], nil
	}
	return hub.Preset{}, fail(session.CodeRecipeNotFound, fmt.Sprintf("There is no preset %q.", ref),
		"slipway preset ls lists all of them.")
}

// leaveOutMount removes the mount that --no-volume names. It fails if the file has no such mount.
func leaveOutMount(spec *session.Spec, name string) error {
	mounts := len(spec.Mounts)
	spec.Mounts = slices.DeleteFunc(spec.Mounts, func(m session.Mount) bool {
		return m.Folder == name || m.Source == name || session.MountTarget(m) == name
	})
	if len(spec.Mounts) == mounts {
		return usagef("--no-volume %s: the file does not mount this folder or directory", name)
	}
	return nil
}

// leaveOutAfter removes the session that --no-after names. It fails if the file has no such session.
func leaveOutAfter(spec *session.Spec, name string) error {
	at := slices.Index(spec.After, name)
	if at < 0 {
		return usagef("--no-after %s: the file does not wait for this session", name)
	}
	spec.After = slices.Delete(spec.After, at, at+1)
	return nil
}

// createMissing creates the missing folders that a spec mounts, on the agent where it would start. It does nothing if
// there is another error, which the launch then reports.
func (p runCommands) createMissing(ctx context.Context, c *caller, spec session.Spec) error {
	preview, err := route.Preview.Body(spec).Ask(ctx, c)
	if err != nil {
		return err
	}
	var names []string
	for _, e := range preview.Errors {
		i, part := mountField(e.Field)
		if part != "folder" || i >= len(spec.Mounts) || e.Kind != session.KindNotFound {
			return nil
		}
		if name := spec.Mounts[i].Folder; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		request := api.FolderRequest{FolderRequest: session.FolderRequest{Name: name}, Agent: preview.Agent}
		folder, err := route.FolderCreate.Body(request).Ask(ctx, c)
		if err != nil {
			return err
		}
		p.notice("The folder %s was created on %s.", folder.Name, folder.Agent)
	}
	return nil
}

// mountField parses mounts[1].folder as 1 and folder; part is "" for other fields.
func mountField(field string) (i int, part string) {
	rest, ok := strings.CutPrefix(field, "mounts[")
	number, part, found := strings.Cut(rest, "].")
	i, err := strconv.Atoi(number)
	if !ok || !found || err != nil || i < 0 {
		return 0, ""
	}
	return i, part
}

// withRepairs adds to each field of a refusal the flags that fix it, so that the file need not be changed.
func withRepairs(err error, spec session.Spec) error {
	var refused *client.Refused
	if !errors.As(err, &refused) || len(refused.Problem.Fields) == 0 {
		return err
	}
	fixable, fields := *refused, slices.Clone(refused.Problem.Fields)
	for i, e := range fields {
		if flags := repairOf(e.Field, spec); flags != "" {
			fields[i].Hint = strings.TrimSpace(e.Hint + " Or " + flags + ".")
		}
	}
	if fixable.Problem.Fields = fields; len(fields) == 1 {
		fixable.Problem.Hint = fields[0].Hint
	}
	return &fixable
}

// repairOf returns the flags that fix a field.
func repairOf(field string, spec session.Spec) string {
	if i, part := mountField(field); part != "" && i < len(spec.Mounts) {
		return repairOfMount(spec.Mounts[i], part)
	}
	if number, ok := strings.CutPrefix(field, "after["); ok {
		if i, err := strconv.Atoi(strings.TrimSuffix(number, "]")); err == nil && i >= 0 && i < len(spec.After) {
			return "add --no-after " + session.ShellWord(spec.After[i])
		}
	}
	return map[string]string{
		"agent":            "add --on NAME, or --on= for any agent",
		"group":            "add --group NAME, or --group= for any",
		"image":            "add --image NAME",
		"accelerator":      "add --gpu with another amount, or --gpu none",
		"notBefore":        "add --at now",
		"name":             "add --name NAME",
		"resources.cpu":    "add --cpu with another number",
		"resources.memory": "add --mem with another amount",
	}[field]
}

func repairOfMount(m session.Mount, part string) string {
	if part == "target" {
		return ""
	}
	create := ""
	if part == "folder" {
		create = "--create-folders, "
	}
	return fmt.Sprintf("add %s-v OTHER:%s, or --no-volume %s", create, session.ShellWord(session.MountTarget(m)),
		session.ShellWord(cmp.Or(m.Folder, m.Source)))
}
