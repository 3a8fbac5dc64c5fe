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
	"slipway/backend/session"
	"slipway/gpu"
)

// usageOptions select accounts.
type usageOptions struct {
	from, to, by, bucket, label, service, agent string
	csv                                         bool
}

// flags adds those that all kinds of accounts have.
func (o *usageOptions) flags(p sessionCommands, cmd *cobra.Command, by, help string) {
	f := cmd.Flags()
	f.StringVar(&o.from, "from", "",
		"a day, a time, or how long ago, such as 2026-05-01 or 7d (default 30 days before --to)")
	f.StringVar(&o.to, "to", "", "the last day, a time, or how long ago (default now)")
	f.StringVar(&o.by, "by", by, help)
	f.StringVar(&o.bucket, "bucket", "", "rows for each hour or day")
	p.onFlag(cmd, &o.agent, "only usage on this machine")
	usesMachine(cmd)
	f.BoolVar(&o.csv, "csv", false, "print a CSV table with all counters")
}

func (p sessionCommands) usageCommand() *cobra.Command {
	opts := usageOptions{}
	cmd := &cobra.Command{Use: "usage [--from DAY] [--to DAY] [--by session|day|label|owner|device] [--csv]",
		Short: "Show usage: GPU-hours, CPU-hours, energy",
		Long: `Usage shows what sessions, other processes and idle devices used. Together they add up to
what the devices counted. A share limits memory, not time on a device: BUSY is the busy time
within what was allocated, and ABOVE is what came on top while others left the device free.
MEASURED is the part of the time in which a device was actually measured.`,
		Example: `  slipway usage --from 7d
  slipway usage --from 2026-05-01 --to 2026-05-31 --by label --csv > may.csv`}
	opts.flags(p, cmd, "session", "group by session, day, label, owner or device")
	cmd.Flags().StringVar(&opts.label, "label", "", "only this project")
	cmd.AddCommand(p.serviceUsageCommand())
	return runs(cmd, p.command(func(ctx context.Context, c *caller, _ []string) error {
		if opts.csv {
			return p.copyCSV(ctx, c, opts, asked(p, opts, route.AccountsCSV).With("label", opts.label))
		}
		report, err := asked(p, opts, route.Accounts).With("label", opts.label).Ask(ctx, c)
		if err != nil {
			return err
		}
		noticeMissing(p.program, report.Missing)
		return p.print(report, func(w io.Writer) { p.usageTable(w, report) })
	}))
}

func noticeMissing(p *program, agents []string) {
	for _, agent := range agents {
		p.notice("%s is not reached; its accounts are missing here.", agent)
	}
}

// asked adds the options to a route to accounts.
func asked[Out any](p sessionCommands, opts usageOptions,
	at route.Route[route.None, Out]) route.Route[route.None, Out] {
	return at.With("from", p.ago(opts.from)).With("to", p.ago(opts.to)).With("by", opts.by).
		With("bucket", opts.bucket).With("agent", opts.agent)
}

// ago converts a length of time such as 7d to the moment that long ago. It returns other texts unchanged, for the
// server to check.
func (p sessionCommands) ago(text string) string {
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

func (p sessionCommands) copyCSV(ctx context.Context, c *caller, opts usageOptions,
	at route.Route[route.None, route.None]) error {
	if p.output != outputTable {
		return usagef("use either --csv or -o %s", p.output)
	}
	response, err := c.Transfer(ctx, at.Method(), at.Target(), nil, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(p.Stdout, response.Body)
	return ending(err)
}

func (p sessionCommands) usageTable(w io.Writer, report api.UsageReport) {
	fmt.Fprintf(w, "From %s to %s\n", p.day(report.From), p.day(report.To))
	if len(report.Rows) == 0 {
		fmt.Fprintln(w, "Nothing was used.")
		return
	}
	keys := usageKeys(report)
	header := []string{" GPU-HOURS", " BUSY", " ABOVE", " VRAM PEAK", " CPU-HOURS", " KWH", " MEASURED"}
	rows := [][]string{slices.Concat(keys, header)}
	count := map[string]int{}
	for _, a := range report.Rows {
		if a.Kind == "session" || !slices.Equal(counters(a), counters(hub.Account{})) {
			count[a.Kind]++
			rows = append(rows, append(p.usageCells(keys, a), counters(a)...))
		}
	}
	for _, total := range report.Totals {
		if count[total.Kind] > 1 {
			cells := make([]string, len(keys))
			cells[0] = "all " + kindText(total.Kind)
			rows = append(rows, append(cells, counters(total)...))
		}
	}
	columns(w, rows)
}

// usageKeys returns the columns that identify a row.
func usageKeys(report api.UsageReport) []string {
	keys := map[hub.By][]string{"session": {"NAME", "ID", "LABEL"}, "day": {"KIND"}, "label": {"LABEL"},
		"owner": {"OWNER"}, "device": {"DEVICE", "AGENT", "KIND"}, "": {"NAME", "ID", "LABEL", "DEVICE"}}[report.By]
	if report.Bucket != "" {
		keys = append([]string{strings.ToUpper(report.Bucket)}, keys...)
	}
	return keys
}

func (p sessionCommands) usageCells(keys []string, a hub.Account) []string {
	none := "(none)"
	if a.Kind != "session" {
		none = kindText(a.Kind)
	}
	cells := map[string]string{"NAME": cmp.Or(a.Name, none), "ID": string(a.Session), "LABEL": a.Label,
		"OWNER": cmp.Or(a.Owner, none), "DEVICE": cmp.Or(a.DeviceName, string(a.Device), "(CPU)"), "AGENT": a.Agent,
		"KIND": kindText(a.Kind), "DAY": p.day(a.Start), "HOUR": p.minute(a.Start)}
	if len(keys) < 3 { // the label is the only key
		cells["LABEL"] = cmp.Or(a.Label, none)
	}
	return each(keys, func(key string) string { return cells[key] })
}

// kindText returns the words for a kind of account.
func kindText(kind string) string {
	texts := map[string]string{"session": "sessions", "other": "other processes", "idle": "idle devices"}
	return cmp.Or(texts[kind], kind)
}

func counters(a hub.Account) []string {
	const perKWh = 3.6e9 // millijoules
	peak := "-"
	if a.VRAMPeak > 0 {
		peak = size(a.VRAMPeak)
	}
	busy, above := hours(a.BusyGPUMs-a.AboveGPUMs), hours(a.AboveGPUMs)
	energy := amount(float64(a.EnergyDynamic+a.EnergyIdle)/perKWh, 3)
	if a.AllocGPUMs > 0 && a.CoveredMs+a.EstimatedMs == 0 { // nothing measures the devices
		busy, above, energy = "-", "-", "-"
	}
	return []string{hours(a.AllocGPUMs), busy, above, peak, hours(a.AllocCPUMs), energy, measured(a)}
}

func hours(ms int64) string { return amount(float64(ms)/float64(time.Hour/time.Millisecond), 2) }

// amount formats an amount with some decimals. An amount that is too small for them is not shown as 0.
func amount(n float64, decimals int) string {
	least := math.Pow10(-decimals)
	if n > 0 && n < least {
		return "<" + strconv.FormatFloat(least, 'f', decimals, 64)
	}
	return strconv.FormatFloat(n, 'f', decimals, 64)
}

// measured formats which part of the time of a device was measured, rounded down to a tenth of a percent.
func measured(a hub.Account) string {
	whole := a.CoveredMs + a.EstimatedMs + a.GapMs
	if whole == 0 {
		return "-"
	}
	tenths := a.CoveredMs * 1000 / whole
	return strconv.FormatFloat(float64(tenths)/10, 'f', -1, 64) + " %"
}

func (p sessionCommands) day(at time.Time) string {
	return at.In(p.Now().Location()).Format(time.DateOnly)
}

func (p sessionCommands) minute(at time.Time) string {
	return at.In(p.Now().Location()).Format("2006-01-02 15:04")
}

func (p sessionCommands) gpuCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "gpu [--on AGENT]", Aliases: []string{"gpus"},
		Short: "Show devices, their load and who uses them"}
	cmd.AddCommand(p.gpuHistoryCommand())
	return usesMachine(asks(p.program, cmd, "only devices of this agent", route.Devices,
		func(w io.Writer, boards []api.DeviceBoard) {
			for i, board := range boards {
				if i > 0 {
					fmt.Fprintln(w)
				}
				p.boardTable(w, board)
			}
		}))
}

func (p sessionCommands) boardTable(w io.Writer, board api.DeviceBoard) {
	if !board.Online {
		fmt.Fprintf(w, "%s is not reached; this is %s old.\n", board.Agent, span(p.Now().Sub(board.At)))
	}
	if board.Text != "" {
		fmt.Fprintf(w, "%s: %s\n", board.Agent, board.Text)
	}
	if len(board.Devices) == 0 {
		if board.Text == "" {
			fmt.Fprintf(w, "%s has no devices.\n", board.Agent)
		}
		return
	}
	fmt.Fprintf(w, "%s: shares of %s, strategy %s, attached by %s, measured by %s\n", board.Agent, board.Quantum,
		board.Strategy, board.Attach, board.Source)
	rows := [][]string{{"DEVICE", "MODEL", "LOAD", "MEMORY", " POWER", " TEMP", " FREE", "KEPT BY"}}
	place := func(d api.DeviceState) int {
		if d.Model == "" { // it is missing and has no number
			return math.MaxInt
		}
		return d.Index
	}
	slices.SortStableFunc(board.Devices, func(a, b api.DeviceState) int { return cmp.Compare(place(a), place(b)) })
	for _, d := range board.Devices {
		rows = append(rows, []string{deviceName(d), d.Model, loadText(d.Util), memoryBar(d.MemoryUsed, d.Memory),
			powerText(d.Power), temperatureText(d.Temperature), d.Free.String(), string(d.Level)})
		for _, holder := range d.Holders {
			rows = append(rows, holderRow(holder))
		}
	}
	columns(w, rows)
	for _, d := range board.Devices {
		switch {
		case d.Lost != nil:
			fmt.Fprintf(w, "%s is lost: %s. %s\n", deviceName(d), d.Lost.Why, d.Lost.Hint)
		case d.Unread:
			fmt.Fprintf(w, "%s is not allocated: its driver does not report what is free.\n", deviceName(d))
		case d.Over != "":
			fmt.Fprintf(w, "%s is over-allocated: %s. Nothing further of it is allocated until sessions that hold it "+
				"end.\n", deviceName(d), d.Over)
		}
	}
}

// deviceName returns the name of a device. An allocated device that is missing has no number.
func deviceName(d api.DeviceState) string {
	if d.Model == "" {
		return string(d.UUID) + " (not found)"
	}
	return "GPU " + strconv.Itoa(d.Index)
}

// holderRow describes the use of a device by a session or another process.
func holderRow(h session.DeviceHolder) []string {
	name, memory := "  "+h.Name+" ("+h.Owner+")", known(h.Memory, size)
	switch {
	case h.Session == "" && h.PID > 0:
		name = fmt.Sprintf("  %s (%s, pid %d)", h.Name, h.Owner, h.PID)
	case h.Session == "": // a session of another Slipway, whose name has its owner
		name = "  " + h.Name
	}
	if h.Promised > 0 {
		memory += " of " + size(h.Promised)
	}
	held := ""
	if h.Session != "" || h.Share > 0 {
		held = "holds " + h.Share.String()
	}
	return []string{name, held, known(h.Util, permyriad), memory, "", "", "", ""}
}

func permyriad(n int) string { return strconv.Itoa((n+50)/100) + " %" }

const barWidth = 10

// bar draws a part of a whole.
func bar(part, whole int64) string {
	filled := 0
	if whole > 0 {
		filled = int(min(max((part*barWidth+whole/2)/whole, 0), barWidth))
	}
	return strings.Repeat("█", filled) + strings.Repeat("░", barWidth-filled)
}

// known formats a value, or a dash if it is unknown.
func known[T any](value *T, text func(T) string) string {
	if value == nil {
		return "-"
	}
	return text(*value)
}

func loadText(util *int) string {
	return known(util, func(n int) string { return bar(int64(n), 10000) + " " + permyriad(n) })
}

func memoryBar(used *gpu.Bytes, total gpu.Bytes) string {
	switch {
	case used == nil && total == 0:
		return "-"
	case used == nil:
		return size(total)
	case total == 0:
		return size(*used)
	}
	return bar(int64(*used), int64(total)) + " " + size(*used) + " of " + size(total)
}

func powerText(power *gpu.MilliWatt) string {
	return known(power, func(p gpu.MilliWatt) string { return strconv.FormatFloat(float64(p)/1000, 'f', 1, 64) + " W" })
}

func temperatureText(celsius *int) string {
	return known(celsius, func(n int) string { return strconv.Itoa(n) + " °C" })
}

func (p sessionCommands) gpuHistoryCommand() *cobra.Command {
	var since, agent string
	cmd := &cobra.Command{Use: "history DEVICE", Short: "Show the load history of a device, one line per minute"}
	cmd.Flags().StringVar(&since, "since", "1h", "start time, or how long ago, such as 6h")
	cmd.Flags().StringVar(&agent, "on", "", "agent of the device (default: the first agent with a device)")
	return runs(cmd, p.command(func(ctx context.Context, c *caller, args []string) error {
		board, device, err := c.findDevice(ctx, args[0], agent)
		if err != nil {
			return err
		}
		return show(ctx, c, route.DeviceHistory.At(board.Agent, string(device.UUID)).With("since", p.ago(since)),
			func(w io.Writer, points []session.DevicePoint) { p.pointTable(w, device, points) })
	}))
}

// findDevice returns a device by its number or UUID, and its board.
func (c *caller) findDevice(ctx context.Context, ref, agent string) (api.DeviceBoard, api.DeviceState, error) {
	boards, err := route.Devices.Ask(ctx, c)
	if err != nil {
		return api.DeviceBoard{}, api.DeviceState{}, err
	}
	for _, board := range boards {
		if agent != "" && board.Agent != agent {
			continue
		}
		for _, device := range board.Devices {
			if strings.EqualFold(string(device.UUID), ref) || device.Model != "" && strconv.Itoa(device.Index) == ref {
				return board, device, nil
			}
		}
	}
	return api.DeviceBoard{}, api.DeviceState{}, fail(session.CodeDeviceNotFound,
		fmt.Sprintf("There is no device %q.", ref), "slipway gpu lists all of them.")
}

// pointTable writes the last sample of each minute.
func (p sessionCommands) pointTable(w io.Writer, device api.DeviceState, points []session.DevicePoint) {
	if len(points) == 0 {
		fmt.Fprintln(w, "Nothing was measured in that time.")
		return
	}
	rows := [][]string{{"TIME", "LOAD", "MEMORY", " POWER", " TEMP"}}
	for i, point := range points {
		if i+1 < len(points) && points[i+1].At.Truncate(time.Minute).Equal(point.At.Truncate(time.Minute)) {
			continue
		}
		rows = append(rows, []string{p.minute(point.At), loadText(point.Util),
			memoryBar(point.MemoryUsed, device.Memory), powerText(point.Power), temperatureText(point.Temperature)})
	}
	columns(w, rows)
}
