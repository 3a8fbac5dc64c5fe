package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"slipway/backend/api/route"
	"slipway/backend/runtimes"
	"slipway/backend/session"
)

// createFlags are those flags of run that replicas of a service have, too.
var createFlags = strings.Fields("image on cpu mem shm gpu uncooperative threads env secret volume label")

// served is what the flags of create say about the server.
type served struct {
	session.Serving
	runtime, definition string
	model, file         string
	delay               string
}

func (p serviceCommands) createCommand() *cobra.Command {
	flags := slices.DeleteFunc(runCommands(p).runFlags(),
		func(f *specFlag) bool { return !slices.Contains(createFlags, f.name) })
	req := session.DeployRequest{Spec: session.Spec{Type: session.Inference}}
	var server served
	var sleep string
	var scaling scalingFlags
	cmd := &cobra.Command{Use: "create NAME [-- COMMAND…]", Short: "Create a service, or deploy a new revision of it",
		Long: `Starts a program without a shell: that of a model server (--runtime), what a folder's
model-definition.yaml says (--definition), the command after --, or else what the image starts
by itself. The service answers as soon as its health check succeeds. If a service of this name
exists, it changes to the new revision without losing a request, or keeps the old one if the
new one does not become healthy. For --rule see slipway service scale --help.

` + runtimeHelp(),
		Example: `  slipway service create llama --runtime llamacpp -v models --model-file tiny.gguf
  slipway service create qwen --runtime vllm --model Qwen/Qwen2.5-7B-Instruct --gpu vram:20g
  slipway service create chat --image my-server:1 --definition models/chat
  slipway service create own --image my-server:1 --port 9000 -- /app/serve --port 9000`,
	}
	flags.add(cmd)
	server.flags(cmd)
	f := cmd.Flags()
	f.IntVar(&req.Replicas, "replicas", 1, "number of sessions that serve it")
	f.StringVar(&sleep, "sleep", "", "end the replicas after this long without a request; the next request starts one")
	f.BoolVar(&req.Public, "public", false, "answer without a token")
	f.BoolVar(&req.Retry, "retry", false, "repeat a request that is no stream when its replica ends without an answer")
	scaling.add(cmd)
	asInDocker(cmd)
	return runs(cmd, p.command(func(ctx context.Context, c *caller, args []string) (err error) {
		req.Name, server.Command = args[0], args[1:]
		if err = scaling.set(cmd, &req.ServiceWish); err != nil {
			return err
		}
		if req.Sleep, err = durationOf("--sleep", sleep); err != nil {
			return err
		}
		if server.Health.InitialDelay, err = durationOf("--initial-delay", server.delay); err != nil {
			return err
		}
		wrong, err := flags.set(&req.Spec)
		if err == nil {
			err = invalid(session.CodeInvalid, wrong)
		}
		if err == nil && !cmd.Flags().Changed("on") {
			err = runCommands(p).onDefaultMachine(&req.Spec)
		}
		if err == nil {
			err = server.fill(ctx, c, &req.Spec, req.Name)
		}
		if err != nil {
			return err
		}
		made, err := route.ServiceDeploy.Body(req).Ask(ctx, c)
		if err != nil {
			return err
		}
		return p.print(made, func(w io.Writer) {
			fmt.Fprintf(w, "%s is on %s, revision %d.\n", made.Name, made.Agent, made.Revision)
		})
	}))
}

func (s *served) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.runtime, "runtime", "", "model server that fills in image, command, port and health check")
	f.StringVar(&s.model, "model", "", "model that the server downloads, such as org/name (with --runtime)")
	f.StringVar(&s.file, "model-file", "", "path of the model in the folder of the first -v (with --runtime)")
	f.StringVar(&s.definition, "definition", "",
		"FOLDER[/PATH] whose model-definition.yaml says how to serve it; mounted at "+runtimes.ModelTarget)
	f.IntVar(&s.Port, "port", 0, "port on which the server listens (default: that of the runtime, else 8000)")
	f.StringSliceVar(&s.Models, "served-name", nil, "model name for clients (default: NAME); repeatable")
	f.StringVar(&s.Health.Path, "health", "", "path of the health check (default: that of the runtime, else /health)")
	f.StringVar(&s.delay, "initial-delay", "",
		"time until the first healthy answer, such as 30m (default: that of the runtime, else 1m)")
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
	spec.Serving = &s.Serving
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
		if s.Port == 0 {
			s.Port = 8000
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
	own := s.Serving
	s.Serving = d.Serving
	if len(own.Command) > 0 {
		s.Command = own.Command
	}
	if own.Port != 0 {
		s.Port = own.Port
	}
	if len(own.Models) > 0 {
		s.Models = own.Models
	}
	if own.Health.Path != "" {
		s.Health.Path = own.Health.Path
	}
	if own.Health.InitialDelay != 0 {
		s.Health.InitialDelay = own.Health.InitialDelay
	}
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
	case r.Path && !folder && len(s.Command) == 0 && slices.Contains(r.Sources, runtimes.ByName):
		return runtimes.Model{}, usagef("--runtime %s needs --model NAME, or -v FOLDER without a path in the session",
			r.ID)
	}
	return runtimes.Model{Source: runtimes.InFolder, Name: s.file}, nil
}
