package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/session"
)

func (p serviceCommands) serviceCommand() *cobra.Command {
	parent := &cobra.Command{Use: "service", Short: "Serve models behind an OpenAI-compatible endpoint",
		Long: `A service keeps replicas of a model server running: each is a session with its own
resources. Clients use one address, which slipway service ls shows, and a token. A service
continues to run on its machine when this computer is off.`}
	parent.AddCommand(p.createCommand(), p.listCommand(), p.scaleCommand(), p.rollbackCommand(), p.tokenCommand(),
		p.chatCommand(), p.removeCommand())
	return parent
}

// createFlags are those flags of run that replicas of a service have, too.
var createFlags = strings.Fields("image on cpu mem shm gpu uncooperative threads env secret volume label")

func (p serviceCommands) createCommand() *cobra.Command {
	flags := slices.DeleteFunc(runCommands(p).runFlags(),
		func(f *specFlag) bool { return !slices.Contains(createFlags, f.name) })
	req := session.DeployRequest{Spec: session.Spec{Type: session.Inference}}
	var serving session.Serving
	var sleep, delay string
	var scaling scalingFlags
	cmd := &cobra.Command{Use: "create NAME --image IMAGE [-- COMMAND…]",
		Short: "Create a service, or deploy a new revision of it",
		Long: `Starts the program in the image without a shell, or what the image starts by itself. The
service answers as soon as its health check succeeds. If a service of this name exists, it
changes to the new revision without losing a request, or keeps the old one if the new one
does not become healthy. For --rule see slipway service scale --help.`,
		Example: `  slipway service create llama --image llama-server --port 8000 -v models \
    -- /app/llama-server --model models/tiny.gguf --port 8000`,
	}
	flags.add(cmd)
	f := cmd.Flags()
	f.IntVar(&serving.Port, "port", 8000, "port on which the server listens")
	f.StringSliceVar(&serving.Models, "model", nil, "name under which clients ask for it (default: NAME); repeatable")
	f.StringVar(&serving.Health.Path, "health", "", "path of the health check (default /health)")
	f.StringVar(&delay, "initial-delay", "", "time until the first healthy answer, such as 30m (default 1m)")
	f.IntVar(&req.Replicas, "replicas", 1, "number of sessions that serve it")
	f.StringVar(&sleep, "sleep", "", "end the replicas after this long without a request; the next request starts one")
	f.BoolVar(&req.Public, "public", false, "answer without a token")
	f.BoolVar(&req.Retry, "retry", false, "repeat a request that is no stream when its replica ends without an answer")
	scaling.add(cmd)
	asInDocker(cmd)
	return runs(cmd, p.command(func(ctx context.Context, c *caller, args []string) (err error) {
		req.Name, serving.Command = args[0], args[1:]
		if err = scaling.set(cmd, &req.ServiceWish); err != nil {
			return err
		}
		if req.Sleep, err = durationOf("--sleep", sleep); err != nil {
			return err
		}
		if serving.Health.InitialDelay, err = durationOf("--initial-delay", delay); err != nil {
			return err
		}
		wrong, err := flags.set(&req.Spec)
		if err == nil {
			err = invalid(session.CodeInvalid, wrong)
		}
		if err == nil && !cmd.Flags().Changed("on") {
			err = runCommands(p).onDefaultMachine(&req.Spec)
		}
		if err != nil {
			return err
		}
		req.Spec.Serving = &serving
		made, err := route.ServiceDeploy.Body(req).Ask(ctx, c)
		if err != nil {
			return err
		}
		return p.print(made, func(w io.Writer) {
			fmt.Fprintf(w, "%s is on %s, revision %d.\n", made.Name, made.Agent, made.Revision)
		})
	}))
}

// durationOf reads the length of time in a flag; 0: not set.
func durationOf(flag, text string) (session.Duration, error) {
	if text == "" {
		return 0, nil
	}
	length, err := session.ParseDuration(text)
	if err != nil {
		return 0, usagef("%s: %v", flag, err)
	}
	return length, nil
}

func (p serviceCommands) listCommand() *cobra.Command {
	return usesMachine(asks(p.program, &cobra.Command{Use: "ls [--on AGENT]", Aliases: []string{"list"},
		Short: "List services"}, "only services on this agent's machine", route.Services, serviceTable))
}

func serviceTable(w io.Writer, services []api.Service) {
	table(w, "NAME,STATE, HEALTHY, REVISION, REQUESTS, TOKENS,AGENT,ADDRESS,WHY", services,
		func(s api.Service) []string {
			healthy := 0
			for _, replica := range s.Live {
				if replica.State == session.ReplicaHealthy {
					healthy++
				}
			}
			wanted := cmp.Or(s.Scaling.Target, s.Replicas)
			return []string{s.Name, string(s.State), fmt.Sprintf("%d of %d", healthy, wanted),
				strconv.Itoa(s.Revision), strconv.FormatInt(s.Traffic.Requests, 10),
				strconv.FormatInt(s.Traffic.Completion, 10), s.Agent, s.Address, cmp.Or(s.Why, "-")}
		})
}

// changesService returns a command that changes the service that its first argument names.
func (p serviceCommands) changesService(cmd *cobra.Command,
	change func(args []string) (session.ServiceChange, error)) *cobra.Command {
	var on string
	p.onFlag(cmd, &on, "agent of the machine, if several have a service of this name")
	return runs(cmd, p.command(func(ctx context.Context, c *caller, args []string) error {
		wish, err := change(args[1:])
		if err != nil {
			return err
		}
		s, err := route.ServiceChange.At(args[0]).With("agent", on).Body(wish).Ask(ctx, c)
		if err != nil {
			return err
		}
		return p.print(s, func(w io.Writer) {
			fmt.Fprintf(w, "%s: %s, %d wanted, revision %d.\n", s.Name, s.State, s.Replicas, s.Revision)
			printRules(w, s.Service)
		})
	}))
}

func (p serviceCommands) scaleCommand() *cobra.Command {
	var scaling scalingFlags
	cmd := &cobra.Command{Use: "scale SERVICE [REPLICAS]", Short: "Change the number of replicas, or the rules for it",
		Long: `A service with 0 replicas is stopped; its name, revisions and tokens stay. The rules of --rule
replace all rules of the service.

` + scalingHelp,
		Example: `  slipway service scale llama 2
  slipway service scale llama --rule 'outstanding>4,<1,max=4'
  slipway service scale llama --rule 'vllm:num_requests_waiting>10,<1,window=2m' --rule 'gpu_util<20'`}
	scaling.add(cmd)
	cmd.Flags().BoolVar(&scaling.none, "no-rules", false, "remove all rules")
	return p.changesService(cmd, func(args []string) (change session.ServiceChange, err error) {
		if change.Rules, change.MaySleep, err = scaling.change(cmd); err != nil {
			return change, err
		}
		if len(args) == 0 {
			if change.Rules == nil && change.MaySleep == nil {
				return change, usagef("Give a number of replicas, or what else changes")
			}
			return change, nil
		}
		n, err := strconv.Atoi(args[0])
		if err != nil {
			return change, usagef("%q is not a number of replicas", args[0])
		}
		change.Replicas, change.TryAgain = &n, true
		return change, nil
	})
}

func (p serviceCommands) rollbackCommand() *cobra.Command {
	return p.changesService(&cobra.Command{Use: "rollback SERVICE REVISION", Short: "Return to an earlier revision"},
		func(args []string) (session.ServiceChange, error) {
			n, err := strconv.Atoi(args[0])
			if err != nil || n < 1 {
				return session.ServiceChange{}, usagef("%q is not a number of a revision", args[0])
			}
			return session.ServiceChange{Revision: n}, nil
		})
}

func (p serviceCommands) removeCommand() *cobra.Command {
	var on string
	cmd := &cobra.Command{Use: "rm SERVICE", Aliases: []string{"remove"}, Short: "Stop and forget a service"}
	p.onFlag(cmd, &on, "agent of the machine, if several have a service of this name")
	p.yesFlag(cmd)
	return runs(cmd, p.command(func(ctx context.Context, c *caller, args []string) error {
		if err := p.confirm(ctx, "Stop "+args[0]+" and forget its tokens?"); err != nil {
			return err
		}
		_, err := route.ServiceRemove.At(args[0]).With("agent", on).Ask(ctx, c)
		return err
	}))
}

func (p serviceCommands) chatCommand() *cobra.Command {
	var on, system string
	req := api.Chat{}
	cmd := &cobra.Command{Use: "chat SERVICE PROMPT…", Short: "Ask a model and print its answer as it comes"}
	p.onFlag(cmd, &on, "agent of the machine, if several have a service of this name")
	cmd.Flags().StringVar(&system, "system", "", "what the model is told first")
	cmd.Flags().IntVar(&req.MaxTokens, "max-tokens", 0, "most tokens of the answer (default: the model decides)")
	return runs(cmd, p.command(func(ctx context.Context, c *caller, args []string) error {
		if system != "" {
			req.Messages = append(req.Messages, api.ChatMessage{Role: "system", Content: system})
		}
		req.Messages = append(req.Messages, api.ChatMessage{Role: "user", Content: strings.Join(args[1:], " ")})
		body, err := json.Marshal(req)
		if err != nil {
			return err
		}
		at := route.ServiceChat.At(args[0]).With("agent", on)
		answer, err := c.Transfer(ctx, at.Method(), at.Target(),
			http.Header{"Content-Type": {"application/json"}}, bytes.NewReader(body))
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		return printWords(p.Stdout, answer.Body)
	}))
}

// printWords prints the words of a streamed answer. It fails if the answer breaks off.
func printWords(w io.Writer, events io.Reader) error {
	lines := bufio.NewScanner(events)
	for lines.Scan() {
		data, is := strings.CutPrefix(lines.Text(), "data: ")
		if is && data == "[DONE]" {
			fmt.Fprintln(w)
			return nil
		}
		var chunk struct {
			Choices []struct {
				Delta struct {
					Content string `json:"content"`
				} `json:"delta"`
			} `json:"choices"`
		}
		if !is || json.Unmarshal([]byte(data), &chunk) != nil {
			continue
		}
		for _, choice := range chunk.Choices {
			fmt.Fprint(w, choice.Delta.Content)
		}
	}
	fmt.Fprintln(w)
	return failAs(ExitUnavailable, session.CodeAppTimeout, "The answer broke off.", "Look at the state of the service.")
}

func (p serviceCommands) tokenCommand() *cobra.Command {
	parent := &cobra.Command{Use: "token", Short: "Make and revoke tokens of a service"}
	var on, lifetime string
	var req session.TokenRequest
	create := &cobra.Command{Use: "create SERVICE NAME", Short: "Make a token and print it once"}
	p.onFlag(create, &on, "agent of the machine, if several have a service of this name")
	create.Flags().StringVar(&lifetime, "lifetime", "", "time until it expires, such as 30d (default: never)")
	create.Flags().IntVar(&req.PerMinute, "per-minute", 0, "most requests in a minute (default: no limit)")
	create.Flags().IntVar(&req.Concurrent, "concurrent", 0, "most requests at a time (default: no limit)")
	create.RunE = p.command(func(ctx context.Context, c *caller, args []string) (err error) {
		req.Name = args[1]
		if req.Lifetime, err = durationOf("--lifetime", lifetime); err != nil {
			return err
		}
		token, err := route.ServiceToken.At(args[0]).With("agent", on).Body(req).Ask(ctx, c)
		if err != nil {
			return err
		}
		return p.print(token, func(w io.Writer) { fmt.Fprintln(w, token.Text) })
	})
	revoke := &cobra.Command{Use: "revoke SERVICE TOKEN", Short: "Make a token invalid, by its ID"}
	p.onFlag(revoke, &on, "agent of the machine, if several have a service of this name")
	revoke.RunE = p.command(func(ctx context.Context, c *caller, args []string) error {
		_, err := route.ServiceRevoke.At(args[0], args[1]).With("agent", on).Ask(ctx, c)
		return err
	})
	parent.AddCommand(create, revoke)
	return parent
}
