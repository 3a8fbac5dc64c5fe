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

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/recipe"
	"slipway/backend/session"
)

// serviceFlags are the flags of create and update for what sessions lack.
type serviceFlags struct {
	serving      session.Serving
	wish         session.ServiceWish
	sleep, delay string
	wait         bool
	timeout      time.Duration
}

func (s *serviceFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.IntVar(&s.serving.Port, "port", 8000, "port on which the server listens")
	f.StringSliceVar(&s.serving.Models, "model", nil,
		"name under which clients ask for it (default: name of the service); repeatable")
	f.StringVar(&s.serving.Health.Path, "health", "", "path of the health check (default /health)")
	f.StringVar(&s.delay, "initial-delay", "", "time until the first healthy answer, such as 30m (default 1m)")
	f.IntVar(&s.wish.Replicas, "replicas", 1, "number of sessions that serve it")
	f.StringVar(&s.sleep, "sleep", "",
		"end the replicas after this long without a request; the next request starts one; 0: never")
	f.BoolVar(&s.wish.Public, "public", false, "answer without a token")
	f.BoolVar(&s.wish.Retry, "retry", false,
		"repeat a request that is no stream when its replica ends without an answer")
	f.BoolVar(&s.wait, "wait", false, "wait until the service answers with this revision, or keeps another one")
	f.DurationVar(&s.timeout, "wait-timeout", 0, "stop waiting after this long, such as 10m; the service continues")
}

// set puts the flags that were given into a request, which has a Serving.
func (s *serviceFlags) set(cmd *cobra.Command, req *session.DeployRequest) (err error) {
	serving := *req.Spec.Serving
	req.Spec.Serving = &serving
	for name, put := range map[string]func(){
		"port":     func() { serving.Port = s.serving.Port },
		"model":    func() { serving.Models = s.serving.Models },
		"health":   func() { serving.Health.Path = s.serving.Health.Path },
		"replicas": func() { req.Replicas = s.wish.Replicas },
		"public":   func() { req.Public = s.wish.Public },
		"retry":    func() { req.Retry = s.wish.Retry },
	} {
		if cmd.Flags().Changed(name) {
			put()
		}
	}
	if cmd.Flags().Changed("sleep") {
		if req.Sleep, err = durationOf("--sleep", ifSo(s.sleep != "0", s.sleep)); err != nil {
			return err
		}
	}
	if cmd.Flags().Changed("initial-delay") {
		serving.Health.InitialDelay, err = durationOf("--initial-delay", s.delay)
	}
	return err
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
	var more serviceFlags
	cmd := &cobra.Command{Use: "update SERVICE [-- COMMAND…]", Short: "Change some of what a service runs",
		Long: `Update deploys a new revision that differs from the one that the service has only in the
flags and the command that you give. Replicas change to it one after the other. If it does
not become healthy, the service keeps the old revision, and update --wait exits with 1.

--replicas, --sleep, --public and --retry need no new revision.`,
		Example: `  slipway service update llama --image llama-server:b5200 --wait
  slipway service update llama -e LLAMA_ARG_CTX_SIZE=8192 --mem 16g`}
	flags.add(cmd)
	more.add(cmd)
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
			err = more.set(cmd, &req)
		}
		if err != nil {
			return err
		}
		if cmd.ArgsLenAtDash() >= 0 {
			req.Spec.Serving.Command = args[1:]
		}
		p.sayChanges(ctx, c, s, base, req.Spec)
		return p.deploy(ctx, c, req, more)
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
func (p serviceCommands) deploy(ctx context.Context, c *caller, req session.DeployRequest, flags serviceFlags) error {
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
		if s, err = askAgain(ctx, c, route.Service.At(s.Name).With("agent", s.Agent)); err != nil {
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
