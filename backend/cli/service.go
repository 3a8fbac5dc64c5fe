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
	parent.AddCommand(p.createCommand(), p.listCommand(), p.showCommand(), p.logsCommand(), p.updateCommand(),
		p.scaleCommand(), p.rollbackCommand(), p.tokenCommand(), p.chatCommand(), p.recipeCommand(),
		p.certificateCommand(), p.removeCommand())
	return parent
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
			return []string{s.Name, string(s.State),
				fmt.Sprintf("%d of %d", healthyOf(s), cmp.Or(s.Scaling.Target, s.Replicas)),
				strconv.Itoa(s.Revision), strconv.FormatInt(s.Traffic.Requests, 10),
				strconv.FormatInt(s.Traffic.Completion, 10), s.Agent, s.Address, cmp.Or(s.Why, "-")}
		})
}

// changesService returns a command that changes the service that its first argument names.
func (p serviceCommands) changesService(cmd *cobra.Command,
	change func(args []string) (session.ServiceChange, error)) *cobra.Command {
	var on string
	p.onFlag(cmd, &on, onService)
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
			if rules := rulesText(s.Service); rules != "" {
				fmt.Fprintln(w, rules)
			}
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
	p.onFlag(cmd, &on, onService)
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
	p.onFlag(cmd, &on, onService)
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
	parent := &cobra.Command{Use: "token", Short: "Manage the tokens of a service"}
	var on, lifetime string
	var req session.TokenRequest
	create := &cobra.Command{Use: "create SERVICE NAME", Short: "Make a token and print it once"}
	p.onFlag(create, &on, onService)
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
	p.onFlag(revoke, &on, onService)
	revoke.RunE = p.command(func(ctx context.Context, c *caller, args []string) error {
		_, err := route.ServiceRevoke.At(args[0], args[1]).With("agent", on).Ask(ctx, c)
		return err
	})
	parent.AddCommand(p.tokenListCommand(), create, revoke)
	return parent
}
