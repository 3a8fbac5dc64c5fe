package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/hub"
)

// usageCommands are the commands for devices and usage.
type usageCommands struct{ *program }

// usageOptions says which accounts are wanted.
type usageOptions struct {
	from, to, by, bucket, label, agent string
	csv                                bool
}

func (p usageCommands) usageCommand() *cobra.Command {
	opts := usageOptions{}
	cmd := &cobra.Command{
		Use:   "usage [--from DAY] [--to DAY] [--by session|day|label|owner|device] [--csv]",
		Short: "Show usage: GPU-hours, CPU-hours, energy",
		Long: `Usage shows what sessions, other processes and idle devices used. Together they add up to
what the devices counted. MEASURED is the part of the time in which a device was actually
measured.`,
		Example: `  slipway usage --from 7d
  slipway usage --from 2026-05-01 --to 2026-05-31 --by label --csv > may.csv`,
	}
	cmd.Flags().StringVar(&opts.from, "from", "",
		"a day, a time, or how long ago, such as 2026-05-01 or 7d (default 30 days before --to)")
	cmd.Flags().StringVar(&opts.to, "to", "", "the last day, a time, or how long ago (default now)")
	cmd.Flags().StringVar(&opts.by, "by", "session", "group by session, day, label, owner or device")
	cmd.Flags().StringVar(&opts.bucket, "bucket", "", "rows for each hour or day")
	cmd.Flags().StringVar(&opts.label, "label", "", "only this project")
	p.onFlag(cmd, &opts.agent, "only what was used at this agent")
	cmd.Flags().BoolVar(&opts.csv, "csv", false, "print a CSV table with all counters")
	cmd.RunE = p.command(func(ctx context.Context, c *caller, _ []string) error {
		if opts.csv {
			return p.copyCSV(ctx, c, opts)
		}
		report, err := asked(p, opts, route.Accounts).Ask(ctx, c)
		if err != nil {
			return err
		}
		for _, agent := range report.Missing {
			p.notice("%s is not reached; its accounts are missing here.", agent)
		}
		return p.print(report, func(w io.Writer) { p.usageTable(w, report) })
	})
	return cmd
}

// asked is a route to the accounts that are wanted.
func asked[Out any](p usageCommands, opts usageOptions, at route.Route[route.None, Out]) route.Route[route.None, Out] {
	return at.With("from", p.ago(opts.from)).With("to", p.ago(opts.to)).With("by", opts.by).
		With("bucket", opts.bucket).With("label", opts.label).With("agent", opts.agent)
}

// ago turns a length of time such as 7d into the moment that long ago and
// leaves every other text to the server to judge.
func (p usageCommands) ago(text string) string {
	if len(text) < 2 {
		return text
	}
	unit, known := map[byte]time.Duration{'m': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour,
		'w': 7 * 24 * time.Hour}[text[len(text)-1]]
	n, err := strconv.ParseInt(text[:len(text)-1], 10, 32)
	if !known || err != nil || n < 0 || n > int64(100*365*24*time.Hour/unit) {
		return text
	}
	return p.Now().Add(-time.Duration(n) * unit).UTC().Format(time.RFC3339)
}

func (p usageCommands) copyCSV(ctx context.Context, c *caller, opts usageOptions) error {
	if p.output == outputJSON {
		return usagef("use either --csv or -o json")
	}
	at := asked(p, opts, route.AccountsCSV)
	response, err := c.Transfer(ctx, at.Method(), at.Target(), nil, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(p.Stdout, response.Body)
	return ending(err)
}

func (p usageCommands) usageTable(w io.Writer, report api.UsageReport) {
	fmt.Fprintf(w, "From %s to %s\n", p.day(report.From), p.day(report.To))
	if len(report.Rows) == 0 {
		fmt.Fprintln(w, "Nothing was used.")
		return
	}
	header := []string{" GPU-HOURS", " BUSY", " VRAM PEAK", " CPU-HOURS", " KWH", " MEASURED"}
	keys := usageKeys(report)
	rows := [][]string{append(slices.Clone(keys), header...)}
	count := map[string]int{}
	for _, a := range report.Rows {
		if a.Kind != "session" && slices.Equal(counters(a), counters(hub.Account{})) {
			continue // nobody, and nothing
		}
		count[a.Kind]++
		rows = append(rows, append(p.usageCells(keys, a), counters(a)...))
	}
	for _, total := range report.Totals {
		if count[total.Kind] < 2 {
			continue
		}
		cells := make([]string, len(keys))
		cells[0] = "all " + kindText(total.Kind)
		rows = append(rows, append(cells, counters(total)...))
	}
	columns(w, rows)
}

// usageKeys are the columns that say whose a row is.
func usageKeys(report api.UsageReport) []string {
	keys := map[string][]string{"session": {"NAME", "ID", "LABEL"}, "day": {"KIND"}, "label": {"LABEL"},
		"owner": {"OWNER"}, "device": {"DEVICE", "AGENT", "KIND"}, "": {"NAME", "ID", "LABEL", "DEVICE"}}[report.By]
	if report.Bucket != "" {
		keys = append([]string{strings.ToUpper(report.Bucket)}, keys...)
	}
	return keys
}

func (p usageCommands) usageCells(keys []string, a hub.Account) []string {
	none := func(text string) string {
		if text == "" && a.Kind != "session" {
			return kindText(a.Kind)
		}
		return cmp.Or(text, "(none)")
	}
	cells := make([]string, len(keys))
	for i, key := range keys {
		switch key {
		case "NAME":
			cells[i] = none(a.Name)
		case "ID":
			cells[i] = string(a.Session)
		case "LABEL":
			cells[i] = a.Label
			if len(keys) < 3 {
				cells[i] = none(a.Label)
			}
		case "OWNER":
			cells[i] = none(a.Owner)
		case "DEVICE":
			cells[i] = cmp.Or(a.DeviceName, string(a.Device), "(CPU)")
		case "AGENT":
			cells[i] = a.Agent
		case "KIND":
			cells[i] = kindText(a.Kind)
		case "DAY":
			cells[i] = p.day(a.Start)
		case "HOUR":
			cells[i] = a.Start.In(p.Now().Location()).Format("2006-01-02 15:04")
		}
	}
	return cells
}

// kindText says who used what no session did.
func kindText(kind string) string {
	switch kind {
	case "session":
		return "sessions"
	case "other":
		return "other processes"
	case "idle":
		return "idle devices"
	}
	return kind
}

func counters(a hub.Account) []string {
	const perKWh = 3.6e9 // millijoules
	peak := "-"
	if a.VRAMPeak > 0 {
		peak = size(a.VRAMPeak)
	}
	return []string{hours(a.AllocGPUMs), hours(a.BusyGPUMs), peak, hours(a.AllocCPUMs),
		amount(float64(a.EnergyDynamic+a.EnergyIdle)/perKWh, 3), measured(a)}
}

func hours(ms int64) string { return amount(float64(ms)/float64(time.Hour/time.Millisecond), 2) }

// amount writes an amount with so many decimals; what is there but too little
// for them is not written as nothing.
func amount(n float64, decimals int) string {
	least := math.Pow10(-decimals)
	if n > 0 && n < least {
		return "<" + strconv.FormatFloat(least, 'f', decimals, 64)
	}
	return strconv.FormatFloat(n, 'f', decimals, 64)
}

// measured is how much of a device's time was looked at, to a tenth of a
// percent that is never rounded up to all of it.
func measured(a hub.Account) string {
	whole := a.CoveredMs + a.EstimatedMs + a.GapMs
	if whole == 0 {
		return "-"
	}
	tenths := a.CoveredMs * 1000 / whole
	return strconv.FormatFloat(float64(tenths)/10, 'f', -1, 64) + " %"
}

func (p usageCommands) day(at time.Time) string {
	return at.In(p.Now().Location()).Format(time.DateOnly)
}
