package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/recipe"
	"slipway/backend/session"
)

// addServiceFlags adds the flags for what a service has and a session lacks.
func addServiceFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Int("port", 0, "port on which the server listens")
	f.StringSlice("served-name", nil, "model name for clients (default: name of the service); repeatable")
	f.String("health", "", "path of the health check")
	f.String("initial-delay", "", "time until the first healthy answer, such as 30m")
	f.Int("replicas", 1, "number of sessions that serve it")
	f.String("sleep", "", "end the replicas after this long without a request; the next request starts one; 0: never")
	f.Bool("public", false, "answer without a token")
	f.Bool("retry", false, "repeat a request that is no stream when its replica ends without an answer")
}

// setServiceFlags puts those flags of a command that were given into a request, which has a Serving.
func setServiceFlags(cmd *cobra.Command, req *session.DeployRequest) (err error) {
	serving := *req.Spec.Serving
	req.Spec.Serving = &serving
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		f := cmd.Flags()
		switch flag.Name { // of their types, so that no value is missing
		case "port":
			serving.Port, _ = f.GetInt(flag.Name)
		case "served-name":
			serving.Models, _ = f.GetStringSlice(flag.Name)
		case "health":
			serving.Health.Path = flag.Value.String()
		case "replicas":
			req.Replicas, _ = f.GetInt(flag.Name)
		case "public":
			req.Public, _ = f.GetBool(flag.Name)
		case "retry":
			req.Retry, _ = f.GetBool(flag.Name)
		case "sleep", "initial-delay":
			text := flag.Value.String()
			length, wrong := durationOf("--"+flag.Name, ifSo(text != "0", text))
			if err = cmp.Or(err, wrong); flag.Name == "sleep" {
				req.Sleep = length
			} else {
				serving.Health.InitialDelay = length
			}
		}
	})
	return err
}

// waitFlags are the flags of commands that can wait for a service.
type waitFlags struct {
	wait    bool
	timeout time.Duration
}

func (w *waitFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&w.wait, "wait", false, "wait until the service answers with this revision, or keeps another one")
	f.DurationVar(&w.timeout, "wait-timeout", 0, "stop waiting after this long, such as 10m; the service continues")
}

// readService reads the recipe of a service from a YAML file, or from stdin for "-".
func (p serviceCommands) readService(path string, flags specFlags) (req session.DeployRequest, err error) {
	var read recipe.Service
	err = runCommands(p).readRecipe(path, func(data []byte) (err error) {
		read, err = recipe.ParseService(data)
		return err
	})
	if err == nil {
		err = runCommands(p).addSecrets(&read.Spec, flags)
	}
	return session.DeployRequest{Name: read.Name, ServiceWish: read.ServiceWish, Spec: read.Spec}, err
}

func (p serviceCommands) updateCommand() *cobra.Command {
	flags := slices.DeleteFunc(runCommands(p).runFlags(),
		func(f *specFlag) bool { return !slices.Contains(createFlags, f.name) || f.name == "on" })
	var on string
	var from int
	var wait waitFlags
	cmd := &cobra.Command{Use: "update SERVICE [-- COMMAND…]", Short: "Change some of what a service runs",
		Long: `Update deploys a new revision that differs from the one that the service has only in the
flags and the command that you give. Replicas change to it one after the other. If it does
not become healthy, the service keeps the old revision, and update --wait exits with 1.

--replicas, --sleep, --public and --retry need no new revision.`,
		Example: `  slipway service update llama --image llama-server:b5200 --wait
  slipway service update llama -e LLAMA_ARG_CTX_SIZE=8192 --mem 16g`}
	flags.add(cmd)
	addServiceFlags(cmd)
	wait.add(cmd)
	p.onFlag(cmd, &on, onService)
	cmd.Flags().IntVar(&from, "from", 0, "revision that the new one starts from (default: the one that it has)")
	asInDocker(cmd)
	return runs(cmd, p.command(func(ctx context.Context, c *caller, args []string) error {
		s, err := route.Service.At(args[0]).With("agent", on).Ask(ctx, c)
		if err != nil {
			return err
		}
		base, err := baseOf(s, from)
		if err != nil {
			return err
		}
		req := session.DeployRequest{Name: s.Name, Owner: s.Owner, ServiceWish: s.ServiceWish, Spec: base.Spec}
		req.Spec.Env, req.Spec.Mounts = slices.Clone(base.Spec.Env), slices.Clone(base.Spec.Mounts)
		wrong, err := flags.set(&req.Spec)
		if err == nil {
			err = invalid(session.CodeInvalid, wrong)
		}
		if err == nil {
			err = setServiceFlags(cmd, &req)
		}
		if err != nil {
			return err
		}
		if cmd.ArgsLenAtDash() >= 0 {
			req.Spec.Serving.Command = args[1:]
		}
		p.sayChanges(ctx, c, s, base, req.Spec)
		return p.deploy(ctx, c, req, wait)
	}))
}

// baseOf returns the revision that a new one starts from; 0: the one that the service has or changes to. It has the
// agent of the service.
func baseOf(s api.Service, number int) (session.Revision, error) {
	number = cmp.Or(number, s.Revision)
	for _, r := range s.Revisions {
		if r.Number == number && r.Spec.Serving != nil {
			r.Spec.Agent = s.Agent
			return r, nil
		}
	}
	return session.Revision{}, failAs(ExitUsage, session.CodeUsage,
		fmt.Sprintf("%s has no revision %d.", s.Name, number), "slipway service show "+s.Name+" lists them.")
}

// sayChanges prints what differs from a revision, and whether the replicas have room beside the running ones.
func (p serviceCommands) sayChanges(ctx context.Context, c *caller, s api.Service, base session.Revision,
	spec session.Spec) {
	if p.output != outputTable {
		return
	}
	differs := false
	for _, f := range recipe.Compare(base.Spec, spec) {
		if !f.Same {
			if !differs && base.Number != s.Revisions[0].Number {
				p.notice("It starts from revision %d.", base.Number)
			}
			differs = true
			p.notice("%s: %s → %s", f.Field, orNone(f.Left), orNone(f.Right))
		}
	}
	if !differs {
		p.notice("Nothing differs from revision %d.", base.Number)
		return
	}
	spec.Env = nil // hidden values are refused, and take no room
	preview, err := route.Preview.Body(spec).Ask(ctx, c)
	if err == nil && len(preview.Errors) == 0 && preview.Wait != nil && len(s.Live) > 0 {
		p.notice("A new replica has no room beside the old ones, so one of them ends first, and requests may wait. %s",
			p.reader(s.Agent).Wait(*preview.Wait))
	}
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return oneLine(text)
}

// deploy deploys a service, waits for it if the flags say so, and prints it.
func (p serviceCommands) deploy(ctx context.Context, c *caller, req session.DeployRequest, flags waitFlags) error {
	made, err := route.ServiceDeploy.Body(req).Ask(ctx, c)
	if err != nil {
		return err
	}
	if flags.wait {
		if made, err = p.awaitService(ctx, c, made, flags.timeout); err != nil {
			return err
		}
	}
	return p.print(made, func(w io.Writer) {
		fmt.Fprintf(w, "%s is on %s, revision %d.\n", made.Name, made.Agent, made.Revision)
	})
}

// watchEvery is how often a service is asked for while its progress is shown.
const watchEvery = 500 * time.Millisecond

// awaitService shows the progress of a service until it answers with the revision that it has been given. It fails if
// the service keeps another one or gives up.
func (p serviceCommands) awaitService(ctx context.Context, c *caller, s api.Service,
	timeout time.Duration) (api.Service, error) {
	ctx, cancel := limited(ctx, timeout, "The deployment of "+s.Name)
	defer cancel()
	progress := progress{statusLine: p.newStatusLine(), program: p.program}
	defer progress.clear()
	for want := s.Revision; ; {
		progress.say(strings.TrimSpace(s.Name + ": " + string(s.State) + ". " + s.Why))
		if done, err := settled(s, want); done {
			return s, err
		}
		select {
		case <-time.After(watchEvery):
		case <-ctx.Done():
			return s, context.Cause(ctx)
		}
		var err error
		s, err = askAgain(ctx, c, route.Service.At(s.Name).With("agent", s.Agent))
		if ctx.Err() != nil {
			return s, context.Cause(ctx)
		} else if err != nil {
			return s, err
		}
	}
}

// settled reports whether a service is done with a revision, and whether that failed. The state of an answer may be
// older than its revision, so its replicas and events decide.
func settled(s api.Service, revision int) (done bool, err error) {
	failed := func(format string, values ...any) (bool, error) {
		return true, fail(session.CodeRunFailed, fmt.Sprintf(format, values...), "slipway service logs "+s.Name+
			" and slipway service show "+s.Name+" show why.")
	}
	began := slices.IndexFunc(s.Events, func(e session.ServiceEvent) bool {
		return e.Kind == session.EventUpdate || e.Kind == session.EventCreated || e.Kind == session.EventStarted
	})
	gaveUp := slices.ContainsFunc(s.Events[:max(0, began)],
		func(e session.ServiceEvent) bool { return e.Kind == session.EventGaveUp })
	switch {
	case s.Revision != revision:
		return failed("%s keeps revision %d. %s", s.Name, s.Revision, s.Why)
	case s.State == session.ServiceFailed && (gaveUp || began < 0):
		return failed("%s failed. %s", s.Name, s.Why)
	case s.Replicas == 0, s.State == session.ServiceAsleep:
		return true, nil
	}
	return s.State == session.ServiceReady && !slices.ContainsFunc(s.Live,
		func(r session.Replica) bool { return r.Revision != revision }), nil
}
