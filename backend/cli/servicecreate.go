package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"slipway/backend/api/route"
	"slipway/backend/runtimes"
	"slipway/backend/session"
)

// createFlags are those flags of run that replicas of a service have, too.
var createFlags = strings.Fields("image on cpu mem shm gpu uncooperative threads env secret volume label")

// served is what the flags of create say about where the server comes from.
type served struct{ runtime, definition, model, file string }

func (p serviceCommands) createCommand() *cobra.Command {
	flags := slices.DeleteFunc(runCommands(p).runFlags(),
		func(f *specFlag) bool { return !slices.Contains(createFlags, f.name) })
	var server served
	var scaling scalingFlags
	var wait waitFlags
	var file string
	cmd := &cobra.Command{Use: "create [NAME] [-f FILE] [-- COMMAND…]",
		Short: "Create a service, or deploy a new revision of it",
		Long: `Starts a program without a shell: that of a model server (--runtime), what a folder's
model-definition.yaml says (--definition), the command after --, or else what the image starts
by itself. The service answers as soon as its health check succeeds. If a service of this name
exists, it changes to the new revision without losing a request, or keeps the old one if the
new one does not become healthy. See slipway service update to change only some of it, and
slipway service scale --help for --rule.

Unless a runtime or a definition says so, the server listens on port 8000, its health check is
/health, and it has 1m until its first healthy answer.

` + runtimeHelp(),
		Example: `  slipway service create llama --runtime llamacpp -v models --model-file tiny.gguf
  slipway service create qwen --runtime vllm --model Qwen/Qwen2.5-7B-Instruct --gpu vram:20g
  slipway service create chat --image my-server:1 --definition models/chat
  slipway service create own --image my-server:1 --port 9000 -- /app/serve --port 9000
  slipway service create -f llama.yaml --replicas 2`,
	}
	flags.add(cmd)
	server.flags(cmd)
	addServiceFlags(cmd)
	scaling.add(cmd)
	wait.add(cmd)
	cmd.Flags().StringVarP(&file, "file", "f", "", "read the service from a YAML file, - for stdin; flags override it")
	asInDocker(cmd)
	return runs(cmd, p.command(func(ctx context.Context, c *caller, args []string) (err error) {
		req := session.DeployRequest{ServiceWish: session.ServiceWish{Replicas: 1},
			Spec: session.Spec{Access: session.Access{Serving: &session.Serving{}}}}
		if file != "" {
			req, err = p.readService(file, flags)
		}
		if len(args) > 0 && cmd.ArgsLenAtDash() != 0 {
			req.Name, args = args[0], args[1:]
		}
		if err == nil && req.Name == "" {
			err = usagef("missing argument: NAME")
		}
		if err != nil {
			return err
		}
		wrong, err := flags.set(&req.Spec)
		if err == nil {
			err = invalid(session.CodeInvalid, wrong)
		}
		if err == nil {
			err = setServiceFlags(cmd, &req)
		}
		if err == nil {
			err = scaling.set(cmd, &req.ServiceWish)
		}
		if err == nil && !cmd.Flags().Changed("on") {
			err = runCommands(p).onDefaultMachine(&req.Spec)
		}
		if req.Spec.Type = session.Inference; len(args) > 0 {
			req.Spec.Serving.Command = args
		}
		if err == nil {
			err = server.fill(ctx, c, &req.Spec, req.Name)
		}
		if err != nil {
			return err
		}
		return p.deploy(ctx, c, req, wait)
	}))
}

func (s *served) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.runtime, "runtime", "", "model server that fills in image, command, port and health check")
	f.StringVar(&s.model, "model", "", "model that the server downloads, such as org/name (with --runtime)")
	f.StringVar(&s.file, "model-file", "", "path of the model in the folder of the first -v (with --runtime)")
	f.StringVar(&s.definition, "definition", "",
		"FOLDER[/PATH] whose model-definition.yaml says how to serve it; mounted at "+runtimes.ModelTarget)
}

// runtimeHelp lists the runtimes, for the help.
func runtimeHelp() string {
	var text strings.Builder
	text.WriteString("Runtimes:")
	for _, r := range runtimes.All() {
		if r.Name == "" {
			continue // it is a command without --runtime
		}
		from := map[bool]string{true: "the image has its model", false: ""}[len(r.Sources) == 0]
		if slices.Contains(r.Sources, runtimes.ByName) {
			from = "--model or -v FOLDER"
		} else if len(r.Sources) > 0 {
			from = "-v FOLDER"
		}
		fmt.Fprintf(&text, "\n  %-9s %-11s %s", r.ID, r.Name, from)
	}
	return text.String()
}

// fill fills in the server of a spec, and what its runtime or definition brings.
func (s *served) fill(ctx context.Context, c *caller, spec *session.Spec, name string) error {
	id := s.runtime
	if s.definition != "" {
		if s.runtime != "" {
			return usagef("use either --runtime or --definition")
		}
		if err := s.define(ctx, c, spec); err != nil {
			return err
		}
		id = "custom"
	}
	if id == "" {
		if s.model != "" || s.file != "" {
			return usagef("--model and --model-file need --runtime; --served-name sets the name for clients")
		}
		if spec.Serving.Port == 0 {
			spec.Serving.Port = 8000
		}
		return nil
	}
	runtime, found := runtimes.Find(id)
	if !found {
		ids := []string{}
		for _, r := range runtimes.All() {
			ids = append(ids, r.ID)
		}
		return usagef("unknown runtime %q: use %s", id, strings.Join(ids, ", "))
	}
	model, err := s.source(runtime, spec)
	if err == nil {
		runtime.Fill(spec, name, model)
	}
	return err
}

// define reads the model-definition.yaml and mounts its folder. Flags win.
func (s *served) define(ctx context.Context, c *caller, spec *session.Spec) error {
	folder, path, _ := strings.Cut(s.definition, "/")
	d, err := route.ServiceDefinition.With("folder", folder).With("path", path).With("agent", spec.Agent).Ask(ctx, c)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(spec.Mounts, func(m session.Mount) bool { return m.Folder == folder }) {
		spec.Mounts = append(spec.Mounts, session.Mount{Folder: folder, Target: runtimes.ModelTarget, ReadOnly: true})
	}
	own := *spec.Serving
	serving := d.Serving
	spec.Serving = &serving
	if len(own.Command) > 0 {
		serving.Command = own.Command
	}
	serving.Port = cmp.Or(own.Port, serving.Port)
	if len(own.Models) > 0 {
		serving.Models = own.Models
	}
	serving.Health.Path = cmp.Or(own.Health.Path, serving.Health.Path)
	serving.Health.InitialDelay = cmp.Or(own.Health.InitialDelay, serving.Health.InitialDelay)
	return nil
}

// source is where a runtime finds its model.
func (s *served) source(r runtimes.Runtime, spec *session.Spec) (runtimes.Model, error) {
	folder := slices.ContainsFunc(spec.Mounts, func(m session.Mount) bool { return m.Target == "" })
	switch {
	case s.model != "" && s.file != "":
		return runtimes.Model{}, usagef("use either --model or --model-file")
	case s.model != "" && !slices.Contains(r.Sources, runtimes.ByName):
		return runtimes.Model{}, usagef("--runtime %s does not take --model: mount a folder with -v", r.ID)
	case s.model != "":
		return runtimes.Model{Source: runtimes.ByName, Name: s.model}, nil
	case s.file != "" && !r.Path:
		return runtimes.Model{}, usagef("--runtime %s does not take --model-file", r.ID)
	case r.Path && !folder && len(spec.Serving.Command) == 0 && slices.Contains(r.Sources, runtimes.ByName):
		return runtimes.Model{}, usagef("--runtime %s needs --model NAME, or -v FOLDER without a path in the session",
			r.ID)
	}
	return runtimes.Model{Source: runtimes.InFolder, Name: s.file}, nil
}
