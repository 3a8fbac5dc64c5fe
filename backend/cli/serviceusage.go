package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/hub"
	"slipway/backend/session"
)

func (p sessionCommands) serviceUsageCommand() *cobra.Command {
	opts := usageOptions{}
	cmd := &cobra.Command{
		Use:   "services [--from DAY] [--to DAY] [--by service|revision|token|owner] [--csv]",
		Short: "Show usage of inference services: requests, tokens, Wh per 1,000 tokens",
		Long: `Shows what was asked of services, also of removed ones and with revoked tokens. FAILED
includes answers that broke off. FIRST WORD is the time until the first byte of a stream,
which half of all and 99 of 100 do not exceed. WH/1000 is the energy of the replicas, also
while they wait for requests, for each 1,000 tokens that they generated. By token it is
unknown, because replicas answer requests with different tokens at once.`,
		Example: `  slipway usage services --from 7d
  slipway usage services --by token --service llama -o json`}
	opts.flags(p, cmd, "service", "group by service, revision, token or owner")
	cmd.Flags().StringVar(&opts.service, "service", "", "only services of this name")
	return runs(cmd, p.command(func(ctx context.Context, c *caller, _ []string) error {
		if opts.csv {
			return p.copyCSV(ctx, c, opts, asked(p, opts, route.ServiceAccountsCSV).With("service", opts.service))
		}
		report, err := asked(p, opts, route.ServiceAccounts).With("service", opts.service).Ask(ctx, c)
		if err != nil {
			return err
		}
		noticeMissing(p.program, report.Missing)
		return p.print(report, func(w io.Writer) { serviceUsageTable(p, w, report) })
	}))
}

func serviceUsageTable(p sessionCommands, w io.Writer, report api.ServiceReport) {
	fmt.Fprintf(w, "From %s to %s\n", p.day(report.From), p.day(report.To))
	if len(report.Rows) == 0 {
		fmt.Fprintln(w, "No service was used.")
		return
	}
	keys := slices.Clone(map[hub.By][]string{hub.ByService: {"SERVICE", "AGENT", "OWNER"},
		hub.ByRevision: {"SERVICE", "AGENT", "OWNER", " REVISION"}, hub.ByToken: {"SERVICE", "AGENT", "OWNER", "TOKEN"},
		hub.ByOwner: {"OWNER"}}[report.By])
	if keys == nil {
		keys = []string{"SERVICE", "AGENT", "OWNER", " REVISION", "KIND", "TOKEN"}
	}
	if report.Bucket != "" {
		keys = append([]string{strings.ToUpper(report.Bucket)}, keys...)
	}
	rows := [][]string{slices.Concat(keys, []string{" REQUESTS", " FAILED", " TOKENS IN", " OUT", " FIRST WORD", " P99",
		" GPU-HOURS", " KWH", " WH/1000"})}
	for _, u := range report.Rows {
		figures := serviceFigures(u)
		if report.By == hub.ByToken || u.Kind == session.AccountRequests { // what replicas used is not divided
			figures[len(figures)-3], figures[len(figures)-2] = "-", "-"
		}
		rows = append(rows, append(serviceUsageCells(p, keys, u), figures...))
	}
	if len(report.Rows) > 1 {
		cells := make([]string, len(keys))
		cells[0] = "all services"
		rows = append(rows, append(cells, serviceFigures(report.Total)...))
	}
	columns(w, rows)
}

func serviceUsageCells(p sessionCommands, keys []string, u api.ServiceUsage) []string {
	token := cmp.Or(u.TokenName, u.Token, "(none)")
	if u.Kind == session.AccountReplicas {
		token = ""
	}
	cells := map[string]string{"SERVICE": u.Service, "AGENT": u.Agent, "OWNER": u.Owner, "KIND": u.Kind,
		" REVISION": strconv.Itoa(u.Revision), "TOKEN": token, "DAY": p.day(u.Start), "HOUR": p.minute(u.Start)}
	return each(keys, func(key string) string { return cells[key] })
}

func serviceFigures(u api.ServiceUsage) []string {
	const perKWh = 3.6e9 // millijoules
	whole := func(n int64) string { return strconv.FormatInt(n, 10) }
	first := func(ms int64) string {
		if ms == 0 {
			return "-"
		}
		return whole(ms) + " ms"
	}
	return []string{whole(u.Requests), whole(u.Failed + u.Cut), whole(u.Prompt), whole(u.Completion),
		first(u.FirstWord.P50), first(u.FirstWord.P99), hours(u.AllocGPUMs),
		amount(float64(u.EnergyDynamic+u.EnergyIdle)/perKWh, 3),
		known(u.WhPerThousandTokens, func(wh float64) string { return amount(wh, 3) })}
}
