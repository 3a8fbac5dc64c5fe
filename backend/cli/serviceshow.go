package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/session"
)

// onService is the help of --on of the commands about one service.
const onService = "agent of the machine, if several have a service of this name"

func (p serviceCommands) showCommand() *cobra.Command {
	return asks(p.program, &cobra.Command{Use: "show SERVICE", Short: "Show the details of a service",
		Long: "Shows what a service does and why, its replicas, tokens, traffic, revisions and events."},
		onService, route.Service, p.showService)
}

func (p serviceCommands) showService(w io.Writer, s api.Service) {
	p.serviceFields(w, s)
	if len(s.Live) > 0 {
		fmt.Fprintln(w)
		table(w, "REPLICA,STATE,REVISION,SINCE, REQUESTS,WHY", s.Live, func(r session.Replica) []string {
			return []string{string(r.Session), string(r.State), strconv.Itoa(r.Revision), p.age(r.Since),
				strconv.Itoa(r.Outstanding), cmp.Or(r.Why, "-")}
		})
	}
	fmt.Fprintln(w)
	table(w, " REVISION,CREATED,IMAGE, CPU, MEMORY,GPU, PORT,COMMAND", s.Revisions, func(r session.Revision) []string {
		spec := r.Spec.WithDefaults()
		serves := session.Serving{}
		if spec.Serving != nil {
			serves = *spec.Serving
		}
		return []string{strconv.Itoa(r.Number), p.age(r.CreatedAt), spec.Image, strconv.Itoa(spec.Resources.CPU),
			size(spec.Resources.Memory), cmp.Or(acceleratorText(spec.Accelerator), "-"), strconv.Itoa(serves.Port),
			cmp.Or(strings.Join(each(serves.Command, session.ShellWord), " "), "-")}
	})
	if len(s.Events) > 0 {
		fmt.Fprintln(w)
		table(w, "TIME,EVENT,WHY", s.Events, func(e session.ServiceEvent) []string {
			return []string{e.At.In(p.Now().Location()).Format(time.DateTime), e.Message, cmp.Or(e.Why, "-")}
		})
	}
}

func (p serviceCommands) serviceFields(w io.Writer, s api.Service) {
	t := s.Traffic
	first := ""
	if t.FirstWordMs > 0 {
		first = fmt.Sprintf("%d ms (p99 %d ms) in the last streams", t.FirstWordMs, t.FirstWordP99Ms)
	}
	fields(w, "Name", s.Name, "State", string(s.State), "Why", s.Why, "Agent", s.Agent, "Owner", s.Owner,
		"Address", s.Address, "Others", othersText(s), "Models", strings.Join(s.ModelNames(), ", "),
		"Replicas", fmt.Sprintf("%d of %d healthy", healthyOf(s), s.Replicas), "Revision", strconv.Itoa(s.Revision),
		"Tokens", p.tokensText(s), "Sleep", sleepText(s.ServiceWish),
		"Rules", rulesText(s.Service), "Retry", ifSo(s.Retry, "unanswered requests"),
		"Requests", fmt.Sprintf("%d, %d failed; %d under way, %d waiting", t.Requests, t.Failed, t.Outstanding,
			t.Waiting),
		"Tokens read", strconv.FormatInt(t.Prompt, 10), "Tokens written",
		fmt.Sprintf("%d, %.1f a second in the last minute", t.Completion, t.TokensPerSecond),
		"First word", first, "Last request", p.moment(&t.Last), "Created", p.moment(&s.CreatedAt))
}

// othersText lists where the service is reached other than from this computer.
func othersText(s api.Service) string {
	var lines []string
	for _, at := range s.Addresses {
		who := "on the machine itself"
		if at.From == session.FromNetwork {
			who = "other computers"
		}
		if at.URL != s.Address {
			lines = append(lines, cmp.Or(at.URL, at.Fault)+" ("+who+")")
		}
	}
	return strings.Join(lines, "\n")
}

func ifSo(is bool, text string) string {
	if is {
		return text
	}
	return ""
}

// tokensText lists the tokens of a service, or says that it needs none.
func (p serviceCommands) tokensText(s api.Service) string {
	lines := each(s.Tokens, func(t session.ServiceToken) string { return t.Name + " (" + t.ID + ")" })
	if s.Public {
		lines = append([]string{"none needed: whoever reaches the address may use it"}, lines...)
	}
	return cmp.Or(strings.Join(lines, "\n"), "none: slipway service token create "+s.Name+" NAME")
}

func sleepText(wish session.ServiceWish) string {
	var when []string
	if wish.Sleep > 0 {
		when = append(when, "after "+wish.Sleep.String()+" without a request")
	}
	if wish.MaySleep {
		when = append(when, "when another service needs its devices")
	}
	return strings.Join(when, ", or ")
}

func healthyOf(s api.Service) (healthy int) {
	for _, replica := range s.Live {
		if replica.State == session.ReplicaHealthy {
			healthy++
		}
	}
	return healthy
}

func (p serviceCommands) tokenListCommand() *cobra.Command {
	var on string
	cmd := &cobra.Command{Use: "ls SERVICE", Aliases: []string{"list"}, Short: "List the tokens of a service"}
	p.onFlag(cmd, &on, onService)
	return runs(cmd, p.command(func(ctx context.Context, c *caller, args []string) error {
		s, err := route.Service.At(args[0]).With("agent", on).Ask(ctx, c)
		if err != nil {
			return err
		}
		return p.print(s.Tokens, func(w io.Writer) { p.tokenTable(w, s.Tokens) })
	}))
}

func (p serviceCommands) tokenTable(w io.Writer, tokens []session.ServiceToken) {
	limit := func(n int) string { return cmp.Or(ifSo(n > 0, strconv.Itoa(n)), "-") }
	table(w, "ID,NAME,CREATED,EXPIRES, PER MINUTE, CONCURRENT", tokens, func(t session.ServiceToken) []string {
		return []string{t.ID, t.Name, p.age(t.CreatedAt), cmp.Or(p.moment(&t.ExpiresAt), "never"),
			limit(t.PerMinute), limit(t.Concurrent)}
	})
}

func (p serviceCommands) recipeCommand() *cobra.Command {
	var on string
	cmd := &cobra.Command{Use: "recipe SERVICE", Short: "Print the recipe of a service",
		Long: `A recipe is a YAML file with what a service runs and how many of it, its image pinned by
digest. It never has tokens or the values of variables with secret-looking names. Deploy it
with slipway service create -f.`, Example: "  slipway service recipe llama > llama.yaml"}
	p.onFlag(cmd, &on, onService)
	return runs(cmd, p.command(func(ctx context.Context, c *caller, args []string) error {
		return show(ctx, c, route.ServiceRecipe.At(args[0]).With("agent", on),
			func(w io.Writer, found api.ServiceRecipe) {
				if len(found.Secrets) > 0 {
					p.notice("It does not hold the values of %s.", strings.Join(found.Secrets, ", "))
				}
				if !found.Pinned {
					p.notice("The image is not pinned: no agent that is reached has it.")
				}
				fmt.Fprint(w, found.YAML)
			})
	}))
}
